"""The device's time: samples of it, the streams and the kernels that taking them needs, and what it reaches at most."""

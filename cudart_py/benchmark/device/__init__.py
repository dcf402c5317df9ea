"""Device time: samples of it, the streams and kernels that they need, and the ceilings of a device."""

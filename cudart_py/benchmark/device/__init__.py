"""Device time: its samples, the streams and kernels that they need, and the ceilings of a device."""

"""Device time: taking samples, the streams and kernels needed for this, and the ceilings of a device."""

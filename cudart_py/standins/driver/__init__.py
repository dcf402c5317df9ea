"""libcuda: its functions on the simulator's functions of the same names."""

"""Calls that make several copies at once, and copies of one-dimensional CUDA arrays, on top of those in `memory`."""

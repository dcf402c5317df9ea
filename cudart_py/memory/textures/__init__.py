"""Textures and surfaces: arrays that kernels reach by coordinates, and the CUDA arrays that they lie in."""

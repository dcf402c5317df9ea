"""Modules, kernels and their launches."""

"""Calls that launch kernels and host functions, and the observers of launches."""

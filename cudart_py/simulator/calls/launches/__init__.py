"""Calls that launch kernels and host functions, and what watches the launches."""

"""Kernels in Python, for compilers that make PTX of them."""

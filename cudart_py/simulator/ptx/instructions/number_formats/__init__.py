"""Formats of floating-point numbers, and rounding to them."""

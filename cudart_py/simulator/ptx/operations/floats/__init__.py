"""Compute with floating-point numbers of 16, 32 and 64 bits as PTX rounds them."""

"""Compute with NumPy on arrays over lanes what the lowerings of instructions say."""

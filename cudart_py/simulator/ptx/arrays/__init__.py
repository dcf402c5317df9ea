"""Execute the lowerings of instructions with NumPy, on arrays over lanes."""

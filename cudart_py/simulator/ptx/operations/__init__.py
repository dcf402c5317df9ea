"""The operations of instructions on NumPy arrays; nothing here depends on programs."""

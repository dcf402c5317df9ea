"""Functions in machine code that kernels call: one per kind of access, and one per warp-wide operation."""

"""The seam, where a CUDA driver is chosen and called, and the one unwrap of the results of its calls."""

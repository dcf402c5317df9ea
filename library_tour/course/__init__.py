"""The stops of the course, one per module; a stop's device code has the same stem in kernels/."""

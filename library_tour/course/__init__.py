"""The stops: one in each file, beside its device code of the same stem in kernels/."""

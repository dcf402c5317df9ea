"""The course: one stop a file, beside its device code of the same stem in kernels/."""

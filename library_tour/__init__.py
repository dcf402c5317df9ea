"""A tour of CUDA: `library-tour` runs its programs, one stop per topic."""

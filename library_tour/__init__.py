"""Programs that tour CUDA: `library-tour` runs them, one stop a topic."""

"""The backend, which is the CUDA driver in use, calls of it, and the one unwrap of their results."""

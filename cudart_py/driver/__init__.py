"""The backend, which is the CUDA driver in use, calls of its functions, and the unwrapping of their results."""

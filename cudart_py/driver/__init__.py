"""The backend (the CUDA driver in use), calls to its functions, and the unwrapping of their results."""

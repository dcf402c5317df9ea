"""The CUDA libraries: one stop a file."""

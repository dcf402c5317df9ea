"""The stops of CUDA's libraries, one module each."""

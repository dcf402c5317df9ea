"""The stops on the CUDA libraries, one module each."""

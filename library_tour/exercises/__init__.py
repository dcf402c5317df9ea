"""The starting code of the exercises, in CUDA C++ or Python."""

"""What the exercises start from: one file a stop, in CUDA C++ or Python."""

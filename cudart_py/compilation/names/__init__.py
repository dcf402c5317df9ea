"""The names and the parameters of kernels, as C++ declares them."""

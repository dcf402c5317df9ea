"""A CUDA driver in software, with the functions, enumerations and result tuples of `cuda.bindings.driver`."""

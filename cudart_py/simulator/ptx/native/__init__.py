"""Turn a kernel into machine code through LLVM, as a function that runs one warp: the engine beside NumPy's."""

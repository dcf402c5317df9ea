"""Turn a kernel into machine code through LLVM, as a function that runs one warp: the engine beside NumPy's.

`writing` writes the kernel for LLVM, with `lowering` for its instructions and `library` for the functions that all
kernels call. `machine` compiles it, and `launching` runs its launches.
"""

"""The native engine: compile a kernel through LLVM into a function that runs one warp.

`writing` writes the kernel for LLVM, with `lowering` for its instructions and `library` for the functions that all
kernels call. `machine` compiles it, and `launching` runs its launches.
"""

"""The native engine: compile a kernel through LLVM into a function that runs one warp.

`writing` generates the kernel's LLVM IR, `lowering` the IR of its instructions, and `library` the functions that all
kernels call. `machine` compiles the IR, and `launching` runs the kernel's launches.
"""

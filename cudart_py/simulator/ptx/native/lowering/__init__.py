"""Lower instructions to LLVM operations on vectors of 32 lanes."""

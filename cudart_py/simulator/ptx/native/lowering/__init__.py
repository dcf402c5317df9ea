"""Write instructions as LLVM's operations on vectors of 32 lanes."""

"""Generate a kernel's LLVM IR: its basic blocks, their scheduling, and the code for checks and counters."""

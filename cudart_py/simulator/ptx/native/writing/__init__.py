"""Write a kernel as LLVM IR: its basic blocks, their scheduling, and the code for checks and counters."""

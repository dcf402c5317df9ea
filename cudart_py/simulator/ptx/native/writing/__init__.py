"""Write a kernel in LLVM's language: its blocks, the choice of the next one, and what checks and counters need."""

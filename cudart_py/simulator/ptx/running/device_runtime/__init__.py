"""The device runtime: printf, the heap, assertions, and launches by kernels."""

"""The debugger: it stops kernels on the simulator at source lines, and shows the state of their warps."""

"""The debugger: it stops kernels on the simulator at their source lines, and shows what their warps do."""

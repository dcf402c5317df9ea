"""The names of the shared libraries, and of the program, that have a stand-in."""

DRIVER = "libcuda.so.1"
RUNTIME = "libcudart.so.13"
COMPILER = "libnvrtc.so.13"
LINKER = "libnvJitLink.so.13"
# The assembler, a program of CUDA: Triton starts it.
ASSEMBLER = "ptxas"
# Next to a stand-in, this folder has a link to the library of the same name.
REAL = "real"

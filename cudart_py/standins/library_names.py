"""The names of the shared libraries that have a stand-in."""

DRIVER = "libcuda.so.1"
RUNTIME = "libcudart.so.13"
COMPILER = "libnvrtc.so.13"
LINKER = "libnvJitLink.so.13"
# Beside a stand-in, this folder has a link to the library of the same name.
REAL = "real"

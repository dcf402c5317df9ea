"""Stand-ins for CUDA's shared libraries, so that any CUDA program can use the simulator as its driver.

`library.py` writes C code with one function per function of libcuda or libcudart, compiles it with the system's C
compiler, and keeps the result in the cache. `start.c` starts Python at the first call, or joins the Python that is
already running. `driver/` and `runtime/` contain the functions' implementations in Python, which call the simulator's
driver functions. `command/` starts programs with these libraries. The simulator does not depend on this package.
"""

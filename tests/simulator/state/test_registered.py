"""Registered host memory that the garbage collector drops in the middle of a kernel."""

from __future__ import annotations

PROGRAM = r"""
import gc
import numpy as np
import cudart_py as cuda
from cudart_py.simulator.state import memory
from cudart_py.simulator.ptx.running.scheduler import Chunk

gc.disable()

run = Chunk.run

def collect_and_run(*arguments):
    gc.collect()
    return run(*arguments)

Chunk.run = collect_and_run

class Holder:
    pass

kernel = cuda.compile('''
extern "C" __global__ void write(int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = i;
}
''')["write"]
array = np.zeros(1 << 20, np.int32)
address = array.ctypes.data
holder = Holder()
holder.memory = cuda.register_host(array)
holder.itself = holder
kernel[4096, 256](array)
del array, holder
cuda.Device(0).synchronize()
print("fine", memory.live.find(address), memory.known.find(address))
"""


def test_it_stays_till_the_kernel_has_ended(python):
    done = python(PROGRAM, check=False, CUDART_PY_DRIVER="simulator")
    assert (done.returncode, done.stdout) == (0, "fine None None\n"), done.stderr

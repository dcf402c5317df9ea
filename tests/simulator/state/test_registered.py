"""Registered host memory that the garbage collector drops in the middle of a kernel."""

from __future__ import annotations

import pytest

# What each engine calls in the middle of a kernel.
STEPS = {
    "numpy": "from cudart_py.simulator.ptx.running.scheduler import Chunk as Running; step = 'run'",
    "native": "from cudart_py.simulator.ptx.native.launching.launch import NativeLaunch as Running; step = '_call'",
}
PROGRAM = r"""
import gc
import numpy as np
import cudart_py as cuda
from cudart_py.simulator.state import memory

gc.disable()

run = getattr(Running, step)

def collect_and_run(*arguments):
    gc.collect()
    return run(*arguments)

setattr(Running, step, collect_and_run)

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


@pytest.mark.parametrize("engine", STEPS)
def test_it_stays_till_the_kernel_has_ended(python, engine):
    if engine == "native":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    chosen = {"CUDART_PY_DRIVER": "simulator", "CUDART_PY_SIMULATOR_ENGINE": engine}
    done = python(STEPS[engine] + PROGRAM, check=False, **chosen)
    assert (done.returncode, done.stdout) == (0, "fine None None\n"), done.stderr

"""A launch's memory doesn't grow with its blocks: what has run goes at once, by counting references."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.ptx.running.groups import Group
from cudart_py.simulator.ptx.running.launch import LaunchState
from cudart_py.simulator.ptx.running.scheduler import Chunk

# What is counted is this process's memory, in which a driver in software keeps a launch.
pytestmark = pytest.mark.needs("in_process")

SOURCE = r"""
extern "C" __global__ void tiles(int *out) {
    __shared__ int tile[12288];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x % 2 == 0) tile[threadIdx.x] += __shfl_sync(__activemask(), tile[threadIdx.x], 0);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = tile[1];
}
extern "C" __global__ void unwritten(int *out) {
    __shared__ int tile[12288];
    if (tile[threadIdx.x + 1] == 7) out[0] = 1;
}
extern "C" __global__ void ordered(int *out) {
    out[1 + blockIdx.x * blockDim.x + threadIdx.x] = 1;
    __threadfence();
    atomicAdd(out, 1);
}
extern "C" __global__ void astray(int *out, int last) {
    __shared__ int tile[12288];
    tile[threadIdx.x] = 1;
    if (threadIdx.x % 2) __syncthreads();
    if (threadIdx.x == last) *(int *)8 = tile[threadIdx.x ^ 1];
}
"""
THREADS = 256
# The machine runs that many blocks together.
CHUNK = 32768 // THREADS


@pytest.fixture(scope="module")
def module() -> cuda.Module:
    return cuda.compile(SOURCE)


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Switch the garbage collector off, so that what lies in a cycle stays."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def left() -> list[type]:
    """Return the types of what is left of launches."""
    return [type(thing) for thing in gc.get_objects() if isinstance(thing, Chunk | Group | LaunchState)]


engines = pytest.mark.parametrize("engine", ["numpy", "native"])


def choose(monkeypatch, engine):
    if engine == "native":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)


@engines
@pytest.mark.filterwarnings("ignore::cudart_py.SimulatorWarning")  # because one kernel's reads are wrong on purpose
@pytest.mark.parametrize("mode", ["warn", "off"])
@pytest.mark.parametrize("kernel", ["tiles", "unwritten", "ordered"])
def test_nothing_is_left_of_a_launch(module, no_collection, monkeypatch, kernel, mode, engine):
    choose(monkeypatch, engine)
    out = cuda.zeros(3 * CHUNK * THREADS + 1, np.int32)
    with cuda.checks(mode), cuda.profile():
        module[kernel][3 * CHUNK, THREADS](out)
        cuda.Device(0).synchronize()
    assert left() == []


@engines
@pytest.mark.parametrize("mode", ["warn", "off"])
def test_nothing_is_left_of_a_launch_that_failed(python, monkeypatch, mode, engine):
    choose(monkeypatch, engine)
    program = f"""
import gc
gc.disable()
import cudart_py as cuda, numpy as np
from tests.simulator.calls.test_launch_memory import SOURCE, left
out = cuda.zeros(1000, np.int32)
with cuda.checks({mode!r}):
    cuda.compile(SOURCE)["astray"][300, 256](out, 77)
    try:
        cuda.Device(0).synchronize()
    except cuda.CudaError as error:
        print(error.status.name)
print(left())
"""
    assert python(program).stdout.splitlines() == ["CUDA_ERROR_ILLEGAL_ADDRESS", "[]"]


@pytest.mark.parametrize("kernel", ["tiles", "ordered"])
def test_the_peak_of_memory_does_not_grow_with_the_blocks(module, no_collection, monkeypatch, kernel):
    """Machine code that checks watch keeps a copy of what the launch changes, which may grow with the blocks."""
    choose(monkeypatch, "numpy")
    out = cuda.zeros(24 * CHUNK * THREADS + 1, np.int32)

    def peak(chunks: int) -> int:
        tracemalloc.start()
        module[kernel][chunks * CHUNK, THREADS](out)
        cuda.Device(0).synchronize()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(4)  # which also makes what is kept for good
    assert peak(24) < 1.25 * peak(4)

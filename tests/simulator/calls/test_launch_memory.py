"""A launch's memory does not grow with its blocks: reference counting frees the state of finished blocks at once."""

import ctypes
import gc
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator import driver
from cudart_py.simulator.ptx.running.groups import Group
from cudart_py.simulator.ptx.running.launch import LaunchState
from cudart_py.simulator.ptx.running.scheduler import Chunk
from tests.simulator.kernels import function, launch, loaded
from tests.simulator.support import Status, upload

# The tests measure this process's memory, where only a simulated driver keeps the state of a launch.
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
extern "C" __global__ void astray(int *out) {
    __shared__ int tile[12288];
    tile[threadIdx.x] = 1;
    if (threadIdx.x % 2) __syncthreads();
    if (threadIdx.x == 77) *(int *)8 = tile[threadIdx.x ^ 1];
}
"""
THREADS = 256
# The number of blocks that the machine runs together.
CHUNK = 32768 // THREADS


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Disable the garbage collector, so that reference cycles are not freed."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def run(name: str, blocks: int) -> Status:
    out = ctypes.c_void_p(upload(np.zeros(blocks * THREADS + 1, np.int32)))
    assert not launch(function(loaded(SOURCE), name), out, grid=(blocks, 1, 1), block=(THREADS, 1, 1))
    return driver.cuCtxSynchronize()[0]


@pytest.mark.parametrize("mode", ["warn", "off"])
@pytest.mark.parametrize("kernel", ["tiles", "unwritten", "ordered", "astray"])
@pytest.mark.filterwarnings(
    "ignore::cudart_py.errors.SimulatorWarning"
)  # because one kernel reads uninitialised values on purpose
def test_nothing_is_left_of_a_launch(context, no_collection, engine, kernel, mode):
    with cuda.sanitizer(mode), cuda.profile():
        status = run(kernel, CHUNK + 1)
    assert status == (Status.CUDA_ERROR_ILLEGAL_ADDRESS if kernel == "astray" else Status.CUDA_SUCCESS)
    assert [type(thing) for thing in gc.get_objects() if isinstance(thing, Chunk | Group | LaunchState)] == []


@pytest.mark.parametrize("kernel", ["tiles", "ordered"])
def test_the_peak_of_memory_does_not_grow_with_the_blocks(context, no_collection, monkeypatch, kernel):
    """This holds for the NumPy engine without checks.

    With checks, machine code keeps a copy of the memory that the launch changes, which may grow with the blocks.
    """
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "numpy")

    def peak(chunks: int) -> int:
        tracemalloc.start()
        with cuda.sanitizer("off"):
            run(kernel, chunks * CHUNK)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(2)  # also creates the objects that are kept permanently
    assert peak(8) < 1.25 * peak(2)

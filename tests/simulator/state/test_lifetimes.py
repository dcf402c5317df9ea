"""Nothing is left behind: by objects made and ended, by finalizers in the middle of work, by the interpreter's end."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.calls import events, functions, modules
from cudart_py.simulator.calls.graphs import executables
from cudart_py.simulator.state import contexts, memory, streams
from cudart_py.simulator.state.memory import pools
from cudart_py.simulator.state.queue import captures, graphs, scheduling
from cudart_py.simulator.state.queue.operations import Operation
from cudart_py.simulator.state.streams import find_stream
from tests.simulator.kernels import ptx
from tests.simulator.support import Status, ok, upload

COUNT = 300
MANY = pytest.param(10_000, marks=pytest.mark.exhaustive)


def live() -> tuple[int, ...]:
    """Count all that a driver holds."""
    tables = (
        streams.streams,
        events.events,
        modules.modules,
        functions.functions,
        graphs.graphs,
        graphs.nodes,
        executables.executables,
        pools.pools,
    )
    context = contexts.current()
    return (
        *map(len, tables),
        len(memory.known.by_start),
        len(memory.live.by_start),
        len(context.textures),
        len(captures.active),
        context.pending,
        *ok(driver.cuMemGetInfo()),
    )


def _stream() -> None:
    ok(driver.cuStreamDestroy(ok(driver.cuStreamCreate(1))))


def _busy_stream() -> None:
    stream = ok(driver.cuStreamCreate(1))
    ok(driver.cuEventRecord(event_of_the_test[0], stream))
    ok(driver.cuStreamDestroy(stream))


event_of_the_test: list[Any] = [None]


def _event() -> None:
    event = ok(driver.cuEventCreate(0))
    ok(driver.cuEventRecord(event, 0))
    ok(driver.cuEventDestroy(event))


def _memory() -> None:
    ok(driver.cuMemFree(ok(driver.cuMemAlloc(100))))


def _pool_memory() -> None:
    ok(driver.cuMemFreeAsync(ok(driver.cuMemAllocAsync(100, 0)), 0))


def _pinned() -> None:
    ok(driver.cuMemFreeHost(ok(driver.cuMemHostAlloc(100, 0))))


def _managed() -> None:
    ok(driver.cuMemFree(ok(driver.cuMemAllocManaged(100, 1))))


def _registered() -> None:
    array = np.zeros(10)
    ok(driver.cuMemHostRegister(array, array.nbytes, 0))
    ok(driver.cuMemHostUnregister(array))


def _module() -> None:
    ok(driver.cuModuleUnload(ok(driver.cuModuleLoadData(SMALL))))


def _graph() -> None:
    stream = stream_of_the_test[0]
    ok(driver.cuStreamBeginCapture(stream, 0))
    ok(driver.cuMemsetD8Async(address_of_the_test[0], 0, 1, stream))
    graph = ok(driver.cuStreamEndCapture(stream))
    ok(driver.cuGraphExecDestroy(ok(driver.cuGraphInstantiate(graph, 0))))
    ok(driver.cuGraphDestroy(graph))


def _pool() -> None:
    properties = bindings.CUmemPoolProps()
    properties.allocType = bindings.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    ok(driver.cuMemPoolDestroy(ok(driver.cuMemPoolCreate(properties))))


stream_of_the_test: list[Any] = [None]
address_of_the_test: list[int] = [0]
SMALL = b".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 4 .u32 x;\n"


@pytest.mark.parametrize("count", [COUNT, MANY])
@pytest.mark.parametrize(
    "use",
    [
        _stream,
        _busy_stream,
        _event,
        _memory,
        _pool_memory,
        _pinned,
        _managed,
        _registered,
        _module,
        _graph,
        _pool,
    ],
    ids=lambda use: use.__name__.strip("_"),
)
def test_counts_return_to_the_start_after_many(context: Any, use: Callable[[], None], count: int) -> None:
    event_of_the_test[0] = ok(driver.cuEventCreate(0))
    stream_of_the_test[0] = ok(driver.cuStreamCreate(1))
    address_of_the_test[0] = upload(np.zeros(1, np.uint8))
    ok(driver.cuDeviceGetDefaultMemPool(0))
    # Arrays that other tests have left are freed now, in a stream, and not in between.
    gc.collect()
    ok(driver.cuCtxSynchronize())
    start = live()
    for _ in range(count):
        use()
    ok(driver.cuCtxSynchronize())
    assert live() == start


def test_work_may_free_memory_that_other_work_is_done_with(context: Any) -> None:
    """Finalizers run wherever the garbage collector is called, in the middle of a kernel too."""
    stream = ok(driver.cuStreamCreate(1))
    address, pinned = upload(np.zeros(10, np.uint8)), ok(driver.cuMemHostAlloc(10, 0))
    module = ok(driver.cuModuleLoadData(ptx()))

    def finalize() -> None:
        ok(driver.cuMemFree(address))
        ok(driver.cuMemFreeHost(pinned))
        ok(driver.cuModuleUnload(module))
        assert driver.cuMemFree(address) == (Status.CUDA_ERROR_INVALID_VALUE,)

    class Finalizing(Operation):
        def run(self, context: Any) -> None:
            finalize()

    scheduling.enqueue(find_stream(stream), Finalizing())
    ok(driver.cuStreamSynchronize(stream))
    assert memory.live.find(address) is None
    assert memory.live.find(pinned) is None
    free, total = ok(driver.cuMemGetInfo())
    assert free == total


def test_what_asks_to_wait_in_the_middle_of_a_kernel_goes_on_at_once(python: Any) -> None:
    """A finalizer may synchronise while a kernel runs; here the stream that the kernel prints to does so."""
    program = """
import io, sys
import cudart_py as cuda
class Output(io.StringIO):
    def write(self, text):
        behind.synchronize()
        sys.stderr.write(text)
sys.stdout = Output()
speak = cuda.compile('extern "C" __global__ void speak() { printf("spoken "); }')["speak"]
first, behind = cuda.Stream(), cuda.Stream()
speak[1, 1, 0, first]()
speak[1, 1, 0, behind]()
first.synchronize()
behind.synchronize()
"""
    assert python(program, CUDART_PY_DRIVER="simulator").stderr == "spoken spoken "


def test_the_interpreter_ends_in_silence_with_everything_alive() -> None:
    program = """
from cudart_py.simulator import driver as d
d.cuInit(0)
d.cuCtxSetCurrent(d.cuDevicePrimaryCtxRetain(0)[1])
stream = d.cuStreamCreate(0)[1]
address = d.cuMemAlloc(1000)[1]
d.cuMemAllocAsync(1000, stream)
d.cuMemHostAlloc(1000, 0)
d.cuMemsetD8Async(address, 1, 1000, stream)
"""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert finished.stdout == finished.stderr == ""

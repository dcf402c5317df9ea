"""Nothing is left behind: by objects made and ended, by finalizers in the middle of work, by the interpreter's end."""

from __future__ import annotations

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
from tests.simulator.support import Status, ok, struct, upload

COUNT = 60
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


@pytest.fixture
def things(stream: Any) -> dict[str, Any]:
    return {"stream": stream, "event": ok(driver.cuEventCreate(0)), "address": upload(np.zeros(1, np.uint8))}


def _graph(stream: Any, address: int) -> None:
    ok(driver.cuStreamBeginCapture(stream, 0))
    ok(driver.cuMemsetD8Async(address, 0, 1, stream))
    graph = ok(driver.cuStreamEndCapture(stream))
    ok(driver.cuGraphExecDestroy(ok(driver.cuGraphInstantiate(graph, 0))))
    ok(driver.cuGraphDestroy(graph))


def _busy_stream(event: Any) -> None:
    stream = ok(driver.cuStreamCreate(1))
    ok(driver.cuEventRecord(event, stream))
    ok(driver.cuStreamDestroy(stream))


def _event() -> None:
    event = ok(driver.cuEventCreate(0))
    ok(driver.cuEventRecord(event, 0))
    ok(driver.cuEventDestroy(event))


def _registered() -> None:
    array = np.zeros(10)
    ok(driver.cuMemHostRegister(array, array.nbytes, 0))
    ok(driver.cuMemHostUnregister(array))


POOL = struct(
    "CUmemPoolProps",
    allocType=bindings.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED,
    location__type=bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE,
)
SMALL = b".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 4 .u32 x;\n"
USES: dict[str, Callable[[dict[str, Any]], None]] = {
    "stream": lambda t: ok(driver.cuStreamDestroy(ok(driver.cuStreamCreate(1)))),
    "busy stream": lambda t: _busy_stream(t["event"]),
    "event": lambda t: _event(),
    "memory": lambda t: ok(driver.cuMemFree(ok(driver.cuMemAlloc(100)))),
    "pool's memory": lambda t: ok(driver.cuMemFreeAsync(ok(driver.cuMemAllocAsync(100, 0)), 0)),
    "pinned": lambda t: ok(driver.cuMemFreeHost(ok(driver.cuMemHostAlloc(100, 0)))),
    "managed": lambda t: ok(driver.cuMemFree(ok(driver.cuMemAllocManaged(100, 1)))),
    "registered": lambda t: _registered(),
    "module": lambda t: ok(driver.cuModuleUnload(ok(driver.cuModuleLoadData(SMALL)))),
    "graph": lambda t: _graph(t["stream"], t["address"]),
    "pool": lambda t: ok(driver.cuMemPoolDestroy(ok(driver.cuMemPoolCreate(POOL)))),
}


@pytest.mark.parametrize("count", [COUNT, MANY])
@pytest.mark.parametrize("use", USES)
def test_counts_return_to_the_start_after_many(things: dict[str, Any], no_garbage: None, use: str, count: int) -> None:
    ok(driver.cuDeviceGetDefaultMemPool(0))
    ok(driver.cuCtxSynchronize())
    start = live()
    for _ in range(count):
        USES[use](things)
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

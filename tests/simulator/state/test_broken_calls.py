"""A call that is ended by an exception, such as RecursionError, leaves the driver's tables as before or after it."""

import inspect
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator import driver
from cudart_py.simulator.state import contexts, memory
from tests.simulator.kernels import ptx
from tests.simulator.support import Status, ok, upload

from .reentry import live


def check_tables() -> None:
    for index in (memory.known, memory.live):
        assert index.starts == sorted(index.by_start)
        assert all(start == allocation.address for start, allocation in index.by_start.items())
    device = contexts.current().device
    for pool in device.pools.values():
        owned = [one for one in memory.known.by_start.values() if one.pool is pool]
        assert pool.used == sum(one.reserved for one in owned)
        assert pool.reserved == pool.used + sum(block.capacity for block in pool.blocks)
        assert {one.address: one.reserved for one in owned} == pool.capacities
    on_device = [one for one in memory.live.by_start.values() if one.device is device and one.kind in memory.ON_DEVICE]
    others = [one.reserved for one in on_device if one.pool is None]
    assert device.used == sum(others) + sum(pool.reserved for pool in device.pools.values())


CALLS: dict[str, Callable[[], Any]] = {
    "allocate": lambda: driver.cuMemAlloc(1000),
    "free": lambda: driver.cuMemFree(made["allocated"]),
    "allocate in a stream": lambda: driver.cuMemAllocAsync(5000, 0),
    "allocate again": lambda: driver.cuMemAllocAsync(700, 0),
    "free in a stream": lambda: driver.cuMemFreeAsync(made["pooled"], 0),
    "free another's in a stream": lambda: driver.cuMemFreeAsync(made["allocated"], 0),
    "allocate page-locked": lambda: driver.cuMemHostAlloc(1000, 0),
    "free page-locked": lambda: driver.cuMemFreeHost(made["page-locked"]),
    "fill": lambda: driver.cuMemsetD8(made["allocated"], 1, 1000),
    "synchronize": lambda: driver.cuCtxSynchronize(),
    "load": lambda: driver.cuModuleLoadData(ptx()),
}
made: dict[str, Any] = {}


@pytest.fixture(params=CALLS)
def call(request: pytest.FixtureRequest, context: Any, no_garbage: None) -> Iterator[Callable[[], Any]]:
    """Yield a call that changes the tables, after preparing the memory that it needs."""
    ok(driver.cuCtxSynchronize())
    made.update(allocated=ok(driver.cuMemAlloc(1000)), pooled=ok(driver.cuMemAllocAsync(3000, 0)))
    made["page-locked"] = ok(driver.cuMemHostAlloc(1000, 0))
    ok(driver.cuMemFreeAsync(ok(driver.cuMemAllocAsync(600, 0)), 0))
    check_tables()
    yield CALLS[request.param]
    ok(driver.cuCtxSynchronize())


def free(result: Any) -> None:
    if result[0] == Status.CUDA_SUCCESS and len(result) > 1:
        ways = (driver.cuMemFree, driver.cuMemFreeHost, driver.cuModuleUnload)
        assert any(way(int(result[1]))[0] == Status.CUDA_SUCCESS for way in ways)


def test_at_any_depth_of_the_stack(call: Callable[[], Any]) -> None:
    before, refused, depth = live(), 0, len(inspect.stack(0))

    def deeper(levels: int) -> Any:
        return deeper(levels - 1) if levels else call()

    for left in range(1, 160, 5):
        try:
            result = deeper(sys.getrecursionlimit() - depth - left)
        except RecursionError:
            refused += 1
            check_tables()
            assert live() == before
        else:
            assert result[0] == Status.CUDA_SUCCESS
            check_tables()
            free(result)
            break
    assert refused


# The functions of the memory tables that allocate memory, from Python or from the operating system.
NEEDY = {"__init__", "open", "_open_pages", "add", "record", "call_site"}


def test_where_there_is_no_memory_left(call: Callable[[], Any]) -> None:
    """Each function that allocates memory raises a MemoryError, one after another."""
    left = 0

    def plant(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        code = frame.f_code
        if event == "call" and code.co_name in NEEDY and "/simulator/state/memory/" in code.co_filename:
            left -= 1
            if not left:
                sys.setprofile(None)
                raise MemoryError

    for step in range(1, 30):
        left = step
        sys.setprofile(plant)
        try:
            result = call()
        except MemoryError:
            result = (None,)
        finally:
            sys.setprofile(None)
        check_tables()
        if result[0] == Status.CUDA_SUCCESS:
            free(result)
            break
    assert left > 0 or result[0] == Status.CUDA_SUCCESS


def test_an_interrupt_arrives_behind_the_call(call: Callable[[], Any]) -> None:
    """Ctrl-C at any line of the driver raises KeyboardInterrupt after the call, or interrupts running work."""
    before, left = signal.signal(signal.SIGINT, signal.default_int_handler), 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if "/simulator/" not in frame.f_code.co_filename:
            return None
        left -= 1
        if left == 0:
            signal.raise_signal(signal.SIGINT)
        return trace

    try:
        for step in range(1, 400, 19):
            left = step
            sys.settrace(trace)
            try:
                call()
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(None)
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            check_tables()
    finally:
        signal.signal(signal.SIGINT, before)
    ok(driver.cuMemFree(upload(np.arange(4, dtype=np.int32))))

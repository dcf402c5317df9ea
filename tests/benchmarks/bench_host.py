"""What a call costs the host: beside a bare call of the bindings, a group each, so that the table has the ratio.

The ratio holds within one run; from machine to machine the times themselves do not.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver

import cudart_py as cuda
from cudart_py.driver import seam

SOURCE = 'extern "C" __global__ void five(float a, const float *x, const float *y, float *z, unsigned n) {}'
GRID, BLOCK, SIZE = 4, 256, 1024
MIB = 1 << 20


class Things:
    """What the calls work on."""

    def __init__(self) -> None:
        self.stream = cuda.Stream(non_blocking=True)
        self.kernel = cuda.compile(SOURCE)["five"]
        self.x, self.y, self.z = (cuda.zeros(SIZE, np.float32, stream=self.stream) for _ in range(3))
        self.pinned = cuda.pinned_empty(SIZE, np.float32)
        self.pinned[:] = 1
        self.event = self.stream.record()
        self.stream.synchronize()
        with self.stream.capture() as graph:
            for _ in range(10):
                self.kernel[GRID, BLOCK, 0, self.stream](2.0, self.x, self.y, self.z, SIZE)
        self.graph = graph.instantiate()


@pytest.fixture
def things(device: cuda.Device) -> Iterator[Things]:
    found = Things()
    yield found
    found.stream.synchronize()


def bare_launch(t: Things) -> Callable[[], object]:
    """Pack the parameters once: a list of their address and size, in the layout of cuLaunchKernel's `extra`."""
    layout = struct.Struct("<f4xQQQI")
    buffer, size = ctypes.create_string_buffer(layout.size), ctypes.c_size_t(layout.size)
    layout.pack_into(buffer, 0, 2.0, t.x.pointer, t.y.pointer, t.z.pointer, SIZE)
    extra = (ctypes.c_uint64 * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 0)
    launch, where, keep = seam.raw.cuLaunchKernel, ctypes.addressof(extra), (buffer, size, extra)
    function, stream = driver.CUfunction(t.kernel.handle), driver.CUstream(t.stream.handle)
    return lambda keep=keep: launch(function, GRID, 1, 1, BLOCK, 1, 1, 0, stream, 0, where)  # type: ignore[misc]  # the default keeps what `where` points to


def bare_allocation(t: Things) -> Callable[[], object]:
    make, drop, stream = seam.raw.cuMemAllocAsync, seam.raw.cuMemFreeAsync, driver.CUstream(t.stream.handle)
    return lambda: drop(make(MIB, stream)[1], stream)


def bare(name: str, *arguments: Callable[[Things], Any]) -> Callable[[Things], Callable[[], object]]:
    """Return what makes a call of a driver's function, with the arguments made beforehand."""

    def make(t: Things) -> Callable[[], object]:
        function, values = getattr(seam.raw, name), [argument(t) for argument in arguments]
        return lambda: function(*values)

    return make


def stream_of(t: Things) -> Any:
    return driver.CUstream(t.stream.handle)


def launch(t: Things) -> Any:
    return t.kernel[GRID, BLOCK, 0, t.stream]


def checked(t: Things) -> Callable[[], object]:
    call = launch(t)
    return lambda: call(2.0, t.x, t.y, t.z, SIZE)


CALLS: dict[str, dict[str, Callable[[Things], Callable[[], object]]]] = {
    "launch": {
        "bare": bare_launch,
        "bound": lambda t: launch(t).bind(2.0, t.x, t.y, t.z, SIZE),  # type: ignore[no-any-return]  # `launch` is Any
        "checked": checked,
        "whole line": lambda t: lambda: t.kernel[GRID, BLOCK, 0, t.stream](2.0, t.x, t.y, t.z, SIZE),
    },
    "event record": {
        "bare": bare("cuEventRecord", lambda t: driver.CUevent(t.event.handle), stream_of),
        "ours": lambda t: lambda: t.event.record(t.stream),
    },
    "memset 4 KiB": {
        "bare": bare(
            "cuMemsetD32Async", lambda t: driver.CUdeviceptr(t.x.pointer), lambda t: 0, lambda t: SIZE, stream_of
        ),
        "ours": lambda t: lambda: cuda.memset(t.x, 0, stream=t.stream),
    },
    "upload 4 KiB": {
        "bare": bare(
            "cuMemcpyHtoDAsync",
            lambda t: driver.CUdeviceptr(t.x.pointer),
            lambda t: t.pinned.ctypes.data,
            lambda t: t.pinned.nbytes,
            stream_of,
        ),
        "ours": lambda t: lambda: cuda.memcpy(t.x, t.pinned, stream=t.stream),
    },
    "allocate and free 1 MiB": {
        "bare": bare_allocation,
        "ours": lambda t: lambda: cuda.empty(MIB, np.uint8, stream=t.stream).close(),
    },
    "graph of 10 launches": {
        "bare": bare("cuGraphLaunch", lambda t: driver.CUgraphExec(t.graph.handle), stream_of),
        "ours": lambda t: lambda: t.graph.launch(t.stream),
    },
}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=f"{what}, {way}", marks=pytest.mark.benchmark(group=f"host: {what}"))
        for what, ways in CALLS.items()
        for way, make in ways.items()
    ],
)
def test_call(host_benchmark: Any, things: Things, make: Callable[[Things], Callable[[], object]]) -> None:
    host_benchmark(make(things), stream=things.stream)

"""Calls from C, of cuda.core and of CuPy that correspond to the wrappers in `host_calls`."""

import ctypes
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import cudart_py as cuda

from .c_loops import compile_c
from .host_things import BLOCK, GRID, MIB, SIZE, SOURCE, Call, Things
from .report import attempt, tried


def c_loops(t: Things) -> dict[str, Callable[[int], float]]:
    """Return loops in C by the name of the wrapper; a loop takes the number of calls."""
    c = compile_c()
    if c is None:
        return {}
    s, host, nbytes = t.stream.handle, t.host.ctypes.data, 4 * SIZE
    x, y, z = t.x.pointer, t.y.pointer, t.z.pointer
    return {
        "launch": partial(c.launch, t.kernel.handle, 2.0, x, y, z, SIZE, s),
        "event record": partial(c.record, t.event.handle, s),
        "memset 4 KiB": partial(c.fill, x, SIZE, s),
        "upload 4 KiB": partial(c.upload, x, host, nbytes, s),
        "download 4 KiB": partial(c.download, host, x, nbytes, s),
        "copy 4 KiB on the device": partial(c.copy, y, x, nbytes, s),
        "allocate and free 1 MiB": partial(c.allocate, MIB, s),
        "graph of 10 launches": partial(c.graph, t.executable.handle, s),
    }


def rivals(t: Things) -> dict[tuple[str, str], Call]:
    """Return the calls of other packages, by the wrapper's name and theirs; print and leave out those that fail."""
    if "interop" not in cuda.capabilities():
        return {}  # other packages would use addresses that only this driver knows
    found: dict[tuple[str, str], Call] = {}
    for name, calls in (("cuda.core", core_calls), ("CuPy", cupy_calls)):
        for what, how, call in attempt(name, list, calls(t)) or ():
            if attempt(f"{how}, {what}", tried, call):
                found[what, how] = call
    return found


def core_calls(t: Things) -> Iterator[tuple[str, str, Call]]:
    from cuda import core

    device = core.Device(t.device.ordinal)
    device.set_current()
    stream = core.Stream.from_handle(t.stream.handle)
    kernel = core.ObjectCode.from_cubin(t.module.cubin).get_kernel("five")
    config = core.LaunchConfig(grid=GRID, block=BLOCK)
    event, memory = device.create_event(), device.memory_resource
    x, y, z = (memory.allocate(4 * SIZE, stream=stream) for _ in range(3))
    launch, float32, uint32, allocate = core.launch, np.float32, np.uint32, memory.allocate
    # cuda.core takes the types of scalars from NumPy, so a caller must create NumPy scalars for each call.
    yield "launch", "cuda.core, Buffers", lambda: launch(stream, config, kernel, float32(2.0), x, y, z, uint32(SIZE))
    addresses = (float32(2), t.x.pointer, t.y.pointer, t.z.pointer, uint32(SIZE))
    how = "cuda.core, addresses and NumPy scalars made beforehand"
    yield "launch", how, partial(launch, stream, config, kernel, *addresses)
    yield "event record", "cuda.core, without timing by default", partial(stream.record, event)
    yield "allocate and free 1 MiB", "cuda.core", lambda: allocate(MIB, stream=stream).close(stream)


def cupy_calls(t: Things) -> Iterator[tuple[str, str, Call]]:
    import cupy

    cupy.cuda.Device(t.device.ordinal).use()
    stream = cupy.cuda.Stream.from_external(t.stream)
    stream.use()
    kernel = cupy.RawKernel(SOURCE, "five")
    x, y, z = (cupy.zeros(SIZE, cupy.float32) for _ in range(3))
    arguments = (np.float32(2), x, y, z, np.uint32(SIZE))
    source = ctypes.c_void_p(t.host.ctypes.data)
    yield "launch", "CuPy RawKernel", partial(kernel, (GRID,), (BLOCK,), arguments)
    yield "event record", "CuPy", partial(cupy.cuda.Event().record, stream)
    yield "memset 4 KiB", "CuPy", lambda: x.data.memset_async(0, 4 * SIZE, stream)
    yield "upload 4 KiB", "CuPy", lambda: x.data.copy_from_host_async(source, 4 * SIZE, stream)
    yield "allocate and free 1 MiB", "CuPy (its own pool)", lambda: cupy.cuda.alloc(MIB)

"""What cuda.core and CuPy offer for some of the wrappers of `host_calls`."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import partial

import numpy as np

import cudart_py as cuda

from .host_things import BLOCK, GRID, MIB, SIZE, SOURCE, Call, Things

__all__ = ["rivals"]


def rivals(t: Things) -> dict[tuple[str, str], Call]:
    """Return what others offer, by the wrapper's name and theirs; what is not here or fails is said and left out."""
    if "interop" not in cuda.capabilities():
        return {}  # others would follow addresses that only this driver knows
    found: dict[tuple[str, str], Call] = {}
    for name, calls in (("cuda.core", core_calls), ("CuPy", cupy_calls)):
        try:
            made = list(calls(t))
        except Exception as error:  # broken installations raise anything
            print(f"{name} is left out: {type(error).__name__}: {error}")
            continue
        for what, how, call in made:
            try:
                call()
            except Exception as error:  # as above
                print(f"{how}, {what}: left out: {type(error).__name__}: {error}")
            else:
                found[what, how] = call
    return found


def core_calls(t: Things) -> Iterator[tuple[str, str, Call]]:
    """Yield cuda.core's."""
    from cuda import core

    device = core.Device(t.device.ordinal)
    device.set_current()
    stream = core.Stream.from_handle(t.stream.handle)
    kernel = core.ObjectCode.from_cubin(t.module.cubin).get_kernel("five")
    config = core.LaunchConfig(grid=GRID, block=BLOCK)
    event, memory = device.create_event(), device.memory_resource
    x, y, z = (memory.allocate(4 * SIZE, stream=stream) for _ in range(3))
    launch, float32, uint32, allocate = core.launch, np.float32, np.uint32, memory.allocate

    def with_arrays() -> None:
        # It takes the scalars' types from NumPy's, so that a caller makes them for the call.
        launch(stream, config, kernel, float32(2.0), x, y, z, uint32(SIZE))

    def allocating() -> None:
        allocate(MIB, stream=stream).close(stream)

    addresses = (float32(2), t.x.pointer, t.y.pointer, t.z.pointer, uint32(SIZE))
    yield "launch", "cuda.core, Buffers", with_arrays
    how = "cuda.core, addresses and NumPy scalars made beforehand"
    yield "launch", how, partial(launch, stream, config, kernel, *addresses)
    yield "event record", "cuda.core, without timing by default", partial(stream.record, event)
    yield "allocate and free 1 MiB", "cuda.core", allocating


def cupy_calls(t: Things) -> Iterator[tuple[str, str, Call]]:
    """Yield CuPy's."""
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

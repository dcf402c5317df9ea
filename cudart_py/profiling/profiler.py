"""The profilers that watch a process from outside: telling them where to begin and to end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..context.current import activated
from ..context.device import current_device
from ..driver.calls import api


def profiler_start() -> None:
    """Let the profiler that watches this process collect from here on (cuProfilerStart).

    The profiler obeys if it was started like this: `nsys profile --capture-range=cudaProfilerApi`, or
    `ncu --profile-from-start off`.
    Without a profiler, and on the simulator, the call changes nothing. Nor does a second call.
    """
    with activated(current_device()):
        api.cuProfilerStart()


def profiler_stop() -> None:
    """Let the profiler that watches this process stop collecting (cuProfilerStop).

    Work that was queued before may still run: synchronize first, so that the profiler has all of it.
    """
    with activated(current_device()):
        api.cuProfilerStop()


@contextlib.contextmanager
def profiler_range() -> Iterator[None]:
    """Let the profiler that watches this process collect only inside a block, as `profiler_start` describes.

    A launch returns before its kernel has run, so wait inside the block:

        with cuda.profiling.profiler_range():
            kernel[grid, block](x, y)
            device.synchronize()
    """
    profiler_start()
    try:
        yield
    finally:
        profiler_stop()

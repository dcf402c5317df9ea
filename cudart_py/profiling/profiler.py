"""Control of external profilers: start and stop their data collection."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..context.current import activated
from ..context.device import current_device
from ..driver.calls import api


def profiler_start() -> None:
    """Start data collection by the profiler that is attached to this process (cuProfilerStart).

    The profiler must have been started with `nsys profile --capture-range=cudaProfilerApi` or `ncu --profile-from-start
    off`. Without a profiler, and on the simulator, the call has no effect. A second call has no effect either.
    """
    with activated(current_device()):
        api.cuProfilerStart()


def profiler_stop() -> None:
    """Stop data collection by the profiler that is attached to this process (cuProfilerStop).

    Earlier work may still be running: synchronise first, so that the profiler records all of it.
    """
    with activated(current_device()):
        api.cuProfilerStop()


@contextlib.contextmanager
def profiler_range() -> Iterator[None]:
    """Collect data with an attached profiler only inside the `with` block; see `profiler_start`.

    A launch returns before its kernel has run, so synchronise inside the block:

        with cuda.profiling.profiler_range():
            kernel[grid, block](x, y)
            device.synchronize()
    """
    profiler_start()
    try:
        yield
    finally:
        profiler_stop()

"""Measure the time, in milliseconds, that the device takes for each of several steps in a stream.

The starting code reads a host clock as soon as a step is queued.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import cudart_py as cuda


def step_times(steps: Sequence[Callable[[], object]], stream: cuda.Stream) -> list[float]:
    """Queue all steps in the stream; return the time that the device takes for each, in milliseconds."""
    times = []
    for step in steps:
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    stream.synchronize()
    return times

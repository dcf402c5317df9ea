"""Measure the time, in milliseconds, that the device takes for each of several steps in a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import cudart_py as cuda


def step_times(steps: Sequence[Callable[[], object]], stream: cuda.Stream) -> list[float]:
    """Queue all steps in the stream; return the time that the device takes for each, in milliseconds."""
    marks = [stream.record()]
    for step in steps:
        step()
        marks.append(stream.record())
    marks[-1].synchronize()
    return [end - start for start, end in pairwise(marks)]

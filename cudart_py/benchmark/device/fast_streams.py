"""Streams with the smallest gap between launches.

The gap between two launches in a stream depends on the stream. On an H200 the streams of a process are of two kinds, in
groups of about twenty in order of creation. In slow streams a launch takes 0.13 us longer. The slow groups vary from
process to process, as if at random. So a measurement of a 3 us kernel in one stream is off by 4 % as often as not. An
empty kernel tells the kinds apart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from ...context.current import activated
from ...context.device import Device
from ...streams.stream import Stream
from .kernels import compiled

SOURCE = Path(__file__).with_name("nothing.cu")

# Streams are created in steps of this many, which is several groups, until both kinds have been found and enough
# streams are fast. On devices with only one kind, or with bad luck, this ends at MOST streams.
_AT_A_TIME = 64
MOST = 256
# The mean times of an empty kernel differ by 7 to 11 % between the two kinds. Two halves of one kind differ by 3 %.
_APART = 0.055
# No kind is slower than the fastest stream by more than this factor. Longer times are due to disturbances. They are
# clipped, because otherwise they would look like a kind of their own.
_LONGEST = 1.25


@contextlib.contextmanager
def fast_streams(
    device: Device, count: int, seconds: Callable[[Callable[[], object], Stream], float]
) -> Iterator[list[Stream]]:
    """Yield up to `count` new fast streams of a device; the end of the block closes all streams.

    There are fewer if fewer of MOST streams are fast. `seconds(launch, stream)` measures a launch in its stream.
    """
    with activated(device), contextlib.ExitStack() as stack:
        nothing = compiled(device, SOURCE)["nothing"]
        streams: list[Stream] = []
        times: list[float] = []
        while True:
            for _ in range(_AT_A_TIME):
                stream = stack.enter_context(Stream(non_blocking=True))
                streams.append(stream)
                times.append(seconds(nothing[1, 1, 0, stream].bind(), stream))
            limit = slowest_of_the_fast(times)
            fast = [stream for stream, time in zip(streams, times, strict=True) if time <= limit]
            if (count <= len(fast) < len(streams)) or len(streams) >= MOST:
                break
        chosen = min(count, len(fast))
        # Spread the chosen streams evenly over the groups.
        yield [fast[number * len(fast) // chosen] for number in range(chosen)]


def slowest_of_the_fast(times: Sequence[float]) -> float:
    """Return the longest time of the faster kind, or of all times if there is only one kind.

    The times are split in two with the least variance within the parts (Otsu's method).
    """
    ordered = np.sort(np.asarray(times, np.float64))
    usual = np.minimum(ordered, _LONGEST * ordered[0])
    splits = range(1, len(ordered))
    if not splits:
        return float(ordered[-1])
    number = min(splits, key=lambda n: n * usual[:n].var() + (len(usual) - n) * usual[n:].var())
    apart = usual[number:].mean() / usual[:number].mean() - 1
    return float(ordered[number - 1] if apart > _APART else ordered[-1])

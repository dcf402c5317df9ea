"""The search for the fastest of several algorithms, each measured on the device."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Collection
from typing import Any

from numpy.typing import NDArray

from ...streams.event import Event
from ...streams.stream import Stream

Queue = Callable[[NDArray[Any]], None]

# All algorithms are measured in the first rounds. Those whose median is at most CLOSE times the shortest are measured
# in further rounds, since two measurements of the same work differ by 1 to 3 %.
ROUNDS, FINAL_ROUNDS, CLOSE = 3, 5, 1.05
# In its turn, an algorithm runs without a break for this time, but not more often than MOST_RUNS, and the second half
# is measured. Large products run at the card's power limit, where the clock rate depends on the power that an algorithm
# takes. The rate follows so slowly that an algorithm starts with the rate of the one before. On an H200, turns of 4 and
# of 60 ms chose algorithms that were 2 to 6 % slower than the fastest, and turns of 120 ms did not. The order differs
# between rounds, so that no algorithm always follows the same one.
TURN_MILLISECONDS, MOST_RUNS = 120.0, 400


def fastest(queue: Queue, algorithms: NDArray[Any], stream: Stream) -> NDArray[Any]:
    """Return the fastest of an array of algorithms, as an array of one, and wait for the device.

    `queue` queues the work in the stream by a given algorithm. If none of them can run, the first one is returned.
    """
    candidates = range(len(algorithms))
    runs = {each: _runs(queue, algorithms[each : each + 1], stream) for each in candidates}
    times: dict[int, list[float]] = {each: [] for each in candidates if runs[each]}
    orders = random.Random(0)

    def measure(some: Collection[int], rounds: int) -> dict[int, float]:
        for _ in range(rounds):
            for each in orders.sample(sorted(some), len(some)):
                times[each].append(_milliseconds(queue, algorithms[each : each + 1], stream, runs[each]))
        return {each: statistics.median(times[each]) for each in some}

    medians = measure(times, ROUNDS)
    shortest = min(medians.values(), default=0.0)
    finalists = [each for each, median in medians.items() if median <= CLOSE * shortest]
    medians = measure(finalists, FINAL_ROUNDS if len(finalists) > 1 else 0)
    best = min(medians, key=medians.__getitem__, default=0)
    return algorithms[best : best + 1]


def _runs(queue: Queue, algorithm: NDArray[Any], stream: Stream) -> int:
    """Return how many runs of a turn are measured: 0 for an algorithm that the library recommends, but cannot run."""
    try:
        _milliseconds(queue, algorithm, stream, 1)  # loads its kernels
        once = _milliseconds(queue, algorithm, stream, 1)
    except Exception:  # statuses of the library
        return 0
    return math.ceil(min(MOST_RUNS, TURN_MILLISECONDS / max(once, 1e-3)) / 2)


def _milliseconds(queue: Queue, algorithm: NDArray[Any], stream: Stream, runs: int) -> float:
    """Return the time per run on the device, of `runs` runs that follow as many others."""
    start, end = Event(), Event()
    for _ in range(runs):
        queue(algorithm)
    start.record(stream)
    for _ in range(runs):
        queue(algorithm)
    end.record(stream)
    end.synchronize()
    return (end - start) / runs

"""Find the steps in a noisy series: the points at which a benchmark became permanently slower or faster.

The method is that of asv, the benchmark tool of NumPy and SciPy. A function that is constant between its steps is
fitted to the logarithms of the values. The fit minimises

    ln(sum of |value - level|) + 4 ln(n) / n * steps

for `n` values, where each level is the median of its values. The second term is a penalty per step, which a step must
outweigh by explaining the differences better. A single outlier has little weight. For a given number of steps, dynamic
programming finds the best fit (F. Friedrich, A. Kempe, V. Liebscher, G. Winkler: Complexity penalized M-estimation,
J. Comput. Graph. Stat. 17, 2008).
Three things differ from asv, because histories here have only a few dozen runs:

- All numbers of steps are compared exactly. asv searches for a good penalty per step and considers only the fits for
  that penalty.
- The noise of a run is assumed to be independent of the previous run. asv also tries to explain the differences by a
  slow drift, and then finds steps only in long histories.
- A level has at least three values, so one or two runs on a busy machine are not steps.

No package is used for this. asv (0.6) has no stable interface for other programs, depends on ten packages and has no
wheels for aarch64. ruptures (1.1) does not support Python 3.14. Apache Otava (0.8) pins one release of NumPy and needs
database clients.
"""

from __future__ import annotations

import itertools
import math
import statistics
from bisect import insort
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

# The minimum number of values of a level, and the smallest relative change between levels that is reported.
SHORTEST = 3
SMALLEST = 0.01
# asv's penalty per step, in units of ln(n) / n.
_PRICE = 4
# The relative deviation from its level that each value may have, since measured times are not more reproducible.
_FLOOR = 1e-3
# A longer list of steps would not explain a history, and each step costs a pass over all intervals.
_MOST_STEPS = 20
_TINY = 1e-12


def find_steps(values: Sequence[float], *, shortest: int = SHORTEST, smallest: float = SMALLEST) -> list[int]:
    """Return the indices at which a new level begins, in ascending order; none for fewer than 2 * `shortest` values.

    `values` must be positive. A level has at least `shortest` values. A step changes the level by at least the fraction
    `smallest`, 0.01 for one percent.
    """
    count = len(values)
    if count < 2 * shortest:
        return []
    logarithms = [math.log(max(value, _TINY)) for value in values]
    price = _PRICE * math.log(count)
    best, found = math.inf, list[int]()
    for error, positions in best_fits(logarithms, shortest):
        total = count * math.log(error + count * _FLOOR) + price * len(positions)
        if total < best:
            best, found = total, positions
    return _without_small(values, found, smallest)


def levels(values: Sequence[float], steps: Sequence[int]) -> list[float]:
    """Return the median of the values of each level."""
    return [statistics.median(values[start:end]) for start, end in itertools.pairwise([0, *steps, len(values)])]


def best_fits(values: Sequence[float], shortest: int) -> Iterator[tuple[float, list[int]]]:
    """Yield the best fit with 0, 1, 2, ... steps, as the sum of distances from the levels and the step indices."""
    count = len(values)
    distances = _distances(values, shortest)
    # For each number of steps: the minimum sum for the values before each end, and the last level's start in that fit.
    sums, starts = distances[0], list[NDArray[np.intp]]()
    yield float(sums[count]), []
    for _ in range(min(_MOST_STEPS, count // shortest - 1)):
        with_one_more = sums[:count, None] + distances
        starts.append(with_one_more.argmin(axis=0))
        sums = with_one_more.min(axis=0)
        yield float(sums[count]), _positions(starts, count)


def _positions(starts: Sequence[NDArray[np.intp]], count: int) -> list[int]:
    found, end = [], count
    for start in reversed(starts):
        end = int(start[end])
        found.append(end)
    return found[::-1]


def _distances(values: Sequence[float], shortest: int) -> NDArray[np.float64]:
    """Return the sum of distances from the median of each interval (start, end); infinite if shorter than `shortest`.

    A new value between the two middle values does not change the sum, since any number between them has the same
    distance sum. A value outside adds its distance from the nearer middle value.
    """
    count = len(values)
    found = np.full((count, count + 1), np.inf)
    for start in range(count):
        total, ordered = 0.0, list[float]()
        for end, value in enumerate(values[start:], start + 1):
            if ordered:
                low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
                total += max(0.0, low - value, value - high)
            insort(ordered, value)
            if len(ordered) >= shortest:
                found[start, end] = total
    return found


def _without_small(values: Sequence[float], steps: Sequence[int], smallest: float) -> list[int]:
    """Repeatedly drop the smallest step, which merges its two levels, until no step is smaller than `smallest`."""
    kept = list(steps)
    while kept:
        changes = [abs(math.log(max(b, _TINY) / max(a, _TINY))) for a, b in itertools.pairwise(levels(values, kept))]
        least = min(changes)
        if least >= math.log1p(smallest):
            break
        del kept[changes.index(least)]
    return kept

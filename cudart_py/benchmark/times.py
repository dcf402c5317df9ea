"""Times as text, and the distribution of samples: quantiles and histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_LONGEST_BAR = 40


def format_seconds(seconds: float) -> str:
    """Format a time with four significant digits, in a suitable unit."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


class Bin(NamedTuple):
    """The number of samples from `low` up to `high`, in seconds; the last bin includes `high`."""

    low: float
    high: float
    samples: int


class Histogram(tuple[Bin, ...]):
    """Bins of equal width, from the smallest to the largest sample; as text, one bar per bin."""

    __slots__ = ()

    def __str__(self) -> str:
        most = max((one.samples for one in self), default=0)
        lows = [format_seconds(one.low) for one in self]
        width = max(map(len, lows), default=0)
        digits = len(str(most))
        return "\n".join(
            f"{low:>{width}}  {one.samples:>{digits}}  {'█' * round(_LONGEST_BAR * one.samples / most)}".rstrip()
            for low, one in zip(lows, self, strict=True)
        )


def quantile(samples: Sequence[float], fraction: float) -> float:
    """Return the time that a fraction of the samples does not exceed, interpolated as by `numpy.quantile`."""
    ordered = sorted(samples)
    index = fraction * (len(ordered) - 1)
    below = math.floor(index)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (index - below) * (ordered[above] - ordered[below])


def histogram(samples: Sequence[float], bins: int) -> Histogram:
    """Return the counts in bins of equal width; samples that are all equal are in a single bin."""
    if not samples:
        return Histogram()
    low, high = min(samples), max(samples)
    if low == high:
        return Histogram([Bin(low, high, len(samples))])
    counts = [0] * bins
    for seconds in samples:
        counts[min(bins - 1, int((seconds - low) / (high - low) * bins))] += 1
    edges = [low + (high - low) * number / bins for number in range(bins)] + [high]
    return Histogram(map(Bin, edges[:-1], edges[1:], counts))

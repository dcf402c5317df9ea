"""The rules that decide when enough samples have been taken."""

from __future__ import annotations

import math
import statistics
from collections import Counter, deque
from typing import Literal, Protocol

from .record import relative_error

Stop = Literal["precision", "entropy"]
STOPS: tuple[Stop, ...] = ("precision", "entropy")

# nvbench's values: the steepest line through the recent entropies that counts as flat, in degrees, the smallest
# fraction of their variance that the line must explain, and the number of recent entropies.
_STEEPEST = math.tan(math.radians(0.048))
_EXPLAINED = 0.36
_RECENT = 299


class StoppingRule(Protocol):
    """A rule that sees every sample."""

    def add(self, seconds: float) -> None:
        """Take a sample into account."""

    def finished(self) -> bool:
        """Return whether the samples are enough."""


class PreciseMedian:
    """Stops when the standard error of the median is at most a fraction of the median."""

    def __init__(self, precision: float) -> None:
        self._precision = precision
        self._samples: list[float] = []

    def add(self, seconds: float) -> None:
        """Take a sample into account."""
        self._samples.append(seconds)

    def finished(self) -> bool:
        """Return whether the median is precise enough."""
        return relative_error(self._samples) <= self._precision


class SettledEntropy:
    """Stops when further samples no longer add to what is known about the distribution of the times.

    This is the idea of nvbench's stopping criterion "entropy" (github.com/NVIDIA/nvbench, entropy_criterion). After
    each sample, the Shannon entropy of all samples so far is computed. While new times keep appearing, it grows. The
    measurement ends when a line through the recent entropies is flat or falls, and fits them. Unlike nvbench, which
    counts equal times, this counts times in bins whose width is a fraction of the time, because the means of two
    batches are hardly ever equal.
    """

    def __init__(self, precision: float) -> None:
        self._width = math.log1p(max(precision, 1e-9))
        self._counts: Counter[int | None] = Counter()
        self._total = 0
        # The sum of count * log2(count) over all bins, from which the entropy follows without a loop over the bins.
        self._weighted = 0.0
        self._recent: deque[float] = deque(maxlen=_RECENT)

    def add(self, seconds: float) -> None:
        """Take a sample into account."""
        bin = round(math.log(seconds) / self._width) if seconds > 0 else None
        before = self._counts[bin]
        self._counts[bin] = before + 1
        self._total += 1
        self._weighted += (before + 1) * math.log2(before + 1) - (before * math.log2(before) if before else 0.0)
        self._recent.append(math.log2(self._total) - self._weighted / self._total)

    @property
    def entropy(self) -> float:
        """The entropy of the samples so far in bits."""
        return self._recent[-1] if self._recent else 0.0

    def finished(self) -> bool:
        """Return whether the entropy has settled."""
        count = len(self._recent)
        if count < 2:
            return False
        values = list(self._recent)
        if max(values) - min(values) < 1e-12:  # rounding alone, to which no line can be fitted
            return True
        slope, _ = statistics.linear_regression(range(count), values)
        return slope <= _STEEPEST and statistics.correlation(range(count), values) ** 2 >= _EXPLAINED


def stopping_rule(stop: Stop, precision: float) -> StoppingRule:
    """Return a new rule by its name."""
    return SettledEntropy(precision) if stop == "entropy" else PreciseMedian(precision)

"""The result of a measurement: the times, their median and spread, and the resulting rates."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..base import arguments
from ..base.wording import counted
from ..pages.tables import facts
from .times import Histogram, format_seconds, histogram, quantile

# One mapping per launch: "kernel", "grid", "block" and the metrics by name.
Counters = tuple[Mapping[str, Any], ...]

# For a normal distribution: the interquartile range in standard deviations, and the standard error of the median
# divided by the standard error of the mean.
_RANGE_PER_DEVIATION = 1.349
_MEDIAN_PER_MEAN = math.sqrt(math.pi / 2)
_MOST_BINS = 10_000


class Peer(NamedTuple):
    """The time of other code that does the same work, measured in the same run.

    `median` is the peer's time per call in seconds. `ratio` is the measured code's time divided by the peer's time, as
    the median over several rounds in which both were measured. `spread` is the range of these ratios divided by
    `ratio`.
    """

    median: float
    ratio: float
    spread: float


def interquartile_range(samples: Sequence[float]) -> float:
    """Return the distance between the quartiles, 0 for fewer than two samples."""
    if len(samples) < 2:
        return 0.0
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return high - low


def median_error(spread: float, count: int) -> float:
    """Return the standard error of the median of `count` samples, from their interquartile range `spread`.

    The interquartile range is used as the width because outliers hardly affect it.
    """
    return _MEDIAN_PER_MEAN * spread / _RANGE_PER_DEVIATION / math.sqrt(count)


def relative_error(samples: Sequence[float]) -> float:
    """Return the standard error of the median, divided by the median.

    It is infinite for fewer than two samples, and if the median is 0.
    """
    if len(samples) < 2:
        return math.inf
    middle = statistics.median(samples)
    if middle <= 0:
        return math.inf
    return median_error(interquartile_range(samples), len(samples)) / middle


@dataclass(frozen=True, repr=False)
class Measurement:
    """The result of `measure` or `measure_host`. Times are in seconds per call.

    - `samples`: the times that were kept; empty if the driver's event times are not those of a GPU.
    - `batch`: the number of calls per sample; each sample is their mean time.
    - `cache`: the state of the L2 cache: "flushed", "rotated" (different inputs each time) or "warm"; empty for host
      times.
    - `blocked`: whether the work was queued after a blocking kernel, so that the times do not include launch latency.
    - `captured`: whether the calls of a batch were launched as one graph.
    - `streams`: the number of streams if each sample is the median time in one stream, otherwise None.
    - `overhead`: the time between two events with no work between them. It is subtracted from every sample.
    - `rejected`: the number of samples discarded because of reduced clocks.
    - `clock_mhz`: the multiprocessors' clock in MHz, the median over the samples; None without NVML.
    - `bytes`, `flops`: the bytes and operations of one call, as passed.
    - `ceiling`: the device's peak rate in bytes or operations per second; None unless requested.
    - `ceiling_name`: the name of that ceiling, such as "copy"; None if it was passed as a number.
    - `device`: the name of the device.
    - `counters`: the counters, one mapping per launch; empty unless the driver counts what launches do.
    - `peers`: the times of other code that was measured alternately with this work (`beside`), keyed by name.
    - `memory`: the most device memory in bytes that the first calls allocated, beyond what was in use before; None for
      host times.
    """

    samples: tuple[float, ...]
    bytes: float = 0
    flops: float = 0
    batch: int = 1
    cache: str = "warm"
    blocked: bool = False
    captured: bool = False
    streams: int | None = None
    overhead: float = 0.0
    rejected: int = 0
    clock_mhz: float | None = None
    ceiling: float | None = None
    ceiling_name: str | None = None
    device: str = ""
    counters: Counters = ()
    peers: Mapping[str, Peer] = field(default_factory=dict)
    memory: int | None = None

    @property
    def timed(self) -> bool:
        """Whether there are any times."""
        return bool(self.samples)

    @property
    def median(self) -> float | None:
        """The median of the samples in seconds; None without samples."""
        return statistics.median(self.samples) if self.samples else None

    @property
    def spread(self) -> float | None:
        """The interquartile range divided by the median; None without samples."""
        middle = self.median
        return interquartile_range(self.samples) / middle if middle else None

    @property
    def error(self) -> float | None:
        """The relative standard error of the median; None with fewer than two samples."""
        found = relative_error(self.samples)
        return found if math.isfinite(found) else None

    def quantile(self, fraction: float) -> float | None:
        """Return the time that a fraction of the samples, such as 0.95, does not exceed; None without samples.

        Raises ValueError if `fraction` is not between 0 and 1.
        """
        arguments.number("Measurement.quantile", "fraction", fraction, 0, 1)
        return quantile(self.samples, fraction) if self.samples else None

    def histogram(self, bins: int = 20) -> Histogram:
        """Return the samples in `bins` bins of equal width; `print` draws them as bars.

        Each bin is a tuple (low, high, samples), the limits in seconds. Without samples, the list is empty.
        """
        return histogram(self.samples, arguments.integer("Measurement.histogram", "bins", bins, 1, _MOST_BINS))

    @property
    def gigabytes_per_second(self) -> float | None:
        """GB/s (10^9 bytes) at the median; None without times or `bytes`."""
        return self._rate(self.bytes, 1e9)

    @property
    def teraflops_per_second(self) -> float | None:
        """TFLOP/s (10^12 operations) at the median; None without times or `flops`."""
        return self._rate(self.flops, 1e12)

    @property
    def fraction(self) -> float | None:
        """The achieved rate divided by the ceiling; None without a ceiling or times."""
        amount = self.flops if self.ceiling_name in ("fp32", "fp64") or not self.bytes else self.bytes
        return self._rate(amount, self.ceiling) if self.ceiling else None

    def _rate(self, amount: float, unit: float) -> float | None:
        middle = self.median
        return amount / middle / unit if amount and middle else None

    def as_dict(self) -> dict[str, Any]:
        """Return the results and conditions, but not the samples, as a dictionary for JSON, without None values."""
        known = {
            "device": self.device or None,
            "median": self.median,
            "spread": self.spread,
            "GB/s": self.gigabytes_per_second,
            "TFLOP/s": self.teraflops_per_second,
            "of ceiling": self.fraction,
            "ceiling": self.ceiling_name,
            "batch": self.batch if self.samples else None,
            "cache": (self.cache or None) if self.samples else None,
            "blocked": self.blocked if self.samples and self.cache else None,
            "captured": self.captured or None,
            "streams": self.streams,
            "overhead": self.overhead or None,
            "rejected": self.rejected if self.samples else None,
            "clock_mhz": self.clock_mhz,
            "memory": self.memory,
            "counters": [dict(launch) for launch in self.counters] or None,
            "beside": {name: peer._asdict() for name, peer in self.peers.items()} or None,
        }
        return {name: value for name, value in known.items() if value is not None}

    def __repr__(self) -> str:
        return f"<Measurement {self}>"

    def _repr_html_(self) -> str:
        middle, fraction = self.median, self.fraction
        rates = ((self.gigabytes_per_second, "GB/s"), (self.teraflops_per_second, "TFLOP/s"))
        known = {
            "median": "not timed" if middle is None else format_seconds(middle),
            "spread": "" if self.spread is None else f"{100 * self.spread:.1f} %",
            "rate": ", ".join(f"{value:,.4g} {unit}" for value, unit in rates if value is not None),
            "of ceiling": "" if fraction is None else f"{100 * fraction:.1f} % of {self.ceiling_name or 'the ceiling'}",
            "samples": f"{len(self.samples):,}" if self.samples else "",
            "calls per sample": f"{self.batch:,}" if self.samples and self.batch > 1 else "",
            "L2": self.cache if self.samples else "",
            "clock": "" if self.clock_mhz is None else f"{self.clock_mhz:,.0f} MHz",
            "device": self.device,
            "memory": f"{self.memory:,} bytes" if self.memory else "",
            "counted": self._launches(),
        }
        beside = {
            f"beside {name}": f"{peer.ratio:.3g} × its time of {format_seconds(peer.median)}"
            for name, peer in self.peers.items()
        }
        return facts(known | beside)

    def _launches(self) -> str:
        """Return a summary of the counted launches."""
        if not self.counters:
            return ""
        kernels = Counter(str(launch.get("kernel", "")) for launch in self.counters)
        named = ", ".join(f"{times} x {name}" if times > 1 else name for name, times in kernels.items())
        return f"{_number_of_launches(self.counters)}: {named}"

    def __str__(self) -> str:
        middle = self.median
        if middle is None:
            text = "ran once, not timed, since this driver's times are not those of a GPU"
            return f"{text}; .counters has {_number_of_launches(self.counters)}" if self.counters else text
        parts = [f"{format_seconds(middle)} ± {100 * (self.spread or 0):.1f} %"]
        for value, unit in ((self.gigabytes_per_second, "GB/s"), (self.teraflops_per_second, "TFLOP/s")):
            if value is not None:
                parts.append(f"{value:,.4g} {unit}" if value < 1e3 else f"{value:,.0f} {unit}")
        if self.fraction is not None:
            parts.append(f"{100 * self.fraction:.1f} % of {self.ceiling_name or 'the ceiling'}")
        of = f" of {self.batch} calls" if self.batch > 1 else ""
        of += " in a graph" if self.captured else ""
        how = f"L2 {self.cache}" if self.cache else "host time"
        samples = "samples" if self.streams is None else "streams"
        return f"{', '.join(parts)} ({len(self.samples)} {samples}{of}, {how})"


def _number_of_launches(counters: Counters) -> str:
    return counted(len(counters), "launch")

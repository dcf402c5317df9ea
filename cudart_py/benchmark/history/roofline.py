"""A roofline: the rates of kernels, compared with the device's limits at their arithmetic intensity.

The intensity is the number of operations per byte moved. A kernel of low intensity is limited by memory bandwidth, and
a kernel of high intensity by the arithmetic units.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from ...pages.svg import drawing, line, text
from .runs import Entry

_WIDTH, _HEIGHT = 440, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 20, 22, 44
_BANDWIDTHS, _PEAKS = ("copy", "read", "write"), ("fp32", "fp64")


class Kernel(NamedTuple):
    """A point of a roofline: operations per byte moved, and operations per second."""

    name: str
    intensity: float
    rate: float


def kernels_of(entries: Iterable[Entry]) -> list[Kernel]:
    """Return the benchmarks whose bytes and operations are known, sorted by intensity."""
    found = []
    for entry in entries:
        moved, computed = entry.info.get("GB/s"), entry.info.get("TFLOP/s")
        if moved and computed:
            found.append(Kernel(entry.name, computed * 1e12 / (moved * 1e9), computed * 1e12))
    return sorted(found, key=lambda kernel: kernel.intensity)


def ceilings_of(entries: Iterable[Entry]) -> dict[str, float]:
    """Return the ceilings with which the run compared its benchmarks, in bytes or operations per second, keyed by name.

    A ceiling is the rate of a benchmark divided by the fraction of the ceiling that it reached.
    """
    found: dict[str, list[float]] = {}
    for entry in entries:
        name, fraction = entry.info.get("ceiling"), entry.info.get("of ceiling")
        rate = entry.info.get("GB/s", 0.0) * 1e9 if name in _BANDWIDTHS else entry.info.get("TFLOP/s", 0.0) * 1e12
        if name in _BANDWIDTHS + _PEAKS and fraction and rate:
            found.setdefault(name, []).append(rate / fraction)
    return {name: statistics.median(found[name]) for name in _BANDWIDTHS + _PEAKS if name in found}


def roofline(kernels: Sequence[Kernel], ceilings: Mapping[str, float]) -> str:
    """Draw the rates of kernels over their intensities as numbered points, with the ceilings."""
    bandwidths = {name: rate for name, rate in ceilings.items() if name in _BANDWIDTHS}
    peaks = {name: rate for name, rate in ceilings.items() if name in _PEAKS}
    corners = [peak / rate for peak in peaks.values() for rate in bandwidths.values()]
    left, right = _decades([*(kernel.intensity for kernel in kernels), *corners])
    slopes = [rate * 10.0**left for rate in bandwidths.values()]
    bottom, top = _decades([*(kernel.rate for kernel in kernels), *peaks.values(), *slopes])

    def x(intensity: float) -> float:
        return _LEFT + (math.log10(intensity) - left) / (right - left) * (_WIDTH - _LEFT - _RIGHT)

    def y(rate: float) -> float:
        return _HEIGHT - _BOTTOM - (math.log10(rate) - bottom) / (top - bottom) * (_HEIGHT - _BOTTOM - _TOP)

    parts = []
    for power in range(left, right + 1):
        across = x(10.0**power)
        parts.append(line("grid", across, _TOP, across, _HEIGHT - _BOTTOM))
        parts.append(text(across, _HEIGHT - _BOTTOM + 16, f"{10.0**power:g}", "middle"))
    for power in range(bottom, top + 1):
        up = y(10.0**power)
        parts.append(line("grid", _LEFT, up, _WIDTH - _RIGHT, up))
        parts.append(text(_LEFT - 6, up + 4, operations(10.0**power), "end"))
    parts.append(text((_LEFT + _WIDTH) / 2, _HEIGHT - 6, "operations per byte moved", "middle"))
    # The slopes end at the highest flat roof; the flat roofs begin at the steepest slope.
    highest, fastest = max(peaks.values(), default=10.0**top), max(bandwidths.values(), default=math.inf)
    for rate in bandwidths.values():
        end = min(10.0**right, highest / rate)
        parts.append(line("roof", x(10.0**left), y(rate * 10.0**left), x(end), y(rate * end)))
    for name, peak in peaks.items():
        start = max(10.0**left, peak / fastest)
        parts.append(line("roof", x(start), y(peak), x(10.0**right), y(peak)))
        parts.append(text(_WIDTH - _RIGHT, y(peak) - 5, name, "end"))
    parts += _points(kernels, x, y)
    return drawing(f"roofline of {len(kernels)} benchmarks", _WIDTH, _HEIGHT, parts)


def _points(kernels: Sequence[Kernel], x: Callable[[float], float], y: Callable[[float], float]) -> Iterator[str]:
    for number, kernel in enumerate(kernels, 1):
        across, up = x(kernel.intensity), y(kernel.rate)
        known = f"{kernel.name}: {kernel.intensity:.3g} operations per byte, {operations(kernel.rate)}"
        yield f'<circle class="point" cx="{across:.1f}" cy="{up:.1f}" r="4"><title>{escape(known)}</title></circle>'
        # The numbers of neighbouring points are on different sides.
        side = 7 if number % 2 else -7
        yield text(across + side, up + 4, str(number), "start" if side > 0 else "end", "number")


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Return exponents of two different powers of ten that enclose positive values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def operations(rate: float) -> str:
    """Format a rate in operations per second with three significant digits."""
    units = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1.0, ""))
    factor, unit = next((pair for pair in units if rate >= pair[0]), units[-1])
    return f"{rate / factor:,.3g} {unit}FLOP/s"

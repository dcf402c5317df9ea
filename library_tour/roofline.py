"""The roofline: the rate that a card allows kernels at their operations per byte, from counters alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cudart_py.profiling.card import H200
from cudart_py.profiling.metric_names import (
    GLOBAL,
    LOCAL,
    LOCAL_SECTORS,
    OPERATIONS,
    SECTOR_BYTES,
    SECTORS,
    TEXELS,
    names,
    total,
)

from .figures import WIDTH, figure, save, ticks
from .report import number
from .stop import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NAMED = 45  # kernels with one line each; if there are more, each stop has one line


class Card(NamedTuple):
    """The limits of a card: memory bandwidth in GB/s, arithmetic in TFLOP/s, and the source of the figures."""

    name: str
    bandwidth: float
    fp32: float
    fp64: float
    source: str


# NVIDIA's figures, except for the H200's, which the tour measured. The T4's data sheet says 300 GB/s and its product
# brief 320 GB/s, which agrees with its memory clock and bus width. The documents of the last two cards do not state a
# double-precision rate. The programming guide lists 2 double-precision results per clock and multiprocessor, compared
# with 64 (T4) or 128 (RTX 4090) in single precision.
CARDS = {
    "h200": Card(
        H200.name, 1e-9 * H200.memory, 1e-12 * H200.fp32, 1e-12 * H200.fp64, "measured: a copy, and multiply-adds"
    ),
    "h100": Card("NVIDIA H100 SXM", 3350, 67, 34, "data sheet"),
    "a100": Card("NVIDIA A100 40GB", 1555, 19.5, 9.7, "data sheet"),
    "v100": Card("NVIDIA V100 SXM2", 900, 15.7, 7.8, "data sheet"),
    "t4": Card("NVIDIA T4", 320, 8.1, 0.25, "data sheet, and the product brief's bandwidth"),
    "rtx4090": Card("NVIDIA RTX 4090", 1008, 82.6, 1.29, "white paper of the Ada architecture"),
}


class Kernel(NamedTuple):
    """A row's kernels on the roofline: operations per byte, and whether most operations are double precision."""

    stop: str
    row: str
    intensity: float
    double: bool

    def most(self, card: Card) -> float:
        """Return the TFLOP/s that the card allows at this intensity."""
        return min(1e-3 * card.bandwidth * self.intensity, card.fp64 if self.double else card.fp32)


def kernels_of(stop: str, rows: Sequence[Row]) -> list[Kernel]:
    """Return the rows that execute floating-point operations and move bytes.

    Each sector that a warp touches counts as 32 bytes, as if no cache served any. An addition or a multiplication
    counts as one operation, and a fused multiply-add as two.
    """
    found = []
    for row in rows:
        moved = SECTOR_BYTES * total(row.metrics, [*names(SECTORS, GLOBAL), *names(LOCAL_SECTORS, LOCAL), TEXELS])
        single, double = (_operations(row.metrics, letter) for letter in "fd")
        if moved and single + double:
            found.append(Kernel(stop, row.name, (single + double) / moved, double > single))
    return found


def _operations(metrics: Mapping[str, float], letter: str) -> float:
    return total(metrics, names(OPERATIONS, [f"{letter}{kind}" for kind in ("add", "mul", "fma", "fma")]))


def draw_roofline(kernels: Sequence[Kernel], folder: Path, card: Card, width: float = WIDTH) -> list[Path]:
    """Draw kernels by their operations per byte under the roof of a card; return the files, none without kernels.

    If there are many kernels, those of the same stop share a line.
    """
    return save(_roofline(kernels, card, width), folder / "roofline") if kernels else []


def _roofline(kernels: Sequence[Kernel], card: Card, width: float) -> Figure:
    few = len(kernels) <= MOST_NAMED and len({(kernel.stop, kernel.row) for kernel in kernels}) == len(kernels)
    labels = [f"{kernel.stop}: {kernel.row}" if few else kernel.stop for kernel in kernels]
    lines = list(dict.fromkeys(labels))
    below = 0.2 * len(lines)
    title = f"Roofline of {card.name} ({card.source}): {card.bandwidth:,.0f} GB/s"
    subtitle = (
        "Maximum TFLOP/s, against the floating-point operations per byte that warps request. Caches are not counted: "
        "bytes that a cache serves move a kernel to the right. Dashed: from here on, arithmetic is the limit."
    )
    drawn = figure(title, subtitle, width, 3.9 + below)
    roof, strip = drawn.subplots(2, 1, sharex=True, height_ratios=(2.4, below + 0.2))
    reach = [1e3 * peak / card.bandwidth for peak in (card.fp32, card.fp64)] + [each.intensity for each in kernels]
    for double, colour in ((False, "C0"), (True, "C1")):
        peak = card.fp64 if double else card.fp32
        ridge = 1e3 * peak / card.bandwidth
        ends = [min(reach) / 4, ridge, 8 * max(reach)]
        roof.plot(ends, [min(peak, 1e-3 * card.bandwidth * end) for end in ends], color=colour, linewidth=1)
        strip.axvline(ridge, color=colour, linestyle="--", linewidth=1)
        chosen = [(kernel, label) for kernel, label in zip(kernels, labels, strict=True) if kernel.double == double]
        places = [kernel.intensity for kernel, _ in chosen]
        dots: dict[str, Any] = {"color": colour, "marker": "o", "linestyle": "", "markersize": 4, "alpha": 0.7}
        precision = f"fp{64 if double else 32}: {peak:g} TFLOP/s, from {ridge:.3g} operations per byte on"
        roof.plot(places, [kernel.most(card) for kernel, _ in chosen], label=precision, **dots)
        strip.plot(places, [lines.index(label) for _, label in chosen], **dots)
    if few:
        for place, kernel in enumerate(kernels):
            text = number(kernel.most(card))
            strip.text(1.01, place, text, transform=strip.get_yaxis_transform(), fontsize=8, verticalalignment="center")
    roof.set_xscale("log")
    roof.set_yscale("log")
    strip.set_yticks(range(len(lines)), lines)
    strip.set_ylim(len(lines) - 0.5, -0.5)
    strip.set_xlabel("operations per byte", fontsize=9)
    for axes in (roof, strip):
        axes.grid(alpha=0.3)
        axes.tick_params(labelsize=8)
    ticks(strip.xaxis)
    ticks(roof.yaxis)
    drawn.legend(loc="outside lower center", fontsize=9)
    return drawn

"""Active lanes over time: strips of instructions that the same lanes of a warp execute, with their source lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base.wording import counted
from ...pages.diagram import COLORS, GROUND, RULE, WIDTH, Diagram, box, label_at
from ..warp_records import LANES, WarpRecord, WarpStep
from .lanes import ranges

_STRIP, _LANE_WIDTH, _NAME = 18, 12, 150
_MOST_STRIPS, _LAST = 28, 4
_KEY = "  # active lane   . idle lane"


class _Strip(NamedTuple):
    """Consecutive instructions that the same lanes execute."""

    lanes: NDArray[np.bool_]
    lines: tuple[int, ...]
    instructions: int

    @property
    def active(self) -> int:
        return int(np.count_nonzero(self.lanes))


def diverges(steps: Sequence[WarpStep]) -> bool:
    """Check whether the set of active lanes changes between the steps of a warp."""
    return any((step.lanes != steps[0].lanes).any() for step in steps)


def activity_diagram(record: WarpRecord, kernel: str, line: int | None = None) -> Diagram:
    """Return the diagram of all steps of a warp, or of the steps of one line."""
    steps = [step for step in record.steps if line in (None, step.line)]
    strips = [_strip(list(alike)) for _, alike in groupby(steps, lambda step: step.lanes.tobytes())]
    instructions = sum(strip.instructions for strip in strips)
    average = sum(strip.active * strip.instructions for strip in strips) / instructions
    caption = f"On average {average:.3g} of 32 lanes are active over {counted(instructions, 'instruction')}."
    title = f"Active lanes of warp {record.warp} of {kernel}" + ("" if line is None else f", line {line}")
    return Diagram(title, caption, _text(strips), *_drawing(strips))


def _strip(steps: Sequence[WarpStep]) -> _Strip:
    lines = tuple(sorted({step.line for step in steps}))
    return _Strip(steps[0].lanes, lines, sum(step.instructions for step in steps))


def _shown(strips: Sequence[_Strip]) -> tuple[Sequence[_Strip], int, Sequence[_Strip]]:
    """Return the first strips, the number of strips left out, and the last strips."""
    if len(strips) <= _MOST_STRIPS:
        return strips, 0, ()
    return strips[: _MOST_STRIPS - _LAST], len(strips) - _MOST_STRIPS, strips[-_LAST:]


def _name(strip: _Strip) -> str:
    if strip.lines == (0,):
        return "no line"
    text = ranges(strip.lines)
    if len(text) > 12:
        text = f"{strip.lines[0]} to {strip.lines[-1]}"
    return f"{'line' if len(strip.lines) == 1 else 'lines'} {text}"


def _text(strips: Sequence[_Strip]) -> list[str]:
    first, left_out, last = _shown(strips)
    rows = [_row(strip) for strip in first]
    if left_out:
        rows.append(f"  ... ({left_out} more)")
    return [f"  {'':18}  lane 0{'':22}lane 31  instructions", *rows, *map(_row, last), "", _KEY]


def _row(strip: _Strip) -> str:
    marks = "".join("#" if lane else "." for lane in strip.lanes)
    return f"  {_name(strip):18} [{marks}] {strip.instructions:8,}"


def _drawing(strips: Sequence[_Strip]) -> tuple[float, list[str]]:
    first, left_out, last = _shown(strips)
    right = _NAME + LANES * _LANE_WIDTH + 10
    parts = [
        label_at(_NAME, 8, "lane 0"),
        label_at(right - 10, 8, "lane 31", anchor="end"),
        label_at(right, 8, "instructions"),
    ]
    most = max(strip.instructions for strip in strips)
    y = 14
    for strip in (*first, None, *last) if left_out else first:
        if strip is None:
            parts.append(label_at(_NAME, y + 13, f"... {left_out} more strips ..."))
        else:
            parts += _strip_drawing(strip, y, right, most)
        y += _STRIP
    return y + 6, parts


def _strip_drawing(strip: _Strip, y: float, right: float, most: int) -> list[str]:
    color = COLORS[0] if strip.active == LANES else COLORS[1]
    parts = [label_at(_NAME - 8, y + 13, _name(strip), anchor="end", size=11)]
    for lane, active in enumerate(strip.lanes):
        x = _NAME + lane * _LANE_WIDTH
        parts.append(box(x, y + 1, _LANE_WIDTH, _STRIP - 3, color if active else GROUND, RULE))
    length = max(1.0, (WIDTH - right - 50) * strip.instructions / most)
    parts.append(box(right, y + 4, length, _STRIP - 9, color))
    parts.append(label_at(right + length + 5, y + 13, f"{strip.instructions:,}"))
    return parts

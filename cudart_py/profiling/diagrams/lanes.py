"""Lanes of a warp drawn as cells, and lane numbers as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...pages.diagram import IDLE, INK, WIDTH, box, label_at
from ..warp_records import LANES

# The space for names of rows, to the left of the drawing.
LEFT = 76
ROOM = WIDTH - LEFT
LANE_WIDTH, LANE_HEIGHT = ROOM / LANES, 20


def lane_cells(colors: Sequence[str | None], y: float, name: str = "lanes") -> list[str]:
    """Return the 32 lanes of a warp as numbered cells at height `y`; a lane without a colour is idle."""
    parts = [label_at(0, y + 14, name, size=12)]
    for lane, color in enumerate(colors):
        x = LEFT + lane * LANE_WIDTH
        parts.append(box(x, y, LANE_WIDTH, LANE_HEIGHT, color or IDLE))
        parts.append(label_at(x + LANE_WIDTH / 2, y + 14, str(lane), anchor="middle", color=INK))
    return parts


def center_of(lane: int) -> float:
    """Return the x coordinate of the center of a lane's cell."""
    return LEFT + (lane + 0.5) * LANE_WIDTH


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as ranges in ascending order, such as "0-7, 9"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def named_lanes(numbers: Sequence[int], room: int) -> str:
    """Return lane numbers as ranges, or a shorter text if that needs more than `room` characters."""
    text = f"{'lane' if len(numbers) == 1 else 'lanes'} {ranges(numbers)}"
    return text if len(text) <= room else f"{len(numbers)} lanes, {min(numbers)} to {max(numbers)}"


def abridged(rows: Sequence[str], most: int = 12) -> list[str]:
    """Return rows of text, without those in the middle if there are more than `most`."""
    if len(rows) <= most:
        return list(rows)
    return [*rows[:4], f"  ... ({len(rows) - 6} more)", *rows[-2:]]

"""A reduction tree: the steps in which the lanes of a warp add their values, and the values that the sum is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cudart_py.base.wording import counted
from cudart_py.pages.diagram import COLORS, FAINT, IDLE, INK, RULE, Diagram, box, label_at, stroke
from cudart_py.profiling import LaunchProfile
from cudart_py.profiling.diagrams.lanes import LANE_WIDTH, LEFT, center_of, ranges
from cudart_py.profiling.warp_records import LANES

_CELL, _STEP = 16, 44
_WORD = 4


def shuffled(launch: LaunchProfile) -> list[NDArray[np.int64]]:
    """Return which lane's value each lane adds in each of the first five shuffles of the recorded warp."""
    assert launch.warp is not None
    return [shuffle.sources for shuffle in launch.warp.shuffles[:5]]


def shared(launch: LaunchProfile) -> list[NDArray[np.int64]]:
    """Return the same for a tree in shared memory, where a lane loads its own and a partner's word in each step."""
    assert launch.warp is not None
    loads = [
        access
        for access in launch.warp.accesses
        if (access.space, access.operation) == ("shared", "load") and access.active.any()
    ]
    steps = []
    for one, other in zip(loads[::2], loads[1::2], strict=False):
        distance = np.abs(one.addresses - other.addresses) // _WORD
        steps.append(np.where(one.active, np.arange(LANES) + distance, -1))
    return steps


def tree_diagram(steps: Sequence[NDArray[np.int64]], title: str, between: str) -> Diagram:
    """Return a diagram of a tree that sums into lane 0; `between` names the operation between steps ("shuffle")."""
    needed = _needed(steps)
    caption = (
        f"{counted(len(steps), between)} add up {counted(len(needed[0]), 'value')}. In each step, half as many lanes "
        "have a sum that is still needed."
    )
    rows = [f"  {'before':12} [{_marks(needed[0])}]"]
    for at, lanes in enumerate(needed[1:]):
        distance = _distance(steps[at], lanes)
        rows.append(f"  {between + ' ' + str(at + 1):12} [{_marks(lanes)}]  lane i adds lane i + {distance}")
    rows += ["", "  # lane whose value the sum still needs   . other lane"]
    return Diagram(title, caption, rows, *_drawing(steps, needed, between))


def _needed(steps: Sequence[NDArray[np.int64]]) -> list[set[int]]:
    """Return the lanes whose values the sum needs before each step, and after the last one."""
    found = [{0}]
    for sources in reversed(steps):
        found.append({lane for after in found[-1] for lane in (after, int(sources[after])) if lane >= 0})
    return found[::-1]


def _marks(lanes: set[int]) -> str:
    return "".join("#" if lane in lanes else "." for lane in range(LANES))


def _distance(sources: NDArray[np.int64], lanes: set[int]) -> str:
    return ranges({int(sources[lane]) - lane for lane in lanes})


def _drawing(steps: Sequence[NDArray[np.int64]], needed: Sequence[set[int]], between: str) -> tuple[float, list[str]]:
    lines, cells = [], []
    for at, lanes in enumerate(needed):
        y = at * _STEP
        name = "values" if at == 0 else f"{between} {at}"
        cells.append(label_at(0, y + 12, name, size=11))
        color = COLORS[min(at, len(COLORS) - 1)]
        for lane in range(LANES):
            x = LEFT + lane * LANE_WIDTH
            cells.append(box(x, y, LANE_WIDTH, _CELL, color if lane in lanes else IDLE, RULE))
            cells.append(label_at(x + LANE_WIDTH / 2, y + 12, str(lane), anchor="middle", size=9, color=INK))
        if at:
            for lane in sorted(lanes):
                source = int(steps[at - 1][lane])
                lines.append(stroke(center_of(lane), y - _STEP + _CELL, center_of(lane), y, FAINT))
                lines.append(stroke(center_of(source), y - _STEP + _CELL, center_of(lane), y, COLORS[1], 1.6))
    return (len(needed) - 1) * _STEP + _CELL + 4, [*lines, *cells]

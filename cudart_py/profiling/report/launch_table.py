"""The table of launches as text: two lines of headings, and one line per launch or group of equal launches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ..columns import GROUPS, Column

if TYPE_CHECKING:
    from ..profiles import LaunchProfile

_WIDTH = 80
_NARROWEST = 8
# The columns that fit into 80 characters. Kernels without shared memory show 0 bank conflicts instead of an empty cell.
BRIEF = (*GROUPS["sectors"][:2], *(replace(column, shown=()) for column in GROUPS["conflicts"]), *GROUPS["lanes"])


class Row(NamedTuple):
    """A group of equal launches: their number, the kernel, the grid and block shapes as text, and the cells."""

    times: int
    kernel: str
    grid: str
    block: str
    cells: tuple[str, ...]


def rows_of(launches: Sequence[LaunchProfile], columns: Sequence[Column]) -> list[Row]:
    """Return the rows of the table; launches with the same kernel, shape and cells share one."""
    counted = Counter(
        (x.kernel, extents(x.grid), extents(x.block), tuple(column.text(x.metrics) or "-" for column in columns))
        for x in launches
    )
    return [Row(times, *same) for same, times in counted.items()]


def launch_table(
    launches: Sequence[LaunchProfile], columns: Sequence[Column] = BRIEF, unfinished: Sequence[str] = ()
) -> str:
    """Return the table, and below it the kernels of launches that have failed.

    The table is 80 characters wide unless the chosen columns leave too little space for the kernels' names.
    """
    table = [_table(launches, columns)] if launches else [] if unfinished else ["no launches"]
    return "\n".join((*table, *failed_launches(unfinished)))


def failed_launches(unfinished: Sequence[str]) -> list[str]:
    """Return one line per kernel whose launches have failed."""
    times = Counter(unfinished)
    return [f"not counted, because the launch failed: {_repeated(times[kernel], kernel)}" for kernel in times]


def _table(launches: Sequence[LaunchProfile], columns: Sequence[Column]) -> str:
    heads = [["", "", "", *(column.heading[0] for column in columns)]]
    heads.append(["kernel", "grid", "block", *(column.heading[1] for column in columns)])
    found = rows_of(launches, columns)
    rows = [[_repeated(row.times, row.kernel), row.grid, row.block, *row.cells] for row in found]
    widths = [max(map(len, column)) for column in zip(*heads, *rows, strict=True)]
    # The name is shortened, because all other cells are short.
    widths[0] = max(_NARROWEST, min(widths[0], _WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1)))
    for cells, (times, kernel, *_) in zip(rows, found, strict=True):
        cells[0] = _repeated(times, shortened_kernel(kernel, widths[0] - len(_repeated(times, ""))))
    lines = []
    for row in (*heads, *rows):
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _repeated(times: int, kernel: str) -> str:
    return kernel if times == 1 else f"{times} x {kernel}"


def shortened_kernel(name: str, width: int) -> str:
    """Return a kernel's name shortened to `width` characters.

    Namespaces are left out first. Then template arguments are, except for the last ones, in which instances differ.
    """
    if len(name) <= width:
        return name
    qualified, bracket, arguments = name.partition("<")
    plain = qualified.rpartition("::")[2]
    if len(plain) + len(bracket) + len(arguments) <= width:
        return plain + bracket + arguments
    room = width - len(plain) - len("<…")
    if bracket and room > 0:
        return f"{plain}<…{arguments[-room:]}"
    return shortened(plain, width)


def shortened(name: str, width: int) -> str:
    """Return a name shortened to `width` characters in the middle, since instances of a template differ at the end."""
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}…{name[len(name) - end :]}"


def extents(shape: tuple[int, int, int]) -> str:
    """Format a shape without trailing sizes of 1, such as "16x16"."""
    x, y, z = shape
    return "x".join(map(str, (x, y, z) if z > 1 else (x, y) if y > 1 else (x,)))

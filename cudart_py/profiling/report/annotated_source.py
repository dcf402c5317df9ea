"""Source as text, annotated with each line's metrics: sectors, bytes used, bank conflicts, active lanes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..columns import DEFAULT, Column, choose
from ..source_lines import Source, sources_of

if TYPE_CHECKING:
    from ..profiles import LaunchProfile

# The number of lines shown around a line that executed instructions, and the minimum number of lines to leave out.
_NEAR = 3
_GAP = 8


def annotated_sources(launches: Iterable[LaunchProfile], columns: Sequence[Column] | None = None) -> str:
    """Return the annotated text of every source that the launches' lines refer to, the program's own sources first.

    Long stretches without executed instructions are left out. Lines of missing files are shown by number only. The
    columns default to `columns.DEFAULT`. A column that is empty for a source is left out for that source.
    """
    columns = choose(DEFAULT, ()) if columns is None else columns
    return "\n\n".join(_annotated(source, columns) for source in sources_of(launches))


def filled(source: Source, columns: Sequence[Column]) -> list[Column]:
    """Return the columns that are not empty for at least one line of a source."""
    return [column for column in columns if any(column.text(metrics) for metrics in source.lines.values())]


def _annotated(source: Source, columns: Sequence[Column]) -> str:
    kept = filled(source, columns)
    cells = {number: [column.number(metrics) for column in kept] for number, metrics in source.lines.items()}
    heads = [[column.short[part] for column in kept] for part in (0, 1)]
    widths = [max(map(len, column)) for column in zip(*heads, *cells.values(), strict=True)]

    def row(texts: Sequence[str]) -> str:
        return " ".join(text.rjust(width) for text, width in zip(texts, widths, strict=True))

    missing = "" if source.texts else " (source text not available)"
    rows = [f"{source.name}{missing}", row(heads[0]).rstrip(), f"{row(heads[1])}  line"]
    last = 0
    for number in shown_lines(source.lines, len(source.texts)):
        if source.texts and number != last + 1:
            rows.append(f"{'':{len(row(heads[0]))}}    ⋮")
        rows.append(f"{row(cells.get(number, [''] * len(kept)))} {number:5d} {source.text(number)}".rstrip())
        last = number
    return "\n".join(rows)


def shown_lines(lines: Iterable[int], count: int) -> list[int]:
    """Return the numbers of the lines to show in a file of `count` lines: the executed lines and their neighbours."""
    busy = sorted(lines)
    if not count:
        return busy
    kept = set(busy)
    # Short gaps are shown completely.
    for before, after in itertools.pairwise((-_NEAR, *busy, count + _NEAR + 1)):
        if after - before <= 2 * _NEAR + _GAP:
            kept.update(range(before, after))
        else:
            kept.update(range(before, before + _NEAR + 1), range(after - _NEAR, after))
    return sorted(number for number in kept if 1 <= number <= count)

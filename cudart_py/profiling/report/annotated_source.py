"""Source as text, with what each line did beside it: sectors, bytes used, bank conflicts, active lanes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..columns import DEFAULT, Column, choose
from ..source_lines import Source, sources_of

if TYPE_CHECKING:
    from ..profiles import LaunchProfile

# So many lines around one that did something are shown, and gaps of so many more are left out.
_NEAR = 3
_GAP = 8


def annotated_sources(launches: Iterable[LaunchProfile], columns: Sequence[Column] | None = None) -> str:
    """Return the text of every source that the launches' lines come from, annotated; those of the program first.

    Long stretches that did nothing are left out. Files that are not there are shown by line number alone. The columns
    are by default those of `columns.DEFAULT`; one with nothing in it is left out of a source.
    """
    wanted = choose(DEFAULT, ()) if columns is None else columns
    return "\n\n".join(_annotated(source, wanted) for source in sources_of(launches))


def filled(source: Source, columns: Sequence[Column]) -> list[Column]:
    """Return the columns that have something in one of a source's lines."""
    return [column for column in columns if any(column.text(metrics) for metrics in source.lines.values())]


def _annotated(source: Source, columns: Sequence[Column]) -> str:
    kept = filled(source, columns)
    cells = {number: [column.number(metrics) for column in kept] for number, metrics in source.lines.items()}
    heads = [[column.short[part] for column in kept] for part in (0, 1)]
    widths = [max(map(len, column)) for column in zip(*heads, *cells.values(), strict=True)]

    def row(texts: Sequence[str]) -> str:
        return " ".join(text.rjust(width) for text, width in zip(texts, widths, strict=True))

    missing = "" if source.texts else " (its text is not at hand)"
    rows = [f"{source.name}{missing}", row(heads[0]).rstrip(), f"{row(heads[1])}  line"]
    last = 0
    for number in shown_lines(source.lines, len(source.texts)):
        if source.texts and number != last + 1:
            rows.append(f"{'':{len(row(heads[0]))}}    ⋮")
        rows.append(f"{row(cells.get(number, [''] * len(kept)))} {number:5d} {source.text(number)}".rstrip())
        last = number
    return "\n".join(rows)


def shown_lines(lines: Iterable[int], count: int) -> list[int]:
    """Return the lines to show of a file of `count` lines: those that executed instructions, and their neighbours."""
    busy = sorted(lines)
    if not count:
        return busy
    kept = set(busy)
    # A gap that is shorter than what would be left out of it is shown.
    for before, after in itertools.pairwise((-_NEAR, *busy, count + _NEAR + 1)):
        if after - before <= 2 * _NEAR + _GAP:
            kept.update(range(before, after))
        else:
            kept.update(range(before, before + _NEAR + 1), range(after - _NEAR, after))
    return sorted(number for number in kept if 1 <= number <= count)

"""Tables as lines of plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_GAP = "  "


def aligned(rows: Sequence[Sequence[str]], left: int) -> Iterator[str]:
    """Yield rows as lines in columns, the first `left` of them flush left, the others flush right.

    Rows may have different numbers of cells.
    """
    columns = max(map(len, rows), default=0)
    widths = [max(len(row[column]) for row in rows if column < len(row)) for column in range(columns)]
    for row in rows:
        cells = (
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=False))
        )
        yield _GAP.join(cells).rstrip()

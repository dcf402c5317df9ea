"""Markdown tables: written by the tools in tests/, and read from the pages of the documentation."""

import re
from collections.abc import Iterable, Sequence

Cell = str | int | float | None


def rows(page: str) -> list[list[str]]:
    """Return the cells of all tables in a page's text, row by row, including the heading rows."""
    lines = (line for line in page.splitlines() if line.startswith("|") and not line.startswith("|---"))
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


def quoted(text: str) -> list[str]:
    """Return the code spans in a cell."""
    return re.findall(r"`([^`]+)`", text)


def number(value: Cell) -> str:
    """Return a cell's text; floats have about four significant digits."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else value or ""


def table(headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return a Markdown table with aligned columns; columns of numbers are aligned to the right."""
    body = [tuple(row) for row in rows]
    columns = list(zip(*body, strict=True)) or [()] * len(headings)
    filled = [[cell for cell in column if cell not in (None, "")] for column in columns]
    right = [bool(cells) and all(isinstance(cell, int | float) for cell in cells) for cells in filled]
    lines = [tuple(headings), *(tuple(map(number, row)) for row in body)]
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    rule = tuple("-" * (width - end) + ":" * end for width, end in zip(widths, right, strict=True))
    return "\n".join(_line(line, widths, right) for line in (lines[0], rule, *lines[1:]))


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    aligned = [
        cell.rjust(width) if end else cell.ljust(width) for cell, width, end in zip(cells, widths, right, strict=True)
    ]
    return f"| {' | '.join(aligned)} |"

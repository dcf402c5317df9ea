"""A stop's rows as a table: the results of this machine next to the recorded ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..report import text_of
from ..stop import Row

CHECK = "check"


class Column(NamedTuple):
    """A column: its name, and the CSS class of its cells: "figure", "part" for parts of a whole, or "words"."""

    name: str
    kind: str


class Group(NamedTuple):
    """The columns of a machine."""

    machine: str
    columns: Sequence[Column]


class Cell(NamedTuple):
    """A cell: its CSS class, its text, and its fraction of a whole from 0 to 1, None if it is not part of a whole."""

    kind: str
    text: str = ""
    part: float | None = None


class Line(NamedTuple):
    """A line of the table: a row's name, and its cells on all machines."""

    name: str
    cells: Sequence[Cell]


class Table(NamedTuple):
    """A table of the columns of several machines."""

    groups: Sequence[Group]
    rows: Sequence[Line]


def beside(machines: Mapping[str, Sequence[Row]]) -> Table:
    """Return a table with the rows of several machines: each row's name, then the columns of each machine.

    Rows with the same name share a line; lines are in the order of the first machine that has them.
    """
    groups = _groups(machines)
    found = {machine: {row.name: row for row in rows} for machine, rows in machines.items()}
    names = dict.fromkeys(row.name for rows in machines.values() for row in rows)
    lines = []
    for name in names:
        cells = [_cell(column, found[group.machine].get(name)) for group in groups for column in group.columns]
        lines.append(Line(name, cells))
    return Table(groups, lines)


def _groups(machines: Mapping[str, Sequence[Row]]) -> list[Group]:
    """Return the columns of each machine that has any; only the first machine shows the course's figures."""
    groups: list[Group] = []
    for machine, rows in machines.items():
        names = list(dict.fromkeys(column for row in rows for column in row.values))
        if groups:
            names = [name for name in names if not name.startswith("course")]
        if any(row.check for row in rows):
            names.append(CHECK)
        if names:
            groups.append(Group(machine, [Column(name, _kind(name, rows)) for name in names]))
    return groups


def _kind(column: str, rows: Sequence[Row]) -> str:
    if column == CHECK or any(isinstance(row.values.get(column, ""), str) and row.values.get(column) for row in rows):
        return "words"
    return "part" if column.startswith("of ") or column.endswith(" efficiency") else "figure"


def _cell(column: Column, row: Row | None) -> Cell:
    if row is None or (column.name not in row.values and column.name != CHECK):
        return Cell(column.kind)
    if column.name == CHECK:
        return _check(row)
    value = row.values[column.name]
    part = min(max(value, 0.0), 1.0) if column.kind == "part" and not isinstance(value, str) else None
    return Cell(column.kind, text_of(column.name, value), part)


def _check(row: Row) -> Cell:
    if row.check is None:
        return Cell("")
    return Cell("better", row.check.word) if row.check.holds else Cell("worse", "FAILED")

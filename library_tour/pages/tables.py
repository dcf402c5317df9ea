"""A stop's rows in HTML: those of this machine, beside those that were recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from cudart_py.pages.tables import breakable

from ..report import text_of
from ..stop import Row

CHECK = "check"


def beside(machines: Mapping[str, Sequence[Row]]) -> str:
    """Return a table with the rows of several machines: each row's name, then the columns of each machine.

    Rows of the same name stand in one line, in the order of the first machine that has them.
    """
    columns = _columns(machines)
    found = {machine: {row.name: row for row in rows} for machine, rows in machines.items()}
    groups = "".join(
        f'<th class="group" colspan="{len(group)}">{escape(machine)}</th>' for machine, group in columns.items()
    )
    headings = "".join(
        f'<th class="{_kind(column, machines[machine])}">{escape(column)}</th>'
        for machine, group in columns.items()
        for column in group
    )
    lines = []
    for name in dict.fromkeys(row.name for rows in machines.values() for row in rows):
        cells = "".join(
            _cell(column, found[machine].get(name), _kind(column, machines[machine]))
            for machine, group in columns.items()
            for column in group
        )
        lines.append(f'<tr><td class="name">{breakable(name)}</td>{cells}</tr>')
    return (
        f'<div class="scroll"><table class="rows"><thead><tr><td></td>{groups}</tr><tr><td></td>{headings}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _columns(machines: Mapping[str, Sequence[Row]]) -> dict[str, list[str]]:
    """Return the columns of each machine that has any, the course's figures with the first one alone."""
    columns: dict[str, list[str]] = {}
    for machine, rows in machines.items():
        group = list(dict.fromkeys(column for row in rows for column in row.values))
        if columns:
            group = [column for column in group if not column.startswith("course")]
        if any(row.check for row in rows):
            group.append(CHECK)
        if group:
            columns[machine] = group
    return columns


def _kind(column: str, rows: Sequence[Row]) -> str:
    if column == CHECK or any(isinstance(row.values.get(column, ""), str) and row.values.get(column) for row in rows):
        return "words"
    return "part" if column.startswith("of ") else "figure"


def _cell(column: str, row: Row | None, kind: str) -> str:
    if row is None or (column not in row.values and column != CHECK):
        return f'<td class="{kind}"></td>'
    if column == CHECK:
        return _check(row)
    value = row.values[column]
    part = f' style="--part: {min(max(value, 0.0), 1.0):.3f}"' if kind == "part" and not isinstance(value, str) else ""
    return f'<td class="{kind}"{part}>{escape(text_of(column, value))}</td>'


def _check(row: Row) -> str:
    if row.check is None:
        return "<td></td>"
    return f'<td class="better">{escape(row.check.word)}</td>' if row.check.holds else '<td class="worse">FAILED</td>'

"""A stop's result as a table and sentences that fit into 80 columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from . import ranks
from .counters import COLUMNS
from .runner import Outcome
from .stop import Check, Result, Row, Value

STYLES = {"passed": "green", "failed": "bold red", "error": "bold red", "unsupported": "yellow"}
# The columns with fractions of the limit: in the course's stops, and in the libraries' narrower tables.
LIMITED = {"of limit", "limit %"}
# Characters of a full bar, which represents the whole limit.
BAR = 7
# Characters between two columns: the box and the padding.
GAP = 2


def console(*, stderr: bool = False) -> Console:
    """Return the console that a report goes to: standard output or standard error.

    MPI ranks write plain text unless FORCE_COLOR asks for colours: Open MPI gives each rank a pseudo-terminal, so a
    rank cannot tell whether its text ends up in a terminal or in a file.
    """
    plain = ranks.started_by_mpi() and not os.environ.get("FORCE_COLOR")
    return Console(highlight=False, stderr=stderr, force_terminal=False if plain else None)


def headline(name: str, title: str) -> Text:
    """Return a stop's first line: its name and its title."""
    return Text.assemble((name, "bold cyan"), ": ", title)


def listing(groups: Mapping[str, Sequence[Sequence[str]]]) -> RenderableType:
    """Return names with their descriptions, in groups below their headings; only the last cells are wrapped."""
    width = max((len(cells[0]) for rows in groups.values() for cells in rows), default=0)
    parts: list[RenderableType] = []
    for heading, rows in groups.items():
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold cyan", no_wrap=True, min_width=width)
        for _ in rows[0][1:-1]:
            grid.add_column(style="dim", no_wrap=True)
        for cells in rows:
            grid.add_row(*map(Text, cells))
        parts += [Text(heading, "bold"), grid, Text("")]
    return Group(*parts[:-1])


def outcome(done: Outcome) -> RenderableType:
    """Return the whole report of a stop, under its headline."""
    return Group(headline(done.name, done.title), *_parts(done), "")


def figures(done: Outcome, *, printed: Result | None = None) -> RenderableType:
    """Return the report of a stop without its headline, and without parts that an earlier printed result contains.

    The parts left out are a table with the same text, a note of a row with the same name, and an equal note below the
    tables. Rows that have only a name are left out too.
    """
    if not printed:
        return Group(*_parts(done), "")
    noted = {row.name for row in printed.all_rows if row.note}
    tables = {"": done.result.rows, **done.result.tables}
    before = {"": printed.rows, **printed.tables}
    shown = {}
    for heading, rows in tables.items():
        if not _same(rows, before.get(heading, ())):
            short = [replace(row, note="") if row.name in noted else row for row in rows]
            shown[heading] = [row for row in short if row.values or row.note]
    notes = [note for note in done.result.notes if note not in printed.notes]
    if len(shown) < len(tables):
        notes.append(f"{'The other' if any(shown.values()) else 'All'} results are the same as on this machine.")
    first = shown.pop("", [])
    result = replace(done.result, rows=first, tables={heading: rows for heading, rows in shown.items() if rows})
    return Group(*_parts(replace(done, result=replace(result, notes=notes))), "")


def _same(rows: Sequence[Row], others: Sequence[Row]) -> bool:
    """Check whether two tables have the same text, apart from checks and from rows that have only a name."""

    def texts(of: Sequence[Row]) -> list[tuple[str, dict[str, str]]]:
        return [
            (row.name, {name: text_of(name, value) for name, value in row.values.items()}) for row in of if row.values
        ]

    return texts(rows) == texts(others)


def _parts(done: Outcome) -> Iterator[RenderableType]:
    result, limit = done.result, done.result.limit
    if done.size is not None:
        yield Text(f"size {done.size:,}: {done.counts}", "dim")
    if has_counters(result):
        yield Text(f"counters: measured over {result.counted}", "dim")
    if limit is not None and limit.rate and any(LIMITED & row.values.keys() for row in result.all_rows):
        yield Text(f"limit {number(limit.rate)} {limit.unit}: {limit.name}", "dim")
    yield from _with_notes(result.rows)
    for heading, rows in result.tables.items():
        yield Text(heading, "bold")
        yield from _with_notes(rows)
    yield from map(Text, result.notes)
    for check in done.failed_checks:
        yield tried(check)
    if done.message:
        yield Text(done.message, STYLES[done.state])


def has_counters(result: Result) -> bool:
    """Check whether a result has counters and names the size at which they were counted."""
    return bool(result.counted) and any(COLUMNS.keys() & row.values.keys() for row in result.all_rows)


def _with_notes(rows: Sequence[Row]) -> Iterator[RenderableType]:
    if rows:
        yield table(rows)
    for row in rows:
        if row.note:
            yield Text(f"{row.name}: {row.note}")


@dataclass(frozen=True)
class _Column:
    """A column of a table: numbers, or words. Lines of words longer than `unbroken` may be wrapped between words."""

    heading: str
    cells: Sequence[Text]
    words: bool = True
    justify: JustifyMethod = "left"
    unbroken: int = 0

    @property
    def full(self) -> int:
        """The width of the longest line."""
        return max(map(cell_len, self._lines()))

    @property
    def least(self) -> int:
        """The smallest width that does not break a word or a number."""
        if not self.words:
            return self.full
        words = (cell_len(word) for line in self._lines() for word in line.split())
        return max(min(self.full, self.unbroken), *words, 1)

    def _lines(self) -> Iterator[str]:
        for text in (self.heading, *(cell.plain for cell in self.cells)):
            yield from text.split("\n")


class _Parted:
    """A table that is printed in parts if the terminal is too narrow, each part with the rows' names."""

    def __init__(self, names: _Column, columns: Sequence[_Column]) -> None:
        self._names, self._columns = names, columns

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = replace(self._names, unbroken=options.max_width // 2)
        part = [names]
        for column in self._columns:
            if len(part) > 1 and not _widths([*part, column], options.max_width):
                yield _joined(part, options.max_width)
                yield Text("")
                part = [names]
            part.append(column)
        yield _joined(part, options.max_width)


def table(rows: Sequence[Row]) -> RenderableType:
    """Return rows as a table: names, the columns in the order of their first use, then the checks.

    In a terminal that is too narrow, it is printed in parts. Names are wrapped between words, and never cut.
    """
    columns = []
    for name in dict.fromkeys(name for row in rows for name in row.values):
        words = any(isinstance(row.values.get(name), str) for row in rows)
        justify: JustifyMethod = "left" if words or name.startswith("of ") else "right"
        columns.append(_Column(name, [cell(name, row.values.get(name, "")) for row in rows], words, justify))
    if any(row.check for row in rows):
        columns.append(_Column("check", [_check(row) for row in rows]))
    return _Parted(_Column("", [Text(row.name) for row in rows]), columns)


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Return the widths of columns that fit into a width, wrapping the widest words first; none if they cannot fit."""
    widths = [column.full for column in columns]
    while sum(widths) + GAP * (len(widths) - 1) > width:
        breakable = [at for at, column in enumerate(columns) if column.words and widths[at] > column.least]
        if not breakable:
            return []
        widths[max(breakable, key=widths.__getitem__)] -= 1
    return widths


def _joined(columns: Sequence[_Column], width: int) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    widths = _widths(columns, width)
    if not widths:  # the names get the rest of the width
        others = [column.least for column in columns[1:]]
        widths = [max(width - sum(others) - GAP * len(others), 1), *others]
    for column, each in zip(columns, widths, strict=True):
        grid.add_column(
            Text(column.heading), justify=column.justify, no_wrap=not column.words, overflow="fold", width=each
        )
    for cells in zip(*(column.cells for column in columns), strict=True):
        grid.add_row(*cells)
    return grid


def tried(check: Check) -> Text:
    """Return a check as a line: whether its fact is true, and if not, what was found instead."""
    if check.holds:
        return Text.assemble(("right: ", STYLES["passed"]), check.fact)
    return Text(f"FAILED: {check.fact}. {check.detail}".rstrip(), STYLES["failed"])


def _check(row: Row) -> Text:
    if row.check is None:
        return Text("")
    return Text(row.check.word, STYLES["passed"]) if row.check.holds else Text("FAILED", STYLES["failed"])


def cell(column: str, value: Value) -> Text:
    """Return a value as a cell: words on the left, numbers on the right, fractions of a limit with a bar."""
    text = text_of(column, value)
    if isinstance(value, str):
        return Text(text, justify="left")
    if column.startswith("of "):
        return Text(f"{text:>7} {bar(value)}", justify="left")
    return Text(text, justify="right")


def text_of(column: str, value: Value) -> str:
    """Return a value's text, with fractions in per cent."""
    if isinstance(value, str):
        return value
    return f"{100 * value:.1f} %" if in_per_cent(column) else number(value)


def in_per_cent(column: str) -> bool:
    """Check whether a column has fractions that are shown in per cent."""
    return column.startswith("of ") or column.endswith((" efficiency", " hit rate"))


def bar(fraction: float) -> str:
    """Return a fraction as a bar of `BAR` characters, with a resolution of an eighth of a character."""
    eighths = round(8 * BAR * min(max(fraction, 0.0), 1.0))
    part = " ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else ""
    return ("█" * (eighths // 8) + part).ljust(BAR)


def number(value: float) -> str:
    """Return a number with about three digits and separators between thousands; integers keep all their digits."""
    if isinstance(value, int) or abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:#.3g}" if abs(value) >= 1e-3 or not value else f"{value:.1e}"


def summary(outcomes: Sequence[Outcome]) -> RenderableType:
    """Return the closing table: how each stop ended, what went wrong, and the counts."""
    checks, seconds, states = [], [], []
    for done in outcomes:
        count = len(done.result.all_checks)
        checks.append(Text(f"{count - len(done.failed_checks)}/{count}" if count else ""))
        seconds.append(Text(f"{done.seconds:.1f}"))
        states.append(Text(done.state, STYLES[done.state]))
    columns = [_Column("checks", checks, False, "right"), _Column("seconds", seconds, False, "right")]
    grid = _Parted(_Column("stop", [Text(done.name) for done in outcomes]), [*columns, _Column("", states)])
    troubles = [f"FAILED in {done.name}: {check.fact}" for done in outcomes for check in done.failed_checks]
    troubles += [f"ERROR in {done.name}: {done.message}" for done in outcomes if done.state == "error"]
    ended = [done.state for done in outcomes]
    counts = [f"{ended.count(state)} {state}" for state in STYLES if state in ended]
    bad = any(done.bad for done in outcomes)
    last = Text(f"{len(ended)} stops: {', '.join(counts)}", "bold red" if bad else "bold green")
    return Group(grid, *(Text(trouble, STYLES["failed"]) for trouble in troubles), last)

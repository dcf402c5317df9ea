"""Tables that compare speeds with those of other programs, the bars for them, and the record that keeps them.

Each benchmark yields comparisons and tables as they become available. All comparisons of a run form one table.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import cudart_py as cuda
from tests.tables import Cell, number, table

HEADING = "## Measured"


class Bar(NamedTuple):
    """The required relation between our figure and the other one."""

    kind: str
    value: float

    @classmethod
    def at_least(cls, ratio: float) -> Bar:
        """Require our figure to be at least `ratio` times the other, for rates."""
        return cls("at least", ratio)

    @classmethod
    def at_most(cls, ratio: float) -> Bar:
        """Require our figure to be at most `ratio` times the other, for times."""
        return cls("at most", ratio)

    @classmethod
    def within(cls, share: float) -> Bar:
        """Require our figure to differ from the other by at most this share of it."""
        return cls("within", share)

    @classmethod
    def above(cls, difference: float) -> Bar:
        """Require our figure to exceed the other by at most this difference, in their unit."""
        return cls("above", difference)

    def reached(self, ours: float, theirs: float, ratio: float) -> bool:
        if self.kind == "at least":
            return ratio >= self.value
        off = {"at most": ratio, "within": abs(ratio - 1), "above": ours - theirs}[self.kind]
        return off <= self.value

    def __str__(self) -> str:
        return f"at most {self.value:.4g} more" if self.kind == "above" else f"{self.kind} {self.value:.4g}"


class Comparison(NamedTuple):
    """Our figure and that of a rival; `note` adds information, such as the reason why a figure is missing.

    The ratio is the quotient of the figures unless `ratio` is given, for example as the median of several ratios.
    """

    what: str
    unit: str
    ours: float | None = None
    rival: str = ""
    theirs: float | None = None
    bar: Bar | None = None
    note: str = ""
    ratio: float | None = None
    failed: bool = False

    @property
    def verdict(self) -> str:
        """The verdict; a comparison that failed has missed its bar."""
        if self.failed:
            return "MISSED"
        if self.ours is None or (self.bar and not self.theirs):
            return "not judged"
        if self.bar is None:
            return ""
        return "ok" if self.bar.reached(self.ours, self.theirs, self.quotient or 0) else "MISSED"

    @property
    def quotient(self) -> float | None:
        if self.ratio is not None or self.ours is None or not self.theirs:
            return self.ratio
        return self.ours / self.theirs

    def cells(self) -> list[Cell]:
        bar = "" if self.bar is None else str(self.bar)
        return [self.what, self.unit, self.ours, self.rival, self.theirs, self.quotient, bar, self.verdict, self.note]

    def __str__(self) -> str:
        return "  ".join(filter(None, map(number, self.cells())))


COMPARED = ["measured", "unit", "ours", "compared with", "theirs", "ratio", "bar", "verdict", "note"]


class Table(NamedTuple):
    """A further table, with rows that have no verdicts."""

    title: str
    headings: list[str]
    rows: list[list[Cell]]

    def __str__(self) -> str:
        return f"### {self.title}\n\n{table(self.headings, self.rows)}"


class Report(NamedTuple):
    """The results of one benchmark, and the machine and packages with which they were measured."""

    benchmark: str
    where: str
    tables: list[Table]

    @classmethod
    def of(cls, benchmark: str, where: str, found: Iterable[Comparison | Table]) -> Report:
        """Collect the comparisons and tables of a benchmark, and print each comparison as it comes."""
        compared = Table("Compared", COMPARED, [])
        tables = [compared]
        for one in found:
            if isinstance(one, Table):
                tables.append(one)
            else:
                compared.rows.append(one.cells())
                print(one, file=sys.stderr, flush=True)
        return cls(benchmark, where, tables)

    @classmethod
    def read(cls, file: Path) -> Report:
        record = json.loads(file.read_text())
        return cls(**record | {"tables": [Table(**one) for one in record["tables"]]})

    def write(self, file: Path) -> None:
        record = self._asdict() | {"tables": [one._asdict() for one in self.tables]}
        file.write_text(json.dumps(record, indent=1) + "\n")

    @property
    def status(self) -> int:
        found = {row[COMPARED.index("verdict")] for row in self.tables[0].rows}
        return 1 if "MISSED" in found else 2 if "not judged" in found else 0

    def __str__(self) -> str:
        return "\n\n".join([self.where, *(str(one) for one in self.tables if one.rows)])


def conditions(*packages: str) -> str:
    """Return a text with the GPU, the versions of the driver, Python and the installed packages, and the date."""
    found = [cuda.Device(0).name, f"driver for CUDA {'.'.join(map(str, cuda.driver_version()))}"]
    found.append(f"Python {sys.version.split()[0]}")
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):  # a package that is not installed was not used
            found.append(f"{package} {version(package)}")
    return f"{', '.join(found)}; {datetime.now(UTC):%Y-%m-%d}"


def attempt(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a rival's function, or print its error and return None; a rival may raise any exception."""
    try:
        return function(*arguments)
    except Exception as error:
        print(f"{name} is left out: {type(error).__name__}: {error}", file=sys.stderr)
        return None


def tried(call: Callable[[], object]) -> Callable[[], object]:
    call()
    return call


def optional(name: str) -> Any:
    """Import a rival's module, or print the error and return None if it is not installed or fails to load."""
    return attempt(name, importlib.import_module, name)


def write_page(page: Path, text: str) -> None:
    """Replace the text below the heading `## Measured` in a page of the documentation."""
    before, heading, _ = page.read_text().partition(f"{HEADING}\n")
    if not heading:
        raise SystemExit(f"{page} has no line {HEADING!r}")
    page.write_text(f"{before}{heading}\n{text}\n")

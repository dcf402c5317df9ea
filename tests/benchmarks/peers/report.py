"""Tables of speeds beside other programs', what they are compared with, and the record that keeps them.

Each benchmark yields comparisons and tables as it finds them. All comparisons of a run form one table.
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
    """The relation that our figure must have to the other one."""

    kind: str
    value: float

    @classmethod
    def at_least(cls, ratio: float) -> Bar:
        """Our figure is at least `ratio` times the other, as rates are."""
        return cls("at least", ratio)

    @classmethod
    def at_most(cls, ratio: float) -> Bar:
        """Our figure is at most `ratio` times the other, as times are."""
        return cls("at most", ratio)

    @classmethod
    def within(cls, share: float) -> Bar:
        """Our figure differs by at most this share of the other."""
        return cls("within", share)

    @classmethod
    def above(cls, difference: float) -> Bar:
        """Our figure is at most this much above the other, in the unit of both."""
        return cls("above by", difference)

    def reached(self, ours: float, theirs: float, ratio: float) -> bool:
        if self.kind == "at least":
            return ratio >= self.value
        off = {"at most": ratio, "within": abs(ratio - 1), "above by": ours - theirs}[self.kind]
        return off <= self.value

    def __str__(self) -> str:
        return f"{self.kind} {self.value:.4g}"


class Comparison(NamedTuple):
    """Our figure beside that of a rival; `note` says what the figures do not, such as why one is missing.

    `ratio` is that of the figures unless it is given, as where it is the median of several.
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
        """The outcome; a comparison that failed has missed its bar."""
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


COMPARED = ["compared", "unit", "ours", "rival", "theirs", "ratio", "bar", "verdict", "note"]


class Table(NamedTuple):
    """A further table, whose rows have no verdicts."""

    title: str
    headings: list[str]
    rows: list[list[Cell]]

    def __str__(self) -> str:
        return f"### {self.title}\n\n{table(self.headings, self.rows)}"


class Report(NamedTuple):
    """The results of one benchmark and the machine that gave them."""

    benchmark: str
    where: str
    tables: list[Table]

    @classmethod
    def of(cls, benchmark: str, where: str, found: Iterable[Comparison | Table]) -> Report:
        """Collect what a benchmark yields, and print each as it comes."""
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
    """Name the card, the driver, Python, those of the packages that are installed, and the day."""
    found = [cuda.Device(0).name, f"driver for CUDA {'.'.join(map(str, cuda.driver_version()))}"]
    found.append(f"Python {sys.version.split()[0]}")
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):  # not installed: then it played no part
            found.append(f"{package} {version(package)}")
    return f"{', '.join(found)}; {datetime.now(UTC):%Y-%m-%d}"


def attempt(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a rival's function returns; None where it fails, which is said: what is broken raises anything."""
    try:
        return function(*arguments)
    except Exception as error:
        print(f"{name} is left out: {type(error).__name__}: {error}", file=sys.stderr)
        return None


def tried(call: Callable[[], object]) -> Callable[[], object]:
    call()
    return call


def optional(name: str) -> Any:
    """Import a rival; None where it is not installed or does not load, which is said."""
    return attempt(name, importlib.import_module, name)


def write_page(page: Path, text: str) -> None:
    """Replace what a page of the documentation says below its heading `## Measured`."""
    before, heading, _ = page.read_text().partition(f"{HEADING}\n")
    if not heading:
        raise SystemExit(f"{page} has no line {HEADING!r}")
    page.write_text(f"{before}{heading}\n{text}\n")

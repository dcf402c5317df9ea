"""Stops and their results: rows, checks and pictures, independent of how they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

import cudart_py as cuda

Value = float | int | str
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Size:
    """The sizes of a stop, and the thing that `--size` counts.

    `full` is for a driver whose times are meaningful, `small` for one that only checks results. `least` is the smallest
    size at which the stop can show its idea.
    """

    counts: str
    full: int
    small: int
    least: int = 1


@dataclass(frozen=True)
class Check:
    """A fact that was checked; `detail` says what was found instead if it does not hold.

    `word` is the text in the table if it holds.
    """

    fact: str
    holds: bool
    detail: str = ""
    word: str = "right"


@dataclass(frozen=True)
class Row:
    """One line of a stop's table.

    `values` are keyed by column and unit ("ms", "GB/s"); a column that a row does not have stays empty. `note` is a
    sentence below the table, for information that does not fit into a column. `metrics` holds a profiling driver's
    counters, keyed by Nsight Compute's names, for pictures. `work` contains the amount of work of the row's calls,
    computed from their arguments, such as the bytes that they move; pictures show it when nothing is timed.
    """

    name: str
    values: Mapping[str, Value] = field(default_factory=dict)
    check: Check | None = None
    note: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    work: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Limit:
    """The limit of a stop's speed; `rate` is the limit on this device in `unit`, None if it was not measured."""

    name: str
    unit: str = "GB/s"
    rate: float | None = None

    def heading(self, text: str) -> str:
        """Return a table's heading, which names this limit if its rate is known."""
        return f"{text} (limit: {self.name})" if self.rate else text


@dataclass(frozen=True)
class Curve:
    """Lines of (x, y) points on common axes; `logarithmic` names the logarithmic axes, `line` is a limit of y.

    A point of NaNs leaves a gap in its line.
    """

    name: str
    x: str
    y: str
    lines: Mapping[str, Points]
    logarithmic: Literal["", "x", "y", "xy"] = ""
    line: Limit | None = None


@dataclass(frozen=True)
class Bars:
    """Bars for several names, with one bar per case side by side; `line` is the limit that they could reach."""

    name: str
    unit: str
    bars: Mapping[str, Mapping[str, float]]
    line: Limit | None = None


@dataclass(frozen=True)
class Timeline:
    """Spans of work: for each lane of the picture, the begin and end of each span in `unit`."""

    name: str
    lanes: Mapping[str, Points]
    unit: str = "ms"


@dataclass(frozen=True, eq=False)  # a comparison of arrays has no single truth value
class Film:
    """A sequence of frames, each a 2D array, with one range of values for all of them.

    `captions` say what each frame shows, such as its time. `scale` says what the values are; if only some values have
    a meaning, `levels` names these instead. `labels` are words on the frames, with the column and row of their centres.
    """

    name: str
    frames: Sequence[NDArray[Any]]
    captions: Sequence[str]
    scale: str = ""
    levels: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Panels:
    """Values of several kinds for the same things, each kind in a panel with a scale of its own."""

    name: str
    about: str
    panels: Mapping[str, Mapping[str, float]]


Picture = Curve | Bars | Timeline | Film | Panels


@dataclass(frozen=True)
class Result:
    """The result of a stop: `rows` in the table's order, further `checks`, `notes` in full sentences.

    `tables` are further tables below the first, keyed by heading, for rows with columns of their own. `counted` is the
    size at which counters were recorded, such as "4,096 elements", if it is smaller than the stop's size.
    """

    rows: Sequence[Row]
    limit: Limit | None = None
    checks: Sequence[Check] = ()
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    counted: str = ""

    @property
    def all_rows(self) -> list[Row]:
        """The rows of all tables."""
        return [*self.rows, *(row for rows in self.tables.values() for row in rows)]

    @property
    def all_checks(self) -> list[Check]:
        """The rows' checks, then the others."""
        return [row.check for row in self.all_rows if row.check] + list(self.checks)


class Stop(Protocol):
    """The attributes that the tour requires of a stop's module."""

    TITLE: str  # one line: what is shown
    SIZE: Size | None  # what --size means; None if nothing depends on it

    def run(self, device: cuda.Device, size: int) -> Result:
        """Check every variant, then time it if the driver can; `device` is current."""

"""Columns of a profile's tables: predefined groups with short names, and any metric by its full name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from .metric_names import (
    BYTES,
    CONFLICTS,
    GLOBAL,
    LANES,
    LOCAL,
    LOCAL_REQUESTS,
    MATRIX_LOADS,
    REQUESTS,
    SECTOR_BYTES,
    SECTORS,
    SHARED,
    SHARED_ACCESSES,
    WARPS,
    WAVEFRONTS,
    names,
    total,
)


@dataclass(frozen=True)
class Column:
    """A column: its heading on two lines, and its value, which is a sum of metrics or the quotient of two sums.

    `short` is the heading next to source code, where space is scarce. A cell is empty if all metrics in `shown` are 0,
    or if the divisor is 0.
    """

    heading: tuple[str, str]
    short: tuple[str, str]
    above: tuple[str, ...]
    below: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    scale: float = 1.0
    unit: str = ""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of all metrics that the column reads."""
        return tuple(dict.fromkeys((*self.above, *self.below, *self.shown)))

    def value(self, metrics: Mapping[str, float]) -> float | None:
        """Return the cell's number, or None if it is empty."""
        divisor = total(metrics, self.below) if self.below else 1.0
        if not divisor or (self.shown and not total(metrics, self.shown)):
            return None
        return self.scale * total(metrics, self.above) / divisor

    def number(self, metrics: Mapping[str, float]) -> str:
        """Return the cell's text without its unit."""
        value = self.value(metrics)
        if value is None:
            return ""
        return f"{value:.1f}" if self.below else f"{value:,.10g}"

    def text(self, metrics: Mapping[str, float]) -> str:
        """Return the cell's text."""
        number = self.number(metrics)
        return number and number + self.unit


def _sectors(noun: str, short: str, kinds: Iterable[str]) -> Column:
    return Column(("sectors per", noun), ("sect.", short), names(SECTORS, kinds), names(REQUESTS, kinds))


def _efficiency(noun: str, kind: str) -> Column:
    used, moved = (BYTES.format(kind),), (SECTORS.format(kind),)
    return Column((noun, "efficiency"), ("eff.%", noun), used, moved, scale=100 / SECTOR_BYTES, unit=" %")


def _sum(heading: tuple[str, str], short: tuple[str, str], pattern: str, kinds: Iterable[str]) -> Column:
    wanted = names(pattern, kinds)
    return Column(heading, short, wanted, shown=wanted)


GROUPS: dict[str, tuple[Column, ...]] = {
    "sectors": (
        _sectors("load", "load", ["ld"]),
        _sectors("store", "store", ["st"]),
        _sectors("atomic", "atom.", ["red", "atom"]),
    ),
    "efficiency": (_efficiency("load", "ld"), _efficiency("store", "st")),
    "conflicts": (
        Column(
            ("bank", "conflicts"),
            ("bank", "confl."),
            names(CONFLICTS, SHARED),
            shown=(*names(SHARED_ACCESSES, SHARED), MATRIX_LOADS),
        ),
    ),
    "lanes": (Column(("active", "lanes"), ("active", "lanes"), (LANES,), (WARPS,)),),
    "instructions": (Column(("warp in-", "structions"), ("warp", "instr."), (WARPS,)),),
    "requests": (_sum(("global", "requests"), ("global", "req."), REQUESTS, GLOBAL),),
    "wavefronts": (_sum(("shared", "wavefronts"), ("shared", "wavefr."), WAVEFRONTS, SHARED),),
    "local": (_sum(("local", "requests"), ("local", "req."), LOCAL_REQUESTS, LOCAL),),
}
DEFAULT = ("sectors", "efficiency", "conflicts", "lanes")


def read_choice(text: str) -> tuple[str, ...]:
    """Parse a choice such as `lanes,conflicts` or `smsp__inst_executed*`; raise ValueError for unknown names."""
    chosen = tuple(filter(None, (name.strip() for name in text.split(","))))
    for name in chosen:
        if name not in GROUPS and "__" not in name and "*" not in name:
            raise ValueError(
                f"{name!r} is not a metric: choose one of {', '.join(GROUPS)}, or a metric's full name such as "
                f"{WARPS}, in which * stands for any characters"
            )
    if not chosen:
        raise ValueError("no metric is named")
    return chosen


def choose(chosen: Sequence[str], known: Iterable[str]) -> list[Column]:
    """Return the columns of a choice; raise ValueError for a name that matches none of the metrics in `known`."""
    known = list(known)
    columns: list[Column] = []
    for name in chosen:
        if name in GROUPS:
            columns += GROUPS[name]
            continue
        found = [metric for metric in known if fnmatchcase(metric, name)]
        if not found:
            raise ValueError(f"no metric is named {name}; there are: {', '.join(known) or 'none'}")
        columns += [Column(("", metric), ("", metric), (metric,)) for metric in found]
    return columns

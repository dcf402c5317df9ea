"""A profiling driver's counters as columns of a stop's table: they explain why a kernel is fast or slow."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import cudart_py as cuda
from cudart_py.profiling.metric_names import (
    BYTES,
    CONFLICTS,
    CONSTANTS,
    GLOBAL,
    GRID_SIZE,
    LANES,
    LOCAL,
    LOCAL_REQUESTS,
    LOCAL_SECTORS,
    REQUESTS,
    SECTOR_BYTES,
    SECTORS,
    SHARED,
    TEXELS,
    WARPS,
    WAVEFRONTS,
    names,
)

from .stop import Value

ATOMICS = ("red", "atom")


class Column(NamedTuple):
    """The ratio of two sums of Nsight Compute metrics, times `scale`, or the sum over `over` if `under` is empty."""

    over: Sequence[str]
    under: Sequence[str] = ()
    scale: float = 1.0


COLUMNS: Mapping[str, Column] = {
    "sectors/load": Column(names(SECTORS, ["ld"]), names(REQUESTS, ["ld"])),
    "sectors/store": Column(names(SECTORS, ["st"]), names(REQUESTS, ["st"])),
    "load efficiency": Column(names(BYTES, ["ld"]), names(SECTORS, ["ld"]), 1 / SECTOR_BYTES),
    "store efficiency": Column(names(BYTES, ["st"]), names(SECTORS, ["st"]), 1 / SECTOR_BYTES),
    "sectors": Column([*names(SECTORS, GLOBAL), TEXELS]),
    "loads": Column(names(REQUESTS, ["ld"])),
    "stores": Column(names(REQUESTS, ["st"])),
    "sectors read": Column([*names(SECTORS, ["ld"]), TEXELS]),
    "constants": Column([CONSTANTS]),
    "local": Column(names(LOCAL_REQUESTS, LOCAL)),
    "sectors/local": Column(names(LOCAL_SECTORS, LOCAL), names(LOCAL_REQUESTS, LOCAL)),
    "atomics": Column(names(REQUESTS, ATOMICS)),
    "atomic sectors": Column(names(SECTORS, ATOMICS)),
    # Loads, stores and atomics together, as in the row "Total" of Nsight Compute's shared-memory table.
    "conflicts": Column(names(CONFLICTS, SHARED)),
    "wavefronts": Column(names(WAVEFRONTS, SHARED)),
    "instructions": Column([WARPS]),
    "active lanes": Column([LANES], [WARPS]),
}


def available() -> bool:
    """Check whether this driver counts what kernels do."""
    return "profile" in cuda.capabilities()


def count(work: Callable[[], object], columns: Sequence[str]) -> dict[str, Value]:
    """Run `work`; return the named columns for its launches, or none if the driver does not count."""
    if columns:
        return values(counted(work), columns)
    work()
    return {}


def counted(work: Callable[[], object]) -> dict[str, float]:
    """Run `work`; return the sums of its launches' metrics, or none if the driver does not count.

    The number of blocks is among them. A metric that any launch lacks is left out.
    """
    if not available():
        work()
        return {}
    with cuda.profile() as profiled:
        work()
        cuda.current_device().synchronize()
    launches = [launch.metrics for launch in profiled.launches]
    common = set.intersection(*map(set, launches)) if launches else set()
    # Only plain sums can be added up, not ratios.
    sums = {name: sum(metrics[name] for metrics in launches) for name in sorted(common) if name.endswith(".sum")}
    return {**sums, GRID_SIZE: sum(math.prod(launch.grid) for launch in profiled.launches)} if launches else sums


def values(metrics: Mapping[str, float], columns: Sequence[str]) -> dict[str, Value]:
    """Return the columns that metrics yield; leave out those with missing metrics or a divisor of zero."""
    found = {column: _value(metrics, COLUMNS[column]) for column in columns}
    return {column: value for column, value in found.items() if value is not None}


def _value(metrics: Mapping[str, float], column: Column) -> Value | None:
    if any(metric not in metrics for metric in (*column.over, *column.under)):
        return None
    above = sum(metrics[metric] for metric in column.over)
    if not column.under:
        return above
    below = sum(metrics[metric] for metric in column.under)
    return column.scale * above / below if below else None

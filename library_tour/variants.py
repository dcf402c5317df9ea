"""Run the variants of one idea: check every one, then time them side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

import cudart_py as cuda

from . import counters, progress, timing
from .checks import compare, on_host, poison
from .stop import Check, Limit, Points, Row, Value


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to get a result.

    `launch` computes `output`, on the device or the host, which must be within `tolerance` of `expected`. The output is
    poisoned beforehand; if it is also an input, `prepare` writes it instead. `before` restores the state that each
    launch starts from, and is not timed. `timed` is the work that is timed, by default `launch`. `amount` is the amount
    of this work in the unit of the limit: bytes for GB/s, steps for Gsteps/s. `columns` are further columns of the
    variant's row. `work` contains the amount of work of `launch`, computed from its arguments, such as the bytes that
    it moves; pictures show it when nothing is timed.
    """

    name: str
    launch: Callable[[], object]
    output: cuda.DeviceArray | NDArray[Any]
    expected: NDArray[Any]
    amount: float = 0
    tolerance: float = 0.0
    prepare: Callable[[], object] | None = None
    before: Callable[[], object] | None = None
    timed: Callable[[], object] | None = None
    columns: Mapping[str, Value] = field(default_factory=dict)
    work: Mapping[str, float] = field(default_factory=dict)


def measure(
    variants: Sequence[Variant], limit: Limit | None, explained_by: Sequence[str] = (), *, quick: bool = False
) -> list[Row]:
    """Check all variants, then time those that are right; one row each, in the given order.

    `explained_by` names the counters (`counters.COLUMNS`) that explain why one variant is faster than another. They are
    shown if the driver counts. `quick` is for a curve, whose many points need less precision and are counted only if
    counters are named.
    """
    checked = [_check(variant, explained_by, quick) for variant in variants]
    return [_time(variant, row, limit, quick) for variant, row in zip(variants, checked, strict=True)]


def _check(variant: Variant, explained_by: Sequence[str], quick: bool) -> Row:
    progress.tell(variant.name)
    if variant.prepare:
        variant.prepare()
    else:
        poison(variant.output)
    if variant.before:
        variant.before()
        cuda.current_device().synchronize()
    metrics: dict[str, float] = {}
    try:
        if explained_by or not quick:
            metrics = counters.counted(variant.launch)
        else:
            variant.launch()
        got = on_host(variant.output)
    except (cuda.errors.NotSupportedError, cuda.errors.NotFoundError) as error:
        return Row(variant.name, note=f"Skipped: {error}")
    check = compare(f"{variant.name} equals NumPy's result", got, variant.expected, variant.tolerance)
    values = {**variant.columns, **counters.values(metrics, explained_by)}
    return Row(variant.name, values, check, metrics=metrics, work=variant.work)


def _time(variant: Variant, row: Row, limit: Limit | None, quick: bool) -> Row:
    if not timing.available() or row.check is None or not row.check.holds:
        return row
    progress.tell(f"{variant.name}, timed")
    work = variant.timed or variant.launch
    ms = timing.fresh_ms(variant.before, work) if variant.before else timing.median_ms(work, quick=quick)
    return Row(row.name, {**timing.rates(ms, variant.amount, limit), **row.values}, row.check)


def points(places: Iterable[float], rows: Iterable[Row], column: str) -> Points:
    """Return a curve's points: each place with the value of its row in `column`.

    A row without the column has no point. Rows of wrong variants lack it, because these are not timed.
    """
    found = zip(places, rows, strict=True)
    return [(place, float(row.values[column])) for place, row in found if column in row.values]


def side_by_side(cases: Mapping[str, Sequence[Row]], column: str) -> list[Row]:
    """Merge the rows of the same variants in several cases: one column per case, with the values of `column`.

    A row's check holds if it holds in every case. Its note is the first one of any case, and its metrics are the sums
    over all cases.
    """
    merged = []
    for rows in zip(*cases.values(), strict=True):
        values = {case: row.values[column] for case, row in zip(cases, rows, strict=True) if column in row.values}
        checks = [row.check for row in rows if row.check]
        wrong = [check for check in checks if not check.holds]
        check = (wrong or checks)[0] if checks else None
        note = next((row.note for row in rows if row.note), "")
        metrics = {name: sum(row.metrics.get(name, 0) for row in rows) for name in rows[0].metrics}
        merged.append(Row(rows[0].name, values, check and Check(check.fact, not wrong, check.detail), note, metrics))
    return merged


def of_slowest(row: Row, limit: Limit) -> Row:
    """Return a row of rates from `side_by_side` with the fraction of the limit that its slowest case reaches."""
    rates = [float(value) for value in row.values.values()]
    if not rates or not limit.rate:
        return row
    return replace(row, values={**row.values, "of limit": min(rates) / limit.rate})

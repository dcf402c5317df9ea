"""Run the variants of one idea: check every one, then time them side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

import cudart_py as cuda

from . import timing
from .checks import compare, on_host, poison
from .stop import Limit, Row, Value

__all__ = ["Variant", "measure"]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to get a result.

    `launch` computes `output`, on the device or the host, which must come within `tolerance` of
    `expected`. The output is poisoned before; where it is an input too, `prepare` writes it instead.
    `timed` is what is timed, `launch` where it is not given, and moves `nbytes`. `columns` are further
    columns of the variant's row.
    """

    name: str
    launch: Callable[[], object]
    output: cuda.DeviceArray | NDArray[Any]
    expected: NDArray[Any]
    nbytes: int
    tolerance: float = 0.0
    prepare: Callable[[], object] | None = None
    timed: Callable[[], object] | None = None
    columns: Mapping[str, Value] = field(default_factory=dict)


def measure(variants: Sequence[Variant], limit: Limit | None) -> list[Row]:
    """Check all variants, then time those that are right; one row each, in the given order."""
    checked = [_check(variant) for variant in variants]
    return [_time(variant, row, limit) for variant, row in zip(variants, checked, strict=True)]


def _check(variant: Variant) -> Row:
    if variant.prepare:
        variant.prepare()
    else:
        poison(variant.output)
    try:
        variant.launch()
        got = on_host(variant.output)
    except cuda.NotSupportedError as error:
        return Row(variant.name, note=f"this driver cannot run it: {error}")
    check = compare(f"{variant.name} equals NumPy's result", got, variant.expected, variant.tolerance)
    return Row(variant.name, variant.columns, check)


def _time(variant: Variant, row: Row, limit: Limit | None) -> Row:
    if not timing.available() or row.check is None or not row.check.holds:
        return row
    ms = timing.median_ms(variant.timed or variant.launch)
    return Row(row.name, {**timing.rates(ms, variant.nbytes, limit), **row.values}, row.check)

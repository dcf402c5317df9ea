"""The estimated times of the tour's kernels, from the simulator's counters, compared with times measured on an H200.

    CUDART_PY_DRIVER=simulator python -m tests.benchmarks.peers estimates --markdown docs/estimates-accuracy.md

Each stop runs on the simulator as on a GPU, except that the estimate replaces the timer. It runs at a size at which
most launches fill an H200. The measured rates are those of the recorded run (docs/h200.md). The figure of a stop is
Spearman's rank correlation of the two over its variants. Values that differ by at most 3 % have the same rank; the
notes also have the figure without this rule.
"""

import argparse
import bisect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import cudart_py as cuda
from cudart_py.profiling.card import H200
from cudart_py.profiling.costs import cost, launch_metrics
from library_tour import limits, recorded, timing
from library_tour.course import heat
from library_tour.runner import run_stop
from library_tour.stop import Result, Row

from .report import Bar, Comparison, Report, Table

LEAST_VARIANTS, LEAST_CORRELATION, SAME = 4, 0.8, 0.03
# Stops whose kernels are timed on one device, with the size to run. In the stops below them, the columns are rates of
# several cases.
SIZES = {
    "map": 2**16, "launch_shapes": 2**20 + 3, "occupancy": 2**23, "nan_check": 2**20 + 3, "variables": 2**8,
    "constant_memory": 2**18 + 3, "coalescing": 2**20 + 3, "stride_and_offset": 2**21, "transpose": 1024,
    "bank_conflicts": 2**8, "divergence": 2**20 + 5, "reduction": 2**21 + 3, "logical_and": 2**22 + 3,
    "dot_product": 2**20 + 3, "heat": 1024, "cooling": 2**20 + 3, "precision": 2**16, "matmul": 256,
    "monte_carlo": 2**14, "nested_monte_carlo": 2**17, "crank_nicolson": 100,
}  # fmt: skip  # a table
CASES = {"texture": 512, "local_memory": 2**19 + 5, "histogram": 2**20}
# The simulator takes too long for products large enough to fill the card. Their grids are left out of the estimates,
# which then assume that each multiprocessor has enough warps, as at the full size.
NOT_FILLED = ("matmul",)
# Why estimates order the variants of some stops differently.
REASONS = {
    "heat": "the threads of a tile load nothing while they wait at the barrier, and such waits are not modelled",
    "texture": "the variants differ in hits in the caches, which are not modelled",
    "histogram": "the time of global atomics depends on how many addresses they share, which is not counted",
}


class Variant(NamedTuple):
    """A variant with its estimated and measured time per unit of work, in arbitrary units, and its bound if known."""

    name: str
    estimate: float
    measured: float
    bound: str


class Estimates:
    """The tour's timer, replaced by the estimate; `bounds` has the bound of each estimated time in milliseconds.

    `with_grids` says whether launches have the number of blocks and warps that they would have on a GPU.
    """

    def __init__(self, *, with_grids: bool = True) -> None:
        self._with_grids = with_grids
        self.bounds: dict[float, str] = {}

    def median_ms(self, work: Callable[[], object], stream: cuda.Stream | None = None, *, quick: bool = False) -> float:
        """Return the estimated time of the launches of `work`; points of curves are not estimated."""
        if quick:
            return math.nan
        with cuda.sanitizer("off"), cuda.profile() as profile:
            work()
            cuda.current_device().synchronize()
        metrics_of = launch_metrics if self._with_grids else attrgetter("metrics")
        costs = [cost(metrics_of(launch)) for launch in profile.launches]
        if not costs:
            return math.nan
        ms = 1e3 * sum(each.seconds for each in costs)
        self.bounds[ms] = max(costs, key=lambda each: each.seconds).bound
        return ms

    def fresh_ms(self, before: Callable[[], object], work: Callable[[], object]) -> float:
        """Return the estimated time of `work`, from a state that `before` restores."""
        before()
        cuda.current_device().synchronize()
        return self.median_ms(work)


@contextmanager
def estimated_times(*, with_grids: bool = True) -> Iterator[Estimates]:
    """Let stops time with estimates inside the block."""
    estimates = Estimates(with_grids=with_grids)

    def unknown(work: Callable[[], object]) -> float:
        return math.nan

    with ExitStack() as stack:
        for module, name, function in (
            (timing, "available", lambda: True),
            (timing, "median_ms", estimates.median_ms),
            (timing, "fresh_ms", estimates.fresh_ms),
            (timing, "call_ms", unknown),
            (timing, "waiting_ms", unknown),
            (limits, "_measured", lambda device, kind: None),
            # The film takes as many steps as fit into the time in which a frame is written.
            (heat, "film", lambda *_: ([], [], [])),
        ):
            stack.enter_context(mock.patch.object(module, name, function))
        yield estimates


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=(*SIZES, *CASES), metavar="STOP", help="run only these stops")


def measure(options: argparse.Namespace) -> Report:
    where = (
        f"Counters: the simulator. Times: {recorded.machine()}. Estimates: {H200.name}, "
        f"{H200.multiprocessors} multiprocessors, {1e-9 * H200.hertz:g} GHz, {1e-9 * H200.memory:,.0f} GB/s."
    )
    return Report.of("estimates", where, _compared(options.only or (*SIZES, *CASES)))


def _compared(stops: Sequence[str]) -> Iterator[Comparison | Table]:
    listed: list[list[Any]] = []
    for stop in stops:
        for title, variants in estimated_variants(stop).items():
            name = f"{stop}: {title}" if title else stop
            found = correlation(variants)
            reason = REASONS.get(name, "") if found < LEAST_CORRELATION else ""
            exact = f"{len(variants)} variants, {correlation(variants, same=0):.2f} with exact ranks"
            note = f"{exact}; {reason}" if reason else exact
            bar = Bar.at_least(LEAST_CORRELATION)
            yield Comparison(name, "rank correlation", found, "the same order", 1.0, bar, note)
            fastest = [min(variant[place] for variant in variants) for place in (1, 2)]
            listed += [
                [name, each.name, each.estimate / fastest[0], each.measured / fastest[1], each.bound]
                for each in sorted(variants, key=lambda variant: variant.measured)
            ]
    headings = ["stop", "variant", "estimate, relative", "time, relative", "bound"]
    yield Table("Variants, the fastest first", headings, listed)


def estimated_variants(stop: str, size: int | None = None) -> dict[str, list[Variant]]:
    """Run a stop with estimated times; return the variants of each table that has enough of them, by its title."""
    with estimated_times(with_grids=stop not in NOT_FILLED) as estimates:
        outcome = run_stop(stop, cuda.Device(0), size or {**SIZES, **CASES}[stop])
    if outcome.state != "passed":
        raise RuntimeError(f"{stop} {outcome.state}: {outcome.message}")
    return _variants_of(stop, outcome.result, estimates.bounds)


def _variants_of(stop: str, result: Result, bounds: Mapping[float, str]) -> dict[str, list[Variant]]:
    record = recorded.stop(stop)
    if record is None:
        raise RuntimeError(f"{stop} was not recorded")
    estimated = {_short(title): rows for title, rows in {"": result.rows, **result.tables}.items()}
    found: dict[str, list[Variant]] = {}
    for title, rows in {"": record["rows"], **({} if stop in CASES else record["tables"])}.items():
        measured = {row["name"]: row["values"] for row in rows}
        variants = [
            _variant(row, measured.get(row.name, {}), bounds, cases=stop in CASES)
            for row in estimated.get(_short(title), ())
        ]
        kept = [variant for variant in variants if variant.estimate > 0 and variant.measured > 0]
        if len(kept) >= LEAST_VARIANTS:
            found[_short(title)] = kept
    return found


def _short(title: str) -> str:
    """Return a table's title without its limit, which only a run with measured limits names."""
    return title.partition(" (limit")[0]


def _variant(row: Row, measured: Mapping[str, Any], bounds: Mapping[float, str], *, cases: bool) -> Variant:
    bound = bounds.get(float(row.values.get("ms", math.nan)), "")
    # Rows without an estimate are those of the host.
    estimate = _time(row.values, cases=cases) if cases or bound else math.nan
    return Variant(row.name, estimate, _time(measured, cases=cases), bound)


def _time(values: Mapping[str, Any], *, cases: bool) -> float:
    """Return the time per unit of work, the sum over the cases if there are several; NaN if the row was not timed."""
    if cases:
        return sum(1 / rate for case, rate in values.items() if case != "of limit") or math.nan
    return next((1 / rate for column, rate in values.items() if column.endswith("/s") and rate), math.nan)


def correlation(variants: Sequence[Variant], same: float = SAME) -> float:
    """Return Spearman's rank correlation of the estimates and the measured times; 0 if all of one are the same."""
    estimated, measured = (ranks([variant[place] for variant in variants], same) for place in (1, 2))
    if np.ptp(estimated) == 0 or np.ptp(measured) == 0:
        return 0.0
    # Without rounding, the correlation of a few ranks may be a little less than 0.8 instead of equal to it.
    return round(float(np.corrcoef(estimated, measured)[0, 1]), 9)


def ranks(values: Sequence[float], same: float = SAME) -> list[float]:
    """Return each value's rank from 1; values at most `same` above the least of their group share their mean rank."""
    groups: list[float] = []
    for value in sorted(values):
        if not groups or value > (1 + same) * groups[-1]:
            groups.append(value)
    numbers = sorted(bisect.bisect(groups, value) for value in values)
    places = (bisect.bisect(groups, value) for value in values)
    return [(bisect.bisect_left(numbers, at) + bisect.bisect(numbers, at) + 1) / 2 for at in places]

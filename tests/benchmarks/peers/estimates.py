"""The estimated costs of the tour's kernels, from the simulator's counters, compared with times measured on an H200.

    CUDART_PY_DRIVER=simulator python -m tests.benchmarks.peers estimates --markdown docs/estimates.md

Each stop runs on the simulator at its small size. The measured rates are those of the recorded run (docs/h200.md). Both
are converted to time per unit of work. The figure of a stop is Spearman's rank correlation of the two over its
variants. Values that differ by at most 3 % have the same rank; the notes also have the figure without this rule.
"""

import argparse
import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import cudart_py as cuda
from cudart_py.profiling.card import H200
from cudart_py.profiling.costs import cost
from library_tour import recorded
from library_tour.runner import run_stop
from library_tour.stop import Result, Row

from .report import Bar, Comparison, Report, Table

LEAST_VARIANTS, LEAST_CORRELATION, SAME = 4, 0.8, 0.03
# Stops whose kernels are timed on one device. In those of the second line, the columns are rates of several cases.
STOPS = (
    "map", "launch_shapes", "occupancy", "nan_check", "variables", "constant_memory", "coalescing", "stride_and_offset",
    "transpose", "bank_conflicts", "divergence", "reduction", "logical_and", "dot_product", "heat", "cooling",
    "precision", "matmul", "monte_carlo", "nested_monte_carlo", "crank_nicolson",
)  # fmt: skip  # a list of words
CASES = ("texture", "local_memory", "histogram")
FEW_THREADS = "some variants run in a few threads, and latency limits them; estimates assume busy multiprocessors"
REASONS = {
    "launch_shapes": FEW_THREADS,
    "heat": f"{FEW_THREADS}. Fixed grids weigh more here",
    "nested_monte_carlo": FEW_THREADS,
    "crank_nicolson": f"{FEW_THREADS}. Waits at barriers are not counted either",
    "occupancy": "the variants differ in their resident warps, which are not counted; fixed grids weigh more here",
    "precision": "divisions, roots and special functions are one instruction in PTX, but many in machine code",
    "texture": "the variants differ in hits in the caches, which are not modelled",
    "histogram": "the time of global atomics depends on how many addresses they share, which is not counted",
    "cooling": "the measured times differ by less than 20 %, which is less than the model resolves",
}


class Variant(NamedTuple):
    """A variant with its estimated and measured time per unit of work, in arbitrary units, and its bound."""

    name: str
    estimate: float
    measured: float
    bound: str


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=(*STOPS, *CASES), metavar="STOP", help="run only these stops")


def measure(options: argparse.Namespace) -> Report:
    where = (
        f"Counters: the simulator, at the stops' small sizes. Times: {recorded.machine()}. Estimates: {H200.name}, "
        f"{H200.multiprocessors} multiprocessors, {1e-9 * H200.hertz:g} GHz, {1e-9 * H200.memory:,.0f} GB/s."
    )
    return Report.of("estimates", where, _compared(options.only or (*STOPS, *CASES)))


def _compared(stops: Sequence[str]) -> Iterator[Comparison | Table]:
    listed: list[list[Any]] = []
    for stop in stops:
        for title, variants in variants_of(stop, _result(stop)).items():
            name = f"{stop}: {title}" if title else stop
            found = correlation(variants)
            reason = REASONS.get(stop, "") if found < LEAST_CORRELATION else ""
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


def _result(stop: str) -> Result:
    outcome = run_stop(stop, cuda.Device(0))
    if outcome.state != "passed":
        raise RuntimeError(f"{stop} {outcome.state}: {outcome.message}")
    return outcome.result


def variants_of(stop: str, result: Result) -> dict[str, list[Variant]]:
    """Return the variants of each table that has enough of them, by the table's title.

    `result` is a stop's result on the simulator. The measured times are those of the recorded run.
    """
    record = recorded.stop(stop)
    if record is None:
        raise RuntimeError(f"{stop} was not recorded")
    counted = {_short(title): rows for title, rows in {"": result.rows, **result.tables}.items()}
    found: dict[str, list[Variant]] = {}
    for title, rows in {"": record["rows"], **({} if stop in CASES else record["tables"])}.items():
        times = {row["name"]: _time(row["values"], cases=stop in CASES) for row in rows}
        of_table = counted.get(_short(title), ())
        variants = [_variant(row, times[row.name]) for row in of_table if row.metrics and times.get(row.name)]
        if len(variants) >= LEAST_VARIANTS:
            found[_short(title)] = variants
    return found


def _short(title: str) -> str:
    """Return a table's title without its limit, which only a run with measured limits names."""
    return title.partition(" (limit")[0]


def _variant(row: Row, measured: float) -> Variant:
    estimate = cost(row.metrics)
    return Variant(row.name, estimate.seconds / (row.amount or 1), measured, estimate.bound)


def _time(values: Mapping[str, Any], *, cases: bool) -> float:
    """Return the measured time per unit of work, 0 if the row was not timed."""
    if cases:
        return sum(1 / rate for case, rate in values.items() if case != "of limit")
    return next((1 / rate for column, rate in values.items() if column.endswith("/s") and rate), 0.0)


def correlation(variants: Sequence[Variant], same: float = SAME) -> float:
    """Return Spearman's rank correlation of the estimates and the measured times; 0 if all of one are the same."""
    estimated, measured = (ranks([variant[place] for variant in variants], same) for place in (1, 2))
    if np.ptp(estimated) == 0 or np.ptp(measured) == 0:
        return 0.0
    return float(np.corrcoef(estimated, measured)[0, 1])


def ranks(values: Sequence[float], same: float = SAME) -> list[float]:
    """Return each value's rank from 1; values at most `same` above the least of their group share their mean rank."""
    groups: list[float] = []
    for value in sorted(values):
        if not groups or value > (1 + same) * groups[-1]:
            groups.append(value)
    numbers = sorted(bisect.bisect(groups, value) for value in values)
    places = (bisect.bisect(groups, value) for value in values)
    return [(bisect.bisect_left(numbers, at) + bisect.bisect(numbers, at) + 1) / 2 for at in places]

"""Price a call option for many share prices: paths from each start value, all in one launch.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run nested_monte_carlo
    nested_monte_carlo: Nested Monte Carlo: paths from many start values
    size 4,096: paths in all
                         active lanes  at 40  check
    ───────────────────────────────────────────────
    one launch each              28.2         right
    one thread each              5.00   20.0  right
    one warp each                28.0   7.83  right
    several blocks each          28.2   11.0  right
    The 'active lanes' column shows how many of 32 lanes are active on average, with
    5 start values and 140 paths from each. The 'at 40' column shows the same with
    40 start values and 7 paths from each.
    The outer stage covers the start values, and the inner stage simulates paths
    from each. Each start value gets its own launch, thread, warp or group of
    blocks. With one thread or one warp each, most of the device is idle if there
    are few start values. With several blocks each, lanes are idle if there are
    fewer paths than lanes. With one launch each, the paths of a single start value
    must fill the device. All variants simulate the same paths, because the index of
    a path determines its random numbers.
    With 1,024 paths per start value, 30 of 30 intervals contain the exact price.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..black_scholes import call_price
from ..device_code import WAVES, blocks_for, load
from ..limits import issue_limit
from ..philox import normals
from ..stop import Check, Curve, Points, Result, Row, Size
from ..variants import Variant, measure
from .monte_carlo import INSTRUCTIONS, OPTION, RATE, SIGMA, STEPS, STRIKE, YEARS

TITLE = "Nested Monte Carlo: paths from many start values"
SIZE = Size("paths in all", full=2**22, small=2**12)
LOW, SPAN = 20.0, 80.0  # start value j of m is 20 + 80 j / m
BLOCK = 128
# The numbers of start values to time. In each case the total number of paths is the size.
OUTER, MORE_OUTER = 64, (2048, 16384)
STAGES = np.dtype([("low", "f4"), ("step", "f4"), ("first", "u4"), ("count", "u4"), ("inner", "u4")])
Array = NDArray[Any]


class Way(NamedTuple):
    """A kernel, and the number of threads per start value; 0 means several waves of blocks."""

    kernel: str
    threads: int
    one_launch: bool = True


WAYS = {
    "one launch each": Way("nested_blocks<Euler>", 0, one_launch=False),
    "one thread each": Way("nested_threads<Euler>", 1),
    "one warp each": Way("nested_warps<Euler>", 32),
    "several blocks each": Way("nested_blocks<Euler>", 0),
}
BLOCKS_EACH = WAYS["several blocks each"]
LANES = "active lanes"


@dataclass(frozen=True)
class Stages:
    """`outer` start values and `inner` paths from each, priced with a strike."""

    outer: int
    inner: int
    strike: float = STRIKE

    @property
    def starts(self) -> Array:
        """The start values, shape (outer,)."""
        return LOW + SPAN * np.arange(self.outer) / self.outer

    @property
    def exact(self) -> Array:
        """The prices from the closed form, shape (outer,)."""
        return call_price(self.starts, self.strike, RATE, SIGMA, YEARS)

    def option(self) -> Any:
        """Return the structure of the option and of a step. The kernels replace its start value."""
        dt = YEARS / STEPS
        return np.array((0, self.strike, 1 + RATE * dt, SIGMA * math.sqrt(dt), STEPS), OPTION)[()]

    def part(self, first: int, count: int) -> Any:
        """Return the structure of `count` start values, beginning with the index `first`."""
        return np.array((LOW, SPAN / self.outer, first, count, self.inner), STAGES)[()]


# Checked with few start values and many paths, and the other way round.
FEW, MANY = Stages(5, 140), Stages(40, 7)
COVERED, COVERED_SEED = Stages(40, 1024), 1  # the intervals of these are checked
STRIKES, PRICED = (30.0, 50.0, 70.0), 32  # drawn: strikes, and the number of start values
ERRORS_OUTER, SEEDS = (16, 64), 4  # drawn: numbers of start values, and the number of seeds
FANS, FAN_PATHS = 4, 5  # drawn: start values, and paths from each
WHY = (
    "The outer stage covers the start values, and the inner stage simulates paths from each. Each start value gets "
    "its own launch, thread, warp or group of blocks. With one thread or one warp each, most of the device is idle if "
    "there are few start values. With several blocks each, lanes are idle if there are fewer paths than lanes. With "
    "one launch each, the paths of a single start value must fill the device. All variants simulate the same paths, "
    "because the index of a path determines its random numbers."
)


def paths(stages: Stages, seed: int) -> Array:
    """Return the price of the share at each step of each path, shape (outer, inner, STEPS + 1)."""
    option = stages.option()
    factors = option["drift"] + option["scale"] * normals(stages.outer * stages.inner, STEPS, seed)
    grown = np.cumprod(np.concatenate([np.ones((len(factors), 1)), factors], axis=1), axis=1)
    return stages.starts[:, None, None] * grown.reshape(stages.outer, stages.inner, STEPS + 1)


def reference(stages: Stages, seed: int, parts: int) -> Array:
    """Return the sums of the payoffs and of their squares for each block, shape (outer, parts, 2)."""
    payoff = np.zeros((stages.outer, blocks_for(stages.inner, parts * BLOCK) * parts * BLOCK))
    payoff[:, : stages.inner] = np.maximum(paths(stages, seed)[:, :, -1] - stages.strike, 0)
    by_part = payoff.reshape(stages.outer, -1, parts, BLOCK)
    return np.stack([by_part.sum(axis=(1, 3)), (by_part**2).sum(axis=(1, 3))], axis=2)


class Prices(NamedTuple):
    """Estimates and half the widths of their 95 % intervals, each of shape (outer,)."""

    values: Array
    half_widths: Array


class Pricer:
    """All kernels on a device, ready to launch for any stages."""

    def __init__(self, device: cuda.Device) -> None:
        self.module = load("nested_monte_carlo", names=sorted({way.kernel for way in WAYS.values()}), fast_math=True)
        # The blocks in a launch: a single wave would leave multiprocessors idle until its slowest block ended.
        self.most = WAVES * device.sm_count * self.module[BLOCKS_EACH.kernel].occupancy(BLOCK).blocks

    def sums(self, way: Way, stages: Stages) -> cuda.DeviceArray:
        """Return an array for the sums of a way, shape (outer, blocks of a start value, 2)."""
        most = self.most // (stages.outer if way.one_launch else 1)
        blocks = 1 if way.threads else max(1, min(most, blocks_for(stages.inner, BLOCK)))
        return cuda.empty((stages.outer, blocks, 2), np.float64)

    def launch(self, way: Way, stages: Stages, seed: int, sums: cuda.DeviceArray) -> Callable[[], object]:
        """Return a function that queues all start values, in one launch or one after another."""
        at_once = stages.outer if way.one_launch else 1
        grid = blocks_for(at_once * way.threads, BLOCK) if way.threads else (at_once, sums.shape[1])
        kernel, option = self.module[way.kernel][grid, BLOCK], stages.option()
        firsts = range(0, stages.outer, at_once)
        launches = [kernel.bind(option, stages.part(first, at_once), seed, sums) for first in firsts]

        def queue() -> None:
            for launch in launches:
                launch()

        return queue

    def price(self, stages: Stages, seed: int) -> Prices:
        """Estimate the prices."""
        sums = self.sums(BLOCKS_EACH, stages)
        self.launch(BLOCKS_EACH, stages, seed, sums)()
        total, squares = sums.to_host().sum(axis=1).T
        mean = total / stages.inner
        variance = (squares / stages.inner - mean**2) * stages.inner / max(stages.inner - 1, 1)
        discount = math.exp(-RATE * YEARS)
        return Prices(discount * mean, discount * 1.96 * np.sqrt(np.maximum(variance, 0) / stages.inner))

    def variant(self, name: str, checked: Stages, timed: Stages, seed: int) -> Variant:
        """Return a way as a variant that is checked with some stages and timed with others."""
        way = WAYS[name]
        sums, timed_sums = self.sums(way, checked), self.sums(way, timed)
        expected = reference(checked, seed, sums.shape[1])
        return Variant(
            name=name,
            launch=self.launch(way, checked, seed, sums),
            output=sums,
            expected=expected,
            # A payoff is the difference of two prices, so its rounding error is relative to the prices.
            tolerance=1e-4 * max(STRIKE, float(expected.max())),
            timed=self.launch(way, timed, seed, timed_sums),
            amount=timed.outer * timed.inner * STEPS,
        )


def run(device: cuda.Device, size: int) -> Result:
    """Check every variant with few and with many start values, time it for several numbers, and plot the prices."""
    pricer, seed = Pricer(device), int(np.random.default_rng().integers(2**63))
    limit = issue_limit(device, INSTRUCTIONS, "Gsteps/s")

    def rows_of(checked: Stages, timed: Stages, names: Iterable[str]) -> list[Row]:
        return measure([pricer.variant(name, checked, timed, seed) for name in names], limit, [LANES])

    shapes = [Stages(outer, max(1, size // outer)) for outer in (OUTER, *MORE_OUTER)]
    rows = rows_of(FEW, shapes[0], WAYS)
    in_one_launch = [name for name, way in WAYS.items() if way.one_launch]
    if timing.available():
        column, others = (
            limit.unit,
            {f"at {shape.outer:,}": rows_of(MANY, shape, in_one_launch) for shape in shapes[1:]},
        )
        note = (
            f"There are {OUTER} start values. The 'at' columns show the rate in {limit.unit} with more start values "
            "and fewer paths from each. The total number of paths stays the same."
        )
    else:
        column, others = LANES, {f"at {MANY.outer}": rows_of(MANY, shapes[0], in_one_launch)}
        note = (
            f"The 'active lanes' column shows how many of 32 lanes are active on average, with {FEW.outer} start "
            f"values and {FEW.inner} paths from each. The 'at {MANY.outer}' column shows the same with {MANY.outer} "
            f"start values and {MANY.inner} paths from each."
        )
    for case, found in others.items():
        values = {row.name: {case: row.values[column]} for row in found if column in row.values}
        rows = [replace(row, values={**row.values, **values.get(row.name, {})}) for row in rows]
    covered = coverage(pricer)
    checks = [*(row.check for found in others.values() for row in found if row.check), covered]
    pictures = [prices(pricer, size, seed), errors(pricer, size), two_stages(seed)]
    return Result(rows, limit, checks, pictures, [note, WHY, covered.detail])


def coverage(pricer: Pricer) -> Check:
    """Check that about 95 % of the intervals cover the price, for start values whose payoff is often above zero."""
    found, exact = pricer.price(COVERED, COVERED_SEED), COVERED.exact
    inside = (np.abs(found.values - exact) <= found.half_widths)[exact > 1]
    detail = (
        f"With {COVERED.inner:,} paths per start value, {inside.sum()} of {inside.size} intervals contain the exact "
        "price."
    )
    return Check("most of the 95 % intervals contain the exact price", inside.mean() > 0.85, detail)


def prices(pricer: Pricer, size: int, seed: int) -> Curve:
    """Return a curve of the estimated prices and the closed form against the start value, for several strikes."""
    lines: dict[str, Points] = {}
    for strike in STRIKES:
        stages = Stages(PRICED, max(1, size // PRICED), strike)
        starts = stages.starts.tolist()
        lines[f"strike {strike:g}"] = list(zip(starts, pricer.price(stages, seed).values.tolist(), strict=True))
        lines[f"strike {strike:g}, closed form"] = list(zip(starts, stages.exact.tolist(), strict=True))
    return Curve("prices", "share price today", "option price", lines)


def errors(pricer: Pricer, size: int) -> Curve:
    """Return a curve of the error, the root mean square over start values, against the paths from each of them."""
    most = max(size // max(ERRORS_OUTER), 256)
    inners = [4**power for power in range(2, 12) if 4**power <= most]
    lines: dict[str, Points] = {}
    for outer in ERRORS_OUTER:
        shapes = [Stages(outer, inner) for inner in inners]
        squares = [[(pricer.price(shape, seed).values - shape.exact) ** 2 for seed in range(SEEDS)] for shape in shapes]
        means = [float(np.mean(square)) for square in squares]
        lines[f"{outer} start values"] = [(inner, math.sqrt(mean)) for inner, mean in zip(inners, means, strict=True)]
    last = lines[f"{max(ERRORS_OUTER)} start values"][-1]
    lines["slope -1/2"] = [(inner, last[1] * math.sqrt(last[0] / inner)) for inner in inners]
    return Curve("error", "paths from each start value", "error in the price", lines, logarithmic="xy")


def two_stages(seed: int) -> Curve:
    """Return a plot of inner paths that begin at a few outer start values."""
    stages = Stages(FANS, FAN_PATHS)
    shown = paths(stages, seed)
    times = [*np.linspace(0, YEARS, STEPS + 1).tolist(), math.nan]  # a gap after each path
    gap = (math.nan, math.nan)
    starts = [point for start in stages.starts.tolist() for point in ((0.0, start), gap)]
    lines: dict[str, Points] = {"outer stage: start values": starts}
    for outer, start in enumerate(stages.starts):
        values = np.pad(shown[outer], ((0, 0), (0, 1)), constant_values=math.nan)
        lines[f"inner stage, from {start:g}"] = [
            point for path in values.tolist() for point in zip(times, path, strict=True)
        ]
    return Curve("stages", "time in years", "share price", lines)

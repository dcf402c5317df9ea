"""Price a call option from simulated paths, computing the random numbers in registers.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run monte_carlo
    monte_carlo: Monte Carlo pricing with random numbers in registers
    size 4,096: paths
                      registers  price   ±       check
    ──────────────────────────────────────────────────
    Euler                    45  6.6814  0.2485  right
    Euler, fast math         40  6.6814  0.2485  right
    exact steps              45  6.6839  0.2490  right
    exact, fast math         40  6.6839  0.2490  right
    The exact price is 6.6348. With 100 steps, Euler's scheme converges to 6.63202.
    Its bias of -0.0028 is visible once the 95 % interval is narrower than that.
    With 1,024 paths, the interval contains the mean of Euler's scheme for 96 of 100
    seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..black_scholes import call_price
from ..device_code import blocks_for, load
from ..limits import issue_limit
from ..philox import normals
from ..stop import Check, Curve, Result, Row, Size
from ..variants import Variant, measure

TITLE = "Monte Carlo pricing with random numbers in registers"
SIZE = Size("paths", full=2**24, small=2**12)
START = STRIKE = 50.0
RATE, SIGMA, YEARS, STEPS = 0.1, 0.2, 1.0, 100
# The mean to which Euler's scheme with 100 steps converges; the exact price is 6.6348.
EULER_MEAN = 6.63202
BLOCK = 1024
# Instructions per step: with fast math the machine code has 75 for four steps.
INSTRUCTIONS = 19
CHECKED = 2**12
SEEDS, CURVE_SEEDS = 100, 8
SEED_PATHS = 2**10  # per seed, if nothing is timed

OPTION = np.dtype([("start", "f4"), ("strike", "f4"), ("drift", "f4"), ("scale", "f4"), ("steps", "i4")])
Array = NDArray[Any]


class Scheme(NamedTuple):
    """A kernel, its kind of step (Euler's or logarithmic), and how it is compiled."""

    kernel: str
    euler: bool
    fast_math: bool


SCHEMES = {
    "Euler": Scheme("price<Euler>", euler=True, fast_math=False),
    "Euler, fast math": Scheme("price<Euler>", euler=True, fast_math=True),
    "exact steps": Scheme("price<LogSteps>", euler=False, fast_math=False),
    "exact, fast math": Scheme("price<LogSteps>", euler=False, fast_math=True),
}


def load_schemes(*, fast_math: bool) -> cuda.Module:
    """Compile the kernels of all schemes, even for one of them: each run compiles this module at most once."""
    return load("monte_carlo", names=sorted({scheme.kernel for scheme in SCHEMES.values()}), fast_math=fast_math)


class Price(NamedTuple):
    """An estimate and half the width of its 95 % interval."""

    value: float
    half_width: float

    def covers(self, value: float) -> bool:
        """Return whether a value lies in the interval."""
        return bool(abs(self.value - value) <= self.half_width)


def closed_form() -> float:
    """Return the price from the Black-Scholes formula."""
    return float(call_price(START, STRIKE, RATE, SIGMA, YEARS))


def option(scheme: Scheme) -> Any:
    """Return the structure that the kernel of a scheme takes."""
    dt = YEARS / STEPS
    drift = 1 + RATE * dt if scheme.euler else (RATE - SIGMA**2 / 2) * dt
    return np.array((START, STRIKE, drift, SIGMA * math.sqrt(dt), STEPS), OPTION)[()]


def reference(scheme: Scheme, paths: int, seed: int) -> Array:
    """Return the sum of payoffs and of their squares for each block, with one path per thread."""
    terms = option(scheme)
    increments = terms["drift"] + terms["scale"] * normals(paths, STEPS, seed)
    end = START * increments.prod(axis=1) if scheme.euler else START * np.exp(increments.sum(axis=1))
    payoff = np.zeros((blocks_for(paths, BLOCK), BLOCK))
    payoff.ravel()[:paths] = np.maximum(end - STRIKE, 0)
    return np.stack([payoff.sum(axis=1), (payoff**2).sum(axis=1)], axis=1)


class Pricer:
    """A scheme on a device, ready for any number of paths."""

    def __init__(self, device: cuda.Device, scheme: Scheme, modules: dict[bool, cuda.Module]) -> None:
        self.kernel = modules[scheme.fast_math][scheme.kernel]
        self.option = option(scheme)
        self.most = device.sm_count * self.kernel.occupancy(BLOCK).blocks
        self.sums = cuda.empty((max(self.most, blocks_for(CHECKED, BLOCK)), 2), np.float64)

    def launch(self, paths: int, seed: int, most: int | None = None) -> Callable[[], object]:
        """Return a launch of at most `most` blocks, by default as many as the device holds."""
        grid = min(most or self.most, blocks_for(paths, BLOCK))
        return self.kernel[grid, BLOCK].bind(self.option, paths, seed, self.sums)

    def total(self, paths: int) -> Array:
        """Return the sum of the payoffs and the sum of their squares after a launch for `paths` paths."""
        sums: Array = self.sums[: min(self.most, blocks_for(paths, BLOCK))].to_host().sum(axis=0)
        return sums

    def price(self, paths: int, seed: int) -> Price:
        """Estimate the price."""
        self.launch(paths, seed)()
        total, squares = self.total(paths)
        mean = total / paths
        variance = (squares / paths - mean**2) * paths / max(paths - 1, 1)
        discount = math.exp(-RATE * YEARS)
        return Price(discount * mean, discount * 1.96 * math.sqrt(max(variance, 0.0) / paths))


def run(device: cuda.Device, size: int) -> Result:
    """Check the sums of every scheme path by path, time it, and measure the errors of the estimates."""
    modules = {fast: load_schemes(fast_math=fast) for fast in (False, True)}
    pricers = {name: Pricer(device, scheme, modules) for name, scheme in SCHEMES.items()}
    checked = min(size, CHECKED)
    seed = int(np.random.default_rng().integers(2**63))

    def variant(name: str, pricer: Pricer) -> Variant:
        expected = reference(SCHEMES[name], checked, seed)
        return Variant(
            name=name,
            launch=pricer.launch(checked, seed, len(expected)),
            output=pricer.sums[: len(expected)],
            expected=expected,
            # A payoff is the difference of two prices, so its rounding error is relative to the prices.
            tolerance=1e-4 * max(START, float(expected.max())),
            timed=pricer.launch(size, seed),
            amount=size * STEPS,
            columns={} if timing.available() else {"registers": pricer.kernel.attributes.registers},
        )

    limit = issue_limit(device, INSTRUCTIONS, "Gsteps/s")
    rows = measure([variant(*item) for item in pricers.items()], limit)
    rows = [with_price(row, pricers[row.name].price(size, seed)) for row in rows]
    seed_paths = size if timing.available() else min(size, SEED_PATHS)
    checks = [coverage(pricers["Euler, fast math"], seed_paths)]
    exact = closed_form()
    note = (
        f"The exact price is {exact:.4f}. With {STEPS} steps, Euler's scheme converges to {EULER_MEAN}. Its bias of "
        f"{EULER_MEAN - exact:.4f} is visible once the 95 % interval is narrower than that. {checks[0].detail}"
    )
    return Result(rows, limit, checks, [errors(pricers, size)], [note])


def with_price(row: Row, price: Price) -> Row:
    """Add the estimate and its interval."""
    return replace(row, values={**row.values, "price": f"{price.value:.4f}", "±": f"{price.half_width:.4f}"})


def coverage(pricer: Pricer, paths: int) -> Check:
    """Check that about 95 of 100 intervals cover the mean of the scheme."""
    covered = sum(pricer.price(paths, seed).covers(EULER_MEAN) for seed in range(SEEDS))
    detail = f"With {paths:,} paths, the interval contains the mean of Euler's scheme for {covered} of {SEEDS} seeds."
    # With few paths the mean of the payoffs is far from normally distributed, and the intervals are too narrow.
    return Check(
        "95 ± 5 of 100 intervals contain the mean of Euler's scheme", covered >= 90 or paths < SEED_PATHS, detail
    )


def errors(pricers: dict[str, Pricer], size: int) -> Curve:
    """Return a curve of the error against the number of paths, as the root mean square over several seeds."""
    exact = closed_form()
    most = 16 * size if timing.available() else size
    paths = [2**power for power in range(6, 29, 2) if 2**power <= max(most, 64)]
    prices_of = {
        name: {count: [pricers[name].price(count, seed) for seed in range(CURVE_SEEDS)] for count in paths}
        for name in ("Euler, fast math", "exact, fast math")
    }
    lines = {
        name: [(count, root_mean_square(price.value - exact for price in prices)) for count, prices in by_count.items()]
        for name, by_count in prices_of.items()
    }
    widths = [(count, prices[0].half_width) for count, prices in prices_of["exact, fast math"].items()]
    lines["half of the 95 % interval, slope -1/2"] = widths
    return Curve("error", "paths", "error in the price", lines, logarithmic="xy")


def root_mean_square(errors: Iterable[float]) -> float:
    """Return the root mean square."""
    return math.sqrt(np.mean(np.square(list(errors))))

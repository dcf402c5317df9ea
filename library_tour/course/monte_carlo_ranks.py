"""Price an option from paths on several devices: the same number in less time, or more paths in the same time.

On the simulator, which checks results and counts operations but does not measure time, with one device:

    $ library-tour run monte_carlo_ranks
    monte_carlo_ranks: Monte Carlo on several devices: weak and strong scaling
    size 4,096: paths on one device
                    devices  paths each  instructions  efficiency  check
    ────────────────────────────────────────────────────────────────────
    one device            1       4,096       551,224              right
    strong scaling        2       2,048       275,612        1.00  right
    weak scaling          2       4,096       551,224        1.00  right
    strong scaling        4       1,024       137,806        1.00  right
    weak scaling          4       4,096       551,224        1.00  right
    Each device has its own seed, so the random numbers of different devices are
    independent. At the end, each device sends two numbers: the sum of its payoffs
    and the sum of their squares. Strong scaling divides the same paths among the
    devices, and weak scaling gives each device as many paths as the single device
    had. The efficiency is 1 if N devices do N times as much work per second. Here,
    the instruction count stands in for the time.
    All 4 workers are on one device. This process has one device. For several
    devices, use a machine with several GPUs, `CUDART_PY_SIMULATOR_DEVICES=4` on the
    simulator, or several processes: `mpiexec -n 4 library-tour run
    monte_carlo_ranks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import counters, ranks, timing
from ..checks import compare
from ..limits import issue_limit
from ..ranks import Ranks
from ..several import mean_ms, on_one_device, places_from, right_everywhere
from ..stop import Curve, Limit, Result, Row, Size, Value
from .monte_carlo import INSTRUCTIONS, SCHEMES, START, STEPS, Pricer, load_schemes, reference

TITLE = "Monte Carlo on several devices: weak and strong scaling"
SIZE = Size("paths on one device", full=2**26, small=2**12)
SCHEME = SCHEMES["Euler, fast math"]
CHECKED = 2**12
STRONG, WEAK = "strong scaling", "weak scaling"
NOTE = (
    "Each device has its own seed, so the random numbers of different devices are independent. At the end, each "
    "device sends two numbers: the sum of its payoffs and the sum of their squares. Strong scaling divides the same "
    "paths among the devices, and weak scaling gives each device as many paths as the single device had. The "
    "efficiency is 1 if N devices do N times as much work per second.{}"
)

Array = NDArray[Any]


@dataclass(frozen=True)
class Team:
    """Workers, each with its own seed: several in this process, or one in each rank."""

    pricers: Sequence[Pricer]
    devices: Sequence[cuda.Device]
    ranks: Ranks | None
    seed: int

    @classmethod
    def on(cls, device: cuda.Device, together: Ranks | None) -> Team:
        """Return the workers of this process: one per device, or several on the only device."""
        places = places_from(device, together)
        pricers = []
        for place in places:
            with place:
                module = load_schemes(fast_math=SCHEME.fast_math)
                pricers.append(Pricer(place, SCHEME, {SCHEME.fast_math: module}))
        seed = int(np.random.default_rng().integers(2**62))
        return cls(pricers, places, together, int(together.comm.bcast(seed)) if together else seed)

    @property
    def count(self) -> int:
        """The number of workers."""
        return self.ranks.count if self.ranks else len(self.pricers)

    @property
    def first(self) -> int:
        """The index of the first worker of this process."""
        return self.ranks.rank if self.ranks else 0

    def total(self, workers: int, paths: int) -> Array:
        """Return the sums of payoffs and of their squares over the first `workers` workers, with `paths` paths each."""
        taking_part = list(zip(self.pricers, self.devices, strict=True))[: max(0, workers - self.first)]
        for number, (pricer, device) in enumerate(taking_part, self.first):
            with device:
                pricer.launch(paths, self.seed + number)()
        total = np.zeros(2)
        for pricer, device in taking_part:
            with device:
                total += pricer.total(paths)
        return self.ranks.all_sums(total) if self.ranks else total


def run(device: cuda.Device, size: int) -> Result:
    """Check the sums of a few paths; then measure strong and weak scaling with more and more devices."""
    together = ranks.world()
    team = Team.on(device, together)
    limit = issue_limit(device, INSTRUCTIONS, "Gsteps/s")
    numbers = sorted({*(2**power for power in range(team.count.bit_length())), team.count})
    alone, cost = measured("one device", team, 1, size, limit)
    rows, lines = [alone], {STRONG: [(1.0, 1.0)], WEAK: [(1.0, 1.0)]}
    for number in numbers[1:]:
        for name, paths in ((STRONG, -(-size // number)), (WEAK, size)):
            row, other = measured(name, team, number, paths, limit)
            if cost and other:
                efficiency = paths / size * cost / other
                row = replace(row, values={**row.values, "efficiency": efficiency})
                lines[name].append((number, efficiency))
            rows.append(row)
    notes = [NOTE.format("" if timing.available() else " Here, the instruction count stands in for the time.")]
    notes += on_one_device(team.devices, together, "monte_carlo_ranks", "workers")
    pictures = [Curve("efficiency", "devices", "efficiency", lines, logarithmic="x")] if cost else []
    return Result(rows, limit, pictures=pictures, notes=notes)


def measured(name: str, team: Team, workers: int, paths: int, limit: Limit) -> tuple[Row, float]:
    """Return the row of `workers` workers with `paths` paths each, and their cost in milliseconds or instructions.

    If the sums are wrong, nothing is timed and the cost is 0.
    """
    few = min(paths, CHECKED)
    expected = sum(reference(SCHEME, few, team.seed + number).sum(axis=0) for number in range(workers))
    # A payoff is the difference of two prices, so its rounding error is relative to the prices.
    tolerance = 1e-4 * max(START, float(np.max(expected)))
    check = compare(
        f"{name}, {workers}: the sums equal NumPy's", team.total(workers, few), np.asarray(expected), tolerance
    )
    values: dict[str, Value] = {"devices": workers}
    row = Row(name, values, check)
    if timing.available():
        if name not in right_everywhere([row], team.ranks):
            return row, 0.0
        devices = list(dict.fromkeys(team.devices))
        ms = mean_ms(partial(team.total, workers, paths), devices, team.ranks)
        # Several workers on one device take turns.
        together = workers if team.ranks else min(workers, len(devices))
        all_limits = replace(limit, rate=limit.rate and together * limit.rate)
        return replace(row, values={**timing.rates(ms, workers * paths * STEPS, all_limits), **values}), ms
    counted = counters.count(partial(team.total, workers, paths), ["instructions"])
    # Each process counts its own workers, which all do the same work.
    counted = {column: int(value) // (1 if team.ranks else workers) for column, value in counted.items()}
    return replace(row, values={**values, "paths each": paths, **counted}), float(counted.get("instructions", 0))

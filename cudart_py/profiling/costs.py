"""Estimates of cost: the time that each unit of a card needs for counted work, and the unit that needs longest."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, NamedTuple

from .card import H200, Card
from .metric_names import (
    ATOMIC_CYCLES,
    BLOCK_SIZE,
    BYTES,
    CONSTANTS,
    DOUBLE,
    GLOBAL,
    GRID_SIZE,
    ISSUED,
    LOCAL,
    LOCAL_REQUESTS,
    LOCAL_SECTORS,
    OPERATIONS,
    REQUESTS,
    SECTOR_BYTES,
    SECTORS,
    SHARED,
    SPECIAL,
    STALLS,
    TEXELS,
    WAITS,
    WAVEFRONTS,
    names,
    total,
)

if TYPE_CHECKING:
    from .profiles import LaunchProfile

Metrics = Mapping[str, float]
WARP = 32


class Unit(NamedTuple):
    """A unit of a card: its name, the assumption behind its estimate, and the estimated seconds of its work."""

    name: str
    assumption: str
    seconds: Callable[[Metrics, Card], float]


class Cost(NamedTuple):
    """The estimated cost of work in seconds, and the name of the unit that needs longest, which bounds it."""

    seconds: float
    bound: str


def _issued(metrics: Metrics, card: Card) -> float:
    return metrics.get(ISSUED, 0) / _per_second(metrics, card, card.instructions)


def _special(metrics: Metrics, card: Card) -> float:
    return metrics.get(SPECIAL, 0) / _per_second(metrics, card, card.special)


def _wavefronts(metrics: Metrics, card: Card) -> float:
    requests = total(metrics, (*names(REQUESTS, GLOBAL), *names(LOCAL_REQUESTS, LOCAL)))
    return (total(metrics, names(WAVEFRONTS, SHARED)) + requests) / _per_second(metrics, card, card.wavefronts)


def _sectors(metrics: Metrics, card: Card) -> float:
    sectors = total(metrics, (*names(SECTORS, GLOBAL), *names(LOCAL_SECTORS, LOCAL), TEXELS))
    return sectors / _per_second(metrics, card, card.sectors)


def _memory(metrics: Metrics, card: Card) -> float:
    stored = SECTOR_BYTES * metrics.get(SECTORS.format("st"), 0)
    return (metrics.get(BYTES.format("ld"), 0) + stored) / card.memory


def _fp32(metrics: Metrics, card: Card) -> float:
    lanes = total(metrics, names(OPERATIONS, ("fadd", "fmul", "ffma")))
    return lanes * 2 / card.fp32 * card.multiprocessors / _busy(metrics, card)


def _fp64(metrics: Metrics, card: Card) -> float:
    return metrics.get(DOUBLE, 0) / _per_second(metrics, card, card.double)


def _atomics(metrics: Metrics, card: Card) -> float:
    return metrics.get(ATOMIC_CYCLES, 0) * card.atomic_cycles / card.hertz


def _constants(metrics: Metrics, card: Card) -> float:
    return metrics.get(CONSTANTS, 0) * card.constant_cycles / _per_second(metrics, card, 1)


def _blocks(metrics: Metrics, card: Card) -> float:
    return metrics.get(GRID_SIZE, 0) / (card.blocks * card.hertz)


def _launch(metrics: Metrics, card: Card) -> float:
    return card.launch_seconds if GRID_SIZE in metrics else 0.0


def _latency(metrics: Metrics, card: Card) -> float:
    if GRID_SIZE not in metrics:
        return 0.0
    fixed, short, long = (metrics.get(WAITS.format(reason), 0) for reason in STALLS)
    latencies = card.latencies
    requests = metrics.get(REQUESTS.format("ld"), 0)
    # The part of the loads whose bytes come from memory. The others use the rest of a sector that L1 keeps.
    missed = min(1.0, metrics.get(BYTES.format("ld"), 0) / (SECTOR_BYTES * requests)) if requests else 1.0
    loaded = latencies.l1 + missed * (latencies.memory - latencies.l1)
    cycles = fixed * latencies.arithmetic + short * latencies.shared + long * loaded
    return cycles / (_resident_warps(metrics, card) * card.hertz)


def _resident_warps(metrics: Metrics, card: Card) -> float:
    """Return the number of warps of a launch that run at the same time, as far as its grid and block limit them."""
    of_block = math.ceil(metrics[BLOCK_SIZE] / WARP)
    blocks = min(card.resident_blocks, card.resident_warps // of_block) * card.multiprocessors
    return of_block * min(metrics[GRID_SIZE], blocks)


def _per_second(metrics: Metrics, card: Card, per_cycle: float) -> float:
    """Return a rate of all busy multiprocessors together, from the rate of one per cycle."""
    return _busy(metrics, card) * card.hertz * per_cycle


def _busy(metrics: Metrics, card: Card) -> float:
    """Return the number of multiprocessors that have a block; lines have no grid, and are assumed to fill the card."""
    return min(card.multiprocessors, metrics.get(GRID_SIZE, card.multiprocessors))


UNITS = (
    Unit(
        "issue slots",
        "each instruction takes one slot. They are those of PTX, except that divisions, roots and approximate "
        "functions count as the machine code that they become for usual operands",
        _issued,
    ),
    Unit("special functions", "the pipe XU starts an instruction of a warp every two cycles", _special),
    Unit(
        "wavefronts",
        "L1 and shared memory serve one per cycle. Each request to global or local memory takes one, and an access to "
        "shared memory takes those that are counted",
        _wavefronts,
    ),
    Unit("L2 sectors", "L2 serves every sector, because no hit in L1 is counted", _sectors),
    Unit(
        "device memory",
        "each byte that a load uses comes from device memory, and each sector that a store touches goes there",
        _memory,
    ),
    Unit("fp32 arithmetic", "only additions, multiplications and multiply-adds are counted", _fp32),
    Unit(
        "fp64 arithmetic",
        "the same in double precision, with those of divisions and roots; matrix products on tensor cores are not "
        "counted",
        _fp64,
    ),
    Unit(
        "global atomics",
        "all atomics go to one address; the estimate is too long if they go to many. The compiler combines the lanes "
        "of a warp that share an address, but not those of floating-point atomics",
        _atomics,
    ),
    Unit("indexed constants", "each word that a warp reads from constant memory by a variable index waits", _constants),
    Unit(
        "latency",
        "a warp waits for the longest chain of dependent instructions between two branches or barriers; loads are from "
        "device memory, except for the part of each sector that L1 keeps, and other warps fill the time. Only launches "
        "have this part, and only grid and block limit the resident warps",
        _latency,
    ),
    Unit("block launches", "blocks start at the highest measured rate; only launches have this part", _blocks),
    Unit("launch overhead", "launches follow each other as in a graph; only launches have this part", _launch),
)
_COMMON = (
    "Estimates assume that every multiprocessor of one card has a block, or as many multiprocessors as a launch has "
    "blocks. They take the root of the sum of the squares of the units' times, because units overlap only in part."
)


def assumptions(bounds: Container[str] | None = None) -> list[str]:
    """Return the assumptions of estimates: the common one, and those of the units in `bounds`, by default of all."""
    return [_COMMON, *(f"{unit.name}: {unit.assumption}." for unit in UNITS if bounds is None or unit.name in bounds)]


def unit_seconds(metrics: Metrics, card: Card = H200) -> dict[str, float]:
    """Return the seconds that each unit of a card needs for the work that metrics describe, by the unit's name."""
    return {unit.name: unit.seconds(metrics, card) for unit in UNITS}


def launch_metrics(launch: LaunchProfile) -> dict[str, float]:
    """Return the metrics of a launch, with the numbers of its blocks and of the threads of each."""
    return {**launch.metrics, GRID_SIZE: math.prod(launch.grid), BLOCK_SIZE: math.prod(launch.block)}


def cost(metrics: Metrics, card: Card = H200) -> Cost:
    """Return the estimated cost of the work that metrics describe; `bound` is "" if no unit has work.

    The estimate ranks variants of a kernel. It is not a time: `assumptions` lists the assumptions behind it.
    """
    seconds = unit_seconds(metrics, card)
    longest = max(seconds, key=seconds.__getitem__)
    return Cost(math.hypot(*seconds.values()), longest if seconds[longest] else "")

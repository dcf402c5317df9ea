"""Estimates of cost: the time that each unit of a card needs for counted work, and the unit that needs longest."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import NamedTuple

from .card import H200, Card
from .metric_names import (
    BYTES,
    CONSTANTS,
    GLOBAL,
    GRID_SIZE,
    LOCAL,
    LOCAL_REQUESTS,
    LOCAL_SECTORS,
    OPERATIONS,
    REQUESTS,
    SECTOR_BYTES,
    SECTORS,
    SHARED,
    TEXELS,
    WARPS,
    WAVEFRONTS,
    names,
    total,
)

Metrics = Mapping[str, float]


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
    return metrics.get(WARPS, 0) / _per_second(card, card.instructions)


def _wavefronts(metrics: Metrics, card: Card) -> float:
    requests = total(metrics, (*names(REQUESTS, GLOBAL), *names(LOCAL_REQUESTS, LOCAL)))
    return (total(metrics, names(WAVEFRONTS, SHARED)) + requests) / _per_second(card, card.wavefronts)


def _sectors(metrics: Metrics, card: Card) -> float:
    sectors = total(metrics, (*names(SECTORS, GLOBAL), *names(LOCAL_SECTORS, LOCAL), TEXELS))
    return sectors / _per_second(card, card.sectors)


def _memory(metrics: Metrics, card: Card) -> float:
    stored = SECTOR_BYTES * metrics.get(SECTORS.format("st"), 0)
    return (metrics.get(BYTES.format("ld"), 0) + stored) / card.memory


def _fp32(metrics: Metrics, card: Card) -> float:
    return _lanes(metrics, "f") * 2 / card.fp32


def _fp64(metrics: Metrics, card: Card) -> float:
    return _lanes(metrics, "d") * 2 / card.fp64


def _lanes(metrics: Metrics, letter: str) -> float:
    return total(metrics, names(OPERATIONS, [f"{letter}{kind}" for kind in ("add", "mul", "fma")]))


def _atomics(metrics: Metrics, card: Card) -> float:
    return total(metrics, names(SECTORS, ("red", "atom"))) * card.atomic_cycles / card.hertz


def _constants(metrics: Metrics, card: Card) -> float:
    return metrics.get(CONSTANTS, 0) * card.constant_cycles / _per_second(card, 1)


def _blocks(metrics: Metrics, card: Card) -> float:
    return metrics.get(GRID_SIZE, 0) / (card.blocks * card.hertz)


def _per_second(card: Card, per_cycle: float) -> float:
    """Return a rate of all multiprocessors together, from the rate of one per cycle."""
    return card.multiprocessors * card.hertz * per_cycle


UNITS = (
    Unit("issue slots", "instructions are those of PTX, and each takes one issue slot", _issued),
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
    Unit("fp64 arithmetic", "the same in double precision; matrix products on tensor cores are not counted", _fp64),
    Unit(
        "global atomics",
        "all atomics go to one address; the estimate is too long if they go to many addresses, and too short if lanes "
        "of a warp share one",
        _atomics,
    ),
    Unit("indexed constants", "each word that a warp reads from constant memory by a variable index waits", _constants),
    Unit("block launches", "blocks start at the highest measured rate; only launches have this part", _blocks),
)
_COMMON = (
    "Estimates assume that all multiprocessors of one card are busy, and that latency is hidden. They take the root of "
    "the sum of the squares of the units' times, because units overlap only in part."
)


def assumptions(bounds: Container[str] | None = None) -> list[str]:
    """Return the assumptions of estimates: the common one, and those of the units in `bounds`, by default of all."""
    return [_COMMON, *(f"{unit.name}: {unit.assumption}." for unit in UNITS if bounds is None or unit.name in bounds)]


def unit_seconds(metrics: Metrics, card: Card = H200) -> dict[str, float]:
    """Return the seconds that each unit of a card needs for the work that metrics describe, by the unit's name."""
    return {unit.name: unit.seconds(metrics, card) for unit in UNITS}


def cost(metrics: Metrics, card: Card = H200) -> Cost:
    """Return the estimated cost of the work that metrics describe; `bound` is "" if no unit has work.

    The estimate ranks variants of a kernel. It is not a time: `assumptions` lists what it takes for granted.
    """
    seconds = unit_seconds(metrics, card)
    longest = max(seconds, key=seconds.__getitem__)
    return Cost(math.hypot(*seconds.values()), longest if seconds[longest] else "")

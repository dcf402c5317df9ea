"""Advice on source lines in the form of Nsight Compute's rules: symptom, cause, remedy, expected gain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ..compilation.headers import is_of_cuda
from .costs import cost
from .metric_names import (
    ATOMIC_CYCLES,
    BYTES,
    CONFLICTS,
    ISSUED,
    LANES,
    LOCAL,
    LOCAL_REQUESTS,
    LOCAL_SECTORS,
    REQUESTS,
    SECTOR_BYTES,
    SECTORS,
    WARPS,
    WAVEFRONTS,
    names,
    total,
)
from .source_lines import HotLine

Metrics = Mapping[str, float]
# Lines with a smaller share of the cost are not worth optimizing.
_LEAST_SHARE = 0.01
# Smaller gains have no figure.
_LEAST_GAIN = 0.01
_HALF_USED, _NEARLY_ALL_USED = 0.5, 0.95
_MOST_WAVEFRONTS = 1.5
_FEW_LANES, _NEARLY_ALL_LANES, _MOST_LANES = 20, 28, 31
_MOST_ATOMIC_SECTORS = 8
_VERBS = {"ld": "loads", "st": "stores"}


class Advice(NamedTuple):
    """Advice on a line: its symptom, cause and remedy in a sentence each, and the rule that its metrics meet.

    `gain` is the part of the estimated cost of all lines, from 0 to 1, that the remedy saves at most.
    """

    line: HotLine
    symptom: str
    cause: str
    remedy: str
    gain: float
    rule: str

    @property
    def sentence(self) -> str:
        """The advice as text: symptom, cause, remedy, and expected gain."""
        gain = f"up to {100 * self.gain:.0f} %" if self.gain >= _LEAST_GAIN else f"less than {100 * _LEAST_GAIN:.0f} %"
        return f"{self.symptom} {self.cause} {self.remedy} Estimated gain: {gain} of the cost of all lines."


class Symptom(NamedTuple):
    """A symptom that a rule found, and the metrics that the remedy would change, with their new values."""

    symptom: str
    cause: str
    remedy: str
    rule: str
    remedied: Metrics


def advise_on(lines: Iterable[HotLine]) -> list[Advice]:
    """Return the advice on lines, in the order of `lines`.

    Lines with less than 1 percent of the cost get no advice. Lines of CUDA's own headers get none either, because
    nobody edits them. The expected gain of each piece of advice is relative to the sum of the lines' estimated costs.
    """
    lines = list(lines)
    heavy = [line for line in lines if line.share >= _LEAST_SHARE]
    of_cuda = {name for name in {line.source.name for line in heavy} if is_of_cuda(name)}
    whole = sum(cost(line.metrics).seconds for line in lines) or 1.0
    return [
        Advice(line, found.symptom, found.cause, found.remedy, _saved(line.metrics, found) / whole, found.rule)
        for line in heavy
        if line.source.name not in of_cuda
        for find in _RULES
        for found in find(line.metrics)
    ]


def _saved(metrics: Metrics, found: Symptom) -> float:
    """Return the seconds of a line's estimated cost that a remedy saves."""
    return cost(metrics).seconds - cost({**metrics, **found.remedied}).seconds


def _scattered(metrics: Metrics) -> Iterator[Symptom]:
    for kind, verb in _VERBS.items():
        used, each = _use(metrics, kind)
        if used < _HALF_USED and each > 1:
            yield Symptom(
                f"The {verb} use {100 * used:.1f} % of the bytes that they move, with {each:.1f} sectors each.",
                "The lanes of a warp access elements that are far apart, so the access is not coalesced.",
                "Let consecutive threads access consecutive elements, or rearrange them in shared memory.",
                f"{verb} of more than 1 sector of global memory that use less than {100 * _HALF_USED:.0f} % of the "
                "bytes moved",
                _full_sectors(metrics, kind),
            )


def _one_place(metrics: Metrics) -> Iterator[Symptom]:
    if not _all_lanes(metrics):
        return
    used, each = _use(metrics, "ld")
    if used < _HALF_USED and each == 1:
        yield Symptom(
            f"All lanes of a warp load from one sector, of which they use {100 * used:.1f} %.",
            "Each warp requests the same few elements from global memory.",
            "Load once and keep the value, or put the table into __constant__ memory.",
            f"loads of one sector by whole warps that use less than {100 * _HALF_USED:.0f} % of it",
            dict.fromkeys((pattern.format("ld") for pattern in (REQUESTS, SECTORS, BYTES)), 0.0),
        )


def _shifted(metrics: Metrics) -> Iterator[Symptom]:
    warps, lanes = metrics.get(WARPS, 0), metrics.get(LANES, 0)
    if lanes < _NEARLY_ALL_LANES * warps:
        return
    for kind, verb in _VERBS.items():
        used, each = _use(metrics, kind)
        # The last warp of an aligned row uses fewer bytes too, but not fewer than its active lanes explain.
        if used >= _HALF_USED and used * 32 * warps < _NEARLY_ALL_USED * lanes:
            yield Symptom(
                f"The {verb} use {100 * used:.1f} % of the bytes that they move, with {each:.1f} sectors each, "
                f"although {lanes / warps:.1f} of 32 lanes are active.",
                "The accesses of a warp begin inside a sector, or leave gaps.",
                "Begin rows at multiples of 32 bytes (cuda.empty_pitched), leave no gaps between elements, and give "
                "all lanes the same loop bounds.",
                f"{verb} with at least {_NEARLY_ALL_LANES} active lanes on average that use at least "
                f"{100 * _HALF_USED:.0f} % of the bytes moved, but less than {100 * _NEARLY_ALL_USED:.0f} % of the "
                "share that the active lanes could use",
                _full_sectors(metrics, kind),
            )


def _conflicting(metrics: Metrics) -> Iterator[Symptom]:
    ratio = _wavefront_ratio(metrics, ("ld", "st"))
    if ratio >= _MOST_WAVEFRONTS:
        yield Symptom(
            f"Accesses to shared memory take {ratio:.1f} times as many wavefronts as without bank conflicts.",
            "Lanes of a warp access different words of the same bank, one after another.",
            "If a warp reads a column, pad each row by one element (such as tile[32][33]). If it reads parts of "
            "several rows, because a block has fewer than 32 threads in x, make the block 32 threads wide.",
            f"accesses to shared memory with at least {_MOST_WAVEFRONTS} times the wavefronts without bank conflicts",
            _without_conflicts(metrics, ("ld", "st")),
        )


def _colliding(metrics: Metrics) -> Iterator[Symptom]:
    ratio = _wavefront_ratio(metrics, ("atom",))
    if ratio >= _MOST_WAVEFRONTS:
        yield Symptom(
            f"Atomics in shared memory take {ratio:.1f} times as many wavefronts as without conflicts.",
            "Lanes that add to the same word, or to words of one bank, take turns.",
            "Combine equal values within the warp first, or give each warp, or each group of its lanes, its own "
            "histogram.",
            f"atomics in shared memory with at least {_MOST_WAVEFRONTS} times the wavefronts without bank conflicts",
            _without_conflicts(metrics, ("atom",)),
        )


def _idle(metrics: Metrics) -> Iterator[Symptom]:
    warps, lanes = metrics.get(WARPS, 0), metrics.get(LANES, 0)
    if warps and lanes < _FEW_LANES * warps:
        yield Symptom(
            f"{lanes / warps:.1f} of 32 lanes are active.",
            "Threads of a warp take different paths one after another, or have ended.",
            "Let all threads of a warp take the same path, and let whole warps stop early rather than some of their "
            "threads.",
            f"instructions with fewer than {_FEW_LANES} active lanes on average",
            {ISSUED: metrics.get(ISSUED, 0) * lanes / (32 * warps)},
        )


def _contended(metrics: Metrics) -> Iterator[Symptom]:
    kinds = ("red", "atom")
    requests, sectors = total(metrics, names(REQUESTS, kinds)), total(metrics, names(SECTORS, kinds))
    if requests and sectors > _MOST_ATOMIC_SECTORS * requests:
        yield Symptom(
            f"Atomics take {sectors / requests:.1f} sectors each.",
            "Lanes of a warp update the same words, or words that are far apart, so that L2 handles them separately.",
            "Combine values in the warp or in shared memory first, so that fewer lanes update the same word or words "
            "that are far apart.",
            f"atomics of global memory that take more than {_MOST_ATOMIC_SECTORS} sectors on average",
            {
                **{SECTORS.format(kind): metrics.get(REQUESTS.format(kind), 0) for kind in kinds},
                ATOMIC_CYCLES: requests,
            },
        )


def _in_local_memory(metrics: Metrics) -> Iterator[Symptom]:
    requests = total(metrics, names(LOCAL_REQUESTS, LOCAL))
    if requests:
        yield Symptom(
            f"{requests:,.0f} requests go to local memory.",
            "Registers have no addresses, so an array with a variable index is kept in local memory.",
            "Index arrays with constants, in unrolled loops, so that they stay in registers.",
            "requests to local memory",
            dict.fromkeys((*names(LOCAL_REQUESTS, LOCAL), *names(LOCAL_SECTORS, LOCAL)), 0.0),
        )


def _full_sectors(metrics: Metrics, kind: str) -> Metrics:
    """Return the number of sectors if an access uses all bytes that it moves."""
    return {SECTORS.format(kind): metrics[BYTES.format(kind)] / SECTOR_BYTES}


def _without_conflicts(metrics: Metrics, kinds: tuple[str, ...]) -> Metrics:
    return {
        WAVEFRONTS.format(kind): metrics.get(WAVEFRONTS.format(kind), 0) - metrics.get(CONFLICTS.format(kind), 0)
        for kind in kinds
    }


def _wavefront_ratio(metrics: Metrics, kinds: tuple[str, ...]) -> float:
    """Return the wavefronts of some kinds of accesses, divided by those needed without bank conflicts; 1 if none."""
    wavefronts, conflicts = total(metrics, names(WAVEFRONTS, kinds)), total(metrics, names(CONFLICTS, kinds))
    needed = wavefronts - conflicts
    return wavefronts / needed if needed > 0 else 1.0


def _all_lanes(metrics: Metrics) -> bool:
    return metrics.get(LANES, 0) >= _MOST_LANES * metrics.get(WARPS, 0)


def _use(metrics: Metrics, kind: str) -> tuple[float, float]:
    """Return the fraction of the moved bytes that accesses use, and their average sectors per request; 1, 0 if none."""
    requests, sectors = metrics.get(REQUESTS.format(kind), 0), metrics.get(SECTORS.format(kind), 0)
    if not sectors or BYTES.format(kind) not in metrics:
        return 1.0, 0.0
    return metrics[BYTES.format(kind)] / (SECTOR_BYTES * sectors), sectors / requests


_RULES: tuple[Callable[[Metrics], Iterator[Symptom]], ...] = (
    _scattered, _one_place, _shifted, _conflicting, _colliding, _idle, _contended, _in_local_memory,
)  # fmt: skip  # rows of a table

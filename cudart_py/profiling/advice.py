"""Advice: a sentence on how to improve a source line, chosen from its metrics, with the rule that applies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ..compilation.headers import is_of_cuda
from .metric_names import (
    BYTES,
    CONFLICTS,
    LANES,
    LOCAL,
    LOCAL_REQUESTS,
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
# Lines with a smaller share of the weight are not worth optimizing.
_LEAST_SHARE = 0.01
_HALF_USED, _NEARLY_ALL_USED = 0.5, 0.95
_MOST_WAVEFRONTS = 1.5
_FEW_LANES, _NEARLY_ALL_LANES, _MOST_LANES = 20, 28, 31
_MOST_ATOMIC_SECTORS = 8
_VERBS = {"ld": "loads", "st": "stores"}


class Advice(NamedTuple):
    """Advice on a line: a sentence that says what to change, and the rule whose condition the line's metrics meet."""

    line: HotLine
    sentence: str
    rule: str


def advise_on(lines: Iterable[HotLine]) -> list[Advice]:
    """Return the advice on lines, in the order of `lines`.

    Lines with less than 1 percent of the weight get no advice. Lines of CUDA's own headers get none either, because
    nobody edits them.
    """
    heavy = [line for line in lines if line.share >= _LEAST_SHARE]
    of_cuda = {name for name in {line.source.name for line in heavy} if is_of_cuda(name)}
    return [
        Advice(line, sentence, rule)
        for line in heavy
        if line.source.name not in of_cuda
        for find in _RULES
        for sentence, rule in find(line.metrics)
    ]


def _scattered(metrics: Metrics) -> Iterator[tuple[str, str]]:
    for kind, verb in _VERBS.items():
        used, each = _use(metrics, kind)
        if used < _HALF_USED and each > 1:
            yield (
                f"The {verb} use {100 * used:.1f} % of the bytes that they move, with {each:.1f} sectors each: let "
                "consecutive threads access consecutive elements, or rearrange them in shared memory.",
                f"{verb} of more than 1 sector of global memory that use less than {100 * _HALF_USED:.0f} % of the "
                "bytes moved",
            )


def _one_place(metrics: Metrics) -> Iterator[tuple[str, str]]:
    if not _all_lanes(metrics):
        return
    used, each = _use(metrics, "ld")
    if used < _HALF_USED and each == 1:
        yield (
            "All lanes of a warp load from one sector, of which they use "
            f"{100 * used:.1f} %: load once and keep the value, or put the table into __constant__ memory.",
            f"loads of one sector by whole warps that use less than {100 * _HALF_USED:.0f} % of it",
        )


def _shifted(metrics: Metrics) -> Iterator[tuple[str, str]]:
    warps, lanes = metrics.get(WARPS, 0), metrics.get(LANES, 0)
    if lanes < _NEARLY_ALL_LANES * warps:
        return
    for kind, verb in _VERBS.items():
        used, each = _use(metrics, kind)
        # The last warp of an aligned row uses fewer bytes too, but not fewer than its active lanes explain.
        if used >= _HALF_USED and used * 32 * warps < _NEARLY_ALL_USED * lanes:
            yield (
                f"The {verb} use {100 * used:.1f} % of the bytes that they move, with {each:.1f} sectors each, "
                f"although {lanes / warps:.1f} of 32 lanes are active: begin rows at multiples of 32 bytes "
                "(cuda.empty_pitched), leave no gaps between elements, and give all lanes the same loop bounds.",
                f"{verb} with at least {_NEARLY_ALL_LANES} active lanes on average that use at least "
                f"{100 * _HALF_USED:.0f} % of the bytes moved, but less than {100 * _NEARLY_ALL_USED:.0f} % of the "
                "share that the active lanes could use",
            )


def _conflicting(metrics: Metrics) -> Iterator[tuple[str, str]]:
    ratio = _wavefront_ratio(metrics, ("ld", "st"))
    if ratio >= _MOST_WAVEFRONTS:
        yield (
            f"Accesses to shared memory take {ratio:.1f} times as many wavefronts as without bank conflicts: pad each "
            "row by one element (such as tile[32][33]), so that the lanes of a warp use different banks.",
            f"accesses to shared memory with at least {_MOST_WAVEFRONTS} times the wavefronts without bank conflicts",
        )


def _colliding(metrics: Metrics) -> Iterator[tuple[str, str]]:
    ratio = _wavefront_ratio(metrics, ("atom",))
    if ratio >= _MOST_WAVEFRONTS:
        yield (
            f"Atomics in shared memory take {ratio:.1f} times as many wavefronts as without conflicts, because lanes "
            "that add to the same word, or to words of one bank, take turns: combine equal values within the warp "
            "first, or give each warp, or each group of its lanes, its own histogram.",
            f"atomics in shared memory with at least {_MOST_WAVEFRONTS} times the wavefronts without bank conflicts",
        )


def _idle(metrics: Metrics) -> Iterator[tuple[str, str]]:
    warps, lanes = metrics.get(WARPS, 0), metrics.get(LANES, 0)
    if warps and lanes < _FEW_LANES * warps:
        yield (
            f"{lanes / warps:.1f} of 32 lanes are active: let all threads of a warp take the same path, and let whole "
            "warps stop early rather than some of their threads.",
            f"instructions with fewer than {_FEW_LANES} active lanes on average",
        )


def _contended(metrics: Metrics) -> Iterator[tuple[str, str]]:
    kinds = ("red", "atom")
    requests, sectors = total(metrics, names(REQUESTS, kinds)), total(metrics, names(SECTORS, kinds))
    if requests and sectors > _MOST_ATOMIC_SECTORS * requests:
        yield (
            f"Atomics take {sectors / requests:.1f} sectors each: combine values in the warp or in shared memory "
            "first, so that fewer lanes update the same word or words that are far apart.",
            f"atomics of global memory that take more than {_MOST_ATOMIC_SECTORS} sectors on average",
        )


def _in_local_memory(metrics: Metrics) -> Iterator[tuple[str, str]]:
    requests = total(metrics, names(LOCAL_REQUESTS, LOCAL))
    if requests:
        yield (
            f"{requests:,.0f} requests go to local memory: index arrays with constants, in unrolled loops, so that "
            "they stay in registers.",
            "requests to local memory",
        )


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


_RULES: tuple[Callable[[Metrics], Iterator[tuple[str, str]]], ...] = (
    _scattered, _one_place, _shifted, _conflicting, _colliding, _idle, _contended, _in_local_memory,
)  # fmt: skip  # rows of a table

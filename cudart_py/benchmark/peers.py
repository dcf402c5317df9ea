"""Measure work and its peers alternately. Changes of the machine's speed then affect all equally."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from .device.samples import has_capability
from .record import Measurement, Peer
from .sampling import MeasureOptions

T = TypeVar("T")
# An odd number, so the median is the ratio of a single round. With more rounds, each would have too few samples.
ROUNDS = 3


def in_turns(works: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Call each function once per round, and return the list of its results, keyed by name.

    Every other round calls them in the opposite order, because the first function of a round runs on a cooler device.
    """
    found: dict[str, list[T]] = {name: [] for name in works}
    for number in range(rounds):
        for name in list(works) if number % 2 == 0 else reversed(list(works)):
            found[name].append(works[name]())
    return found


def measure_beside(
    method: Callable[..., Measurement], work: Any, peers: Mapping[str, Any], *, options: MeasureOptions, **given: Any
) -> Measurement:
    """Measure `work` and its peers with the same arguments by `method`, which is `measure` or `measure_host`.

    The rounds share the time that `options` allow. Each ratio of the result is the median of the ratios of all rounds.
    On a driver without `gpu_timing`, each function runs once, and the result has no peers.
    """
    if not has_capability("gpu_timing"):
        for peer in peers.values():
            method(peer, options=options, **given)
        return method(work, options=options, **given)
    share = replace(
        options,
        min_samples=math.ceil(options.min_samples / ROUNDS),
        max_samples=math.ceil(options.max_samples / ROUNDS),
        min_seconds=options.min_seconds / ROUNDS,
        max_seconds=options.max_seconds / ROUNDS,
        warm_up_seconds=options.warm_up_seconds / ROUNDS,
    )
    batches: dict[str, int] = {}

    def taking(name: str, function: Any) -> Callable[[], Measurement]:
        def take() -> Measurement:
            # Later rounds use the batch size that the first round chose. Otherwise samples would not be comparable.
            found = method(function, options=share, **(given | ({"batch": batches[name]} if name in batches else {})))
            batches[name] = found.batch
            return found

        return take

    found = in_turns({name: taking(name, function) for name, function in {"": work, **peers}.items()}, ROUNDS)
    ours = found.pop("")
    clocks = [one.clock_mhz for one in ours if one.clock_mhz is not None]
    return replace(
        ours[0],
        samples=tuple(seconds for one in ours for seconds in one.samples),
        blocked=all(one.blocked for one in ours),
        rejected=sum(one.rejected for one in ours),
        clock_mhz=statistics.median(clocks) if clocks else None,
        peers={name: _compare(ours, theirs) for name, theirs in found.items()},
    )


def _compare(ours: list[Measurement], theirs: list[Measurement]) -> Peer:
    ratios = [(one.median or 0.0) / (other.median or math.inf) for one, other in zip(ours, theirs, strict=True)]
    ratio = statistics.median(ratios)
    return Peer(
        median=statistics.median(seconds for one in theirs for seconds in one.samples),
        ratio=ratio,
        spread=(max(ratios) - min(ratios)) / ratio if ratio else 0.0,
    )

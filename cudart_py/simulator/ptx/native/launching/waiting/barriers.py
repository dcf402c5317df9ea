"""Release lanes that wait for members of a mask that never arrive, or report a deadlock at barriers."""

from __future__ import annotations

from itertools import pairwise
from operator import methodcaller
from typing import TYPE_CHECKING

import numpy as np

from ....faults import Fault
from ...instances import HELD, PARKED
from ...layout import APART, BlockCheck, Context, Head
from ...writing.checking import whole
from ..reports import Finding, group_of, is_new, point_at
from ..speculation import SpeculationFailed

if TYPE_CHECKING:
    from ..launch import NativeLaunch


def release(launch: NativeLaunch) -> None:
    """Release lanes that are held for absent members of their masks; raise Fault at a deadlock."""
    if _force(launch):
        return
    if launch.speculation is not None:
        note_barriers(launch)
    barriers = launch.kernel.layout.barriers
    parked = launch.words(PARKED)
    lanes = int(np.bitwise_count(parked).sum())
    waiting = [barrier for barrier in barriers if parked[:, barrier.resume].any()]
    # The lowest warp with waiting lanes, at the first barrier where it has some.
    warp, first = min((int(np.flatnonzero(parked[:, barrier.resume])[0]), barrier.resume) for barrier in waiting)
    barrier = next(barrier for barrier in waiting if barrier.resume == first)
    point_at(launch, warp)
    group, _ = group_of(launch, barrier.instance, int(parked[warp, first]))
    what = f"deadlock: {lanes} threads wait at barriers that the others of their block never reach"
    raise Fault("CUDA_ERROR_LAUNCH_TIMEOUT", launch.state.located(what, barrier.instruction, group, 0))


def note_barriers(launch: NativeLaunch, _number: int = 0) -> None:
    """Keep a mistake for each barrier at which lanes of the block wait, except the first in the code.

    In the NumPy engine, lanes arrive in the order of the code, unless they branch backwards or wait for others before.
    Barriers other than barrier 0 may be in several places. Raise SpeculationFailed if that isn't certain.
    """
    records, layout = launch.resident.records[0], launch.kernel.layout
    if records.words[BlockCheck.WAITS] < APART:
        return
    parked, waiting = launch.words(PARKED), []
    places = [place for place in layout.places if place.block.terminator.kind == "barrier"]
    ends = [(place, one) for place, one in zip(places, layout.barriers, strict=True) if whole(one.instruction)]
    for index, (place, barrier) in enumerate(ends):
        if barrier.is_unnamed and parked[:, barrier.resume].any():
            waiting.append(barrier)
            if int(records.passed[index // 64]) >> index % 64 & 1 or not place.is_in_order:
                raise SpeculationFailed
    if len(waiting) > 1 and (launch.kernel.spins or any(place.block.converges for place in layout.places)):
        raise SpeculationFailed
    phase = int(launch.context[Context.NOW] - records.words[BlockCheck.BEGIN])
    for before, barrier in pairwise(waiting):
        key, order = ("divergence", id(barrier.instruction)), (1, phase, barrier.resume)
        if is_new(launch, key, order):
            warp = int(np.flatnonzero(parked[:, barrier.resume])[0])
            point_at(launch, warp)
            group, _ = group_of(launch, barrier.instance, int(parked[warp, barrier.resume]))
            tell = methodcaller("apart", group, barrier.instruction, 0, before.instruction)
            launch.findings[key] = Finding(order, int(launch.context[Context.BLOCK]), tell)


def _force(launch: NativeLaunch) -> bool:
    """Release held lanes without the members of their masks that never arrive; return whether any lane is ready."""
    held, places = launch.words(HELD), launch.kernel.layout.places
    for warp in range(len(held)):
        numbers = np.flatnonzero(held[warp]).tolist()
        meeting = [places[number].block.meets for number in numbers if places[number].block.meets]
        if len(set(meeting)) < len(meeting):
            # Lanes at two instructions may have to execute them together. That is compiled only with checks.
            raise SpeculationFailed
        for number in numbers:
            lanes = int(held[warp, number])
            held[warp, number] = 0
            launch.head(Head.FORCED)[warp] |= np.uint32(lanes)
            launch.make_ready(warp, number, lanes)
    return bool((launch.ready_words() != 0).any())

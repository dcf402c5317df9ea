"""Let lanes and blocks that wait for others go on, and find out that they never can.

Blocks take turns if their lanes wait for lanes of other blocks. Lanes that wait for members of a mask that never arrive
are released. At a deadlock at barriers in memory, the threads of a launch do nothing but wait, for phases that can
never end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from operator import methodcaller
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...compiling.analysis.reachability import bypasses, leads_before, lies_past, reachable
from ..instances import HELD, PARKED, Layout, Place
from ..layout import APART, LANES, BlockCheck, Context, Head
from ..writing.checking import whole
from .buffers import Resident
from .reports import Finding, group_of, is_new, point_at
from .speculation import SpeculationFailed

if TYPE_CHECKING:
    from ...faults import Fault
    from ...running.launch import LaunchState
    from ...running.observer import Observer
    from ..barriers import Barrier
    from .launch import NativeLaunch

# The maximum number of CUDA threads in blocks that have begun, unless a cooperative launch needs all of its blocks.
# Blocks that are resident together on a device may wait for each other, so this is as many as the largest device holds,
# or a few more.
_MOST_THREADS = 1 << 19
# A step of the NumPy engine executes an instruction for up to this many warps.
_WARPS_OF_STEP = 1024
_WORD = 0xFFFFFFFF


@dataclass
class Turn:
    """A block that has begun, its memory, and the warp that runs first at its next turn."""

    block: int
    memory: Resident
    warp: int = 0
    fresh: bool = True


def run_in_turns(launch: NativeLaunch, following: Iterator[int]) -> None:
    """Let the current block, whose lanes wait for other blocks, take turns with the `following` blocks.

    Before each round of turns, as many more blocks begin as are already active, within the limit. All blocks of a
    cooperative launch begin before the first round, because they usually wait for each other.
    """
    state, context = launch.state, launch.context
    cooperative = state.launch.cooperative
    most = state.blocks if cooperative else max(1, _MOST_THREADS // (state.threads * launch.unit))
    block = int(context[Context.BLOCK])
    active = [Turn(block - block % launch.unit, launch.resident, int(context[Context.WARP]), False)]
    while True:
        more = most - len(active)
        if not cooperative:
            more = min(more, max(1, len(active)))
        memory = launch.kernel, state, launch.warps, launch.unit
        active += [Turn(block, Resident(*memory)) for block in islice(following, more)]
        if not active:
            launch.in_turns = 0
            return
        launch.in_turns = len(active)
        for turn in list(active):
            if _take(launch, turn):
                active.remove(turn)
                launch.made_progress()
        deadlock = launch.deadlocks.deadlock(launch.warps * launch.unit * launch.in_turns)
        if deadlock is not None:
            raise deadlock


def _take(launch: NativeLaunch, turn: Turn) -> bool:
    """Run a block until it has ended or waits for other blocks; return whether it has ended."""
    context = launch.context
    launch.install(turn.memory)
    context[Context.BLOCK], context[Context.LAST_BLOCK] = turn.block, turn.block + launch.unit
    context[Context.FRESH] = turn.fresh
    context[Context.WARP] = turn.warp
    turn.fresh = False
    ended = launch.go_on()
    turn.warp = int(context[Context.WARP])
    return ended


class DeadlockSearch:
    """The search of one launch: after many instructions of waits alone, a round of turns tells Python about each."""

    def __init__(self, context: NDArray[np.uint64], state: LaunchState) -> None:
        self._context = context
        self._state = state
        self._used = 0

    def waited(self, used: int) -> None:
        """Count instructions; forget the previous ones if a lane has done something other than wait."""
        self._used += used
        context = self._context
        if context[Context.PROGRESS] or context[Context.ADVANCED]:
            context[Context.PROGRESS] = context[Context.ADVANCED] = context[Context.TELL_WAITS] = self._used = 0

    def deadlock(self, warps: int) -> Fault | None:
        """Return the fault of a deadlock, or None; called after each round of turns, in which `warps` warps ran."""
        fault = self._state.waits.deadlock() if self._context[Context.TELL_WAITS] else None
        many = self._state.has_waited_long(self._used // min(warps, _WARPS_OF_STEP))
        self._context[Context.TELL_WAITS] = many
        self._state.waits.clear()
        if many:
            self._used = 0
        return fault


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
    raise group.fault("CUDA_ERROR_LAUNCH_TIMEOUT", what, barrier.instruction)


def note_barriers(launch: NativeLaunch, _number: int = 0) -> None:
    """Keep a mistake for each barrier at which lanes of the block wait, except the first in the code.

    In the NumPy engine, lanes arrive in the order of the code, unless they branch backwards or wait for others before.
    Barriers other than barrier 0 may be in several places. Raise SpeculationFailed if that isn't certain, as in
    clusters, or if lanes have gone past one of the barriers and have not been reported.
    """
    if launch.unit > 1:
        raise SpeculationFailed
    records, parked = launch.resident.records[0], launch.words(PARKED)
    apart = bool(records.words[BlockCheck.WAITS] >= APART)
    waiting = []
    for index, (place, barrier) in enumerate(_ends(launch)):
        if barrier.is_unnamed and parked[:, barrier.resume].any():
            has_passed = int(records.passed[index // 64]) >> index % 64 & 1
            if has_passed and (apart or records.reported_passing != int(records.words[BlockCheck.BARRIER])):
                raise SpeculationFailed
            waiting.append((place, barrier))
    if len(waiting) > 1 and not (_keeps_order(launch) and all(place.is_in_order for place, _ in waiting)):
        raise SpeculationFailed
    for (_, before), (_, barrier) in pairwise(waiting):
        warp = int(np.flatnonzero(parked[:, barrier.resume])[0])
        point_at(launch, warp)
        group, _ = group_of(launch, barrier.instance, int(parked[warp, barrier.resume]))
        _keep(launch, barrier, methodcaller("apart", group, barrier.instruction, 0, before.instruction))


def note_passing(launch: NativeLaunch, number: int) -> None:
    """Keep the mistake of lanes at a basic block that have gone past the barrier at which others wait.

    The number contains the number of the block in its lower half. Leave the lanes unreported if the report of the NumPy
    engine is uncertain.
    """
    records, known = launch.resident.records[0], launch.kernel.recorded.firsts
    place, waits = number & _WORD, int(records.words[BlockCheck.WAITS])
    end, barrier = _ends(launch)[waits % APART - 1]
    if (place, barrier.resume) not in known:
        known[place, barrier.resume] = _keeps_order(launch) and _is_first_past(launch.kernel.layout, place, end)
    if waits < APART and barrier.is_unnamed and known[place, barrier.resume]:
        records.reported_passing = int(records.words[BlockCheck.BARRIER])
        here = launch.kernel.layout.places[place]
        group, _ = group_of(launch, here.instance, number >> LANES & _WORD)
        _keep(launch, barrier, methodcaller("passing", group, here.block, 0, barrier.instruction))


def _is_first_past(layout: Layout, number: int, end: Place) -> bool:
    """Return whether the NumPy engine executes a block first of all past a barrier, after others have arrived there.

    That is certain if it is the first in the code, and all blocks that lead to it or to the barrier come before it.
    """
    reach, place = cache(reachable), layout.places[number]
    past = (one for one in layout.places if lies_past(one.block, one.stack, end.stack, reach))
    first = next((one for one in past if bypasses(one.stack, end.stack)), None)
    return first is place and place.is_in_order and leads_before(end.stack, place.stack)


def _ends(launch: NativeLaunch) -> list[tuple[Place, Barrier]]:
    """Return the barriers of the code at which all threads wait, and the blocks that they end."""
    layout = launch.kernel.layout
    places = [place for place in layout.places if place.block.terminator.kind == "barrier"]
    return [(place, one) for place, one in zip(places, layout.barriers, strict=True) if whole(one.instruction)]


def _keeps_order(launch: NativeLaunch) -> bool:
    """Return whether lanes wait for others only at barriers."""
    return not (launch.kernel.sites.spins or any(place.block.converges for place in launch.kernel.layout.places))


def _keep(launch: NativeLaunch, barrier: Barrier, tell: Callable[[Observer], None]) -> None:
    """Keep a mistake at a barrier."""
    key = "divergence", id(barrier.instruction)
    began = launch.resident.records[0].words[BlockCheck.BEGIN]
    finding = Finding(
        (1, int(launch.context[Context.NOW] - began), barrier.resume), int(launch.context[Context.BLOCK]), tell
    )
    if is_new(launch, key, finding.order):
        launch.findings[key] = finding


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

"""Release lanes that machine code leaves waiting: at some barriers, and if members of a mask never arrive."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....compiling.opcode_table.opcodes import form_of
from ....faults import Fault
from ....syntax.instructions import Immediate, Instruction, Operand, Register, Vector
from ...errors import UnsupportedInstruction
from ...instances import HELD, PARKED, Instance, Place
from ...layout import APART, CLUSTER_BARRIER, LANES, BlockCheck, Context, Head
from ...writing.checking import whole
from ..reports import Finding, group_of, is_new, point_at
from ..speculation import SpeculationFailed

if TYPE_CHECKING:
    from ..launch import NativeLaunch

Array = NDArray[Any]

_NO_COUNT = -1


@dataclass(frozen=True)
class Barrier:
    """A barrier in the code: its number, the number of threads that it expects, and the operands of a reduction.

    The number and the number of expected threads are literals or registers. `resume` is the number of the basic block
    after the barrier. If `expected` is None, the barrier expects all threads of the block. If `waits` is false, the
    threads arrive without waiting.
    """

    instruction: Instruction
    instance: Instance
    resume: int
    number: int | Register
    expected: int | Register | None
    operation: str = ""
    result: Operand | None = None
    predicate: Operand | None = None
    waits: bool = True

    @property
    def plain(self) -> bool:
        """Return whether all threads of the block wait at the barrier, for nothing but each other."""
        return self.is_literal and self.expected is None and self.waits and not self.operation

    @property
    def is_unnamed(self) -> bool:
        """Return whether the barrier may be that of __syncthreads, which all threads must reach at the same place."""
        return isinstance(self.number, Register) or self.number == 0

    @property
    def is_literal(self) -> bool:
        """Return whether the number of the barrier and the number of threads are literals."""
        return not isinstance(self.number, Register) and not isinstance(self.expected, Register)


class _Arrivals(NamedTuple):
    """Lanes that wait at a barrier in the code: a mask for each warp, and the number of threads that they expect."""

    barrier: Barrier
    lanes: Array
    expected: int | None


def barrier_of(place: Place) -> Barrier:
    """Return the barrier that ends a block; raise UnsupportedInstruction if only the NumPy engine supports it."""
    instruction = place.block.terminator.instruction
    assert instruction is not None
    words = form_of(instruction).words
    operands = list(instruction.operands)
    operation = next((word for word in words if word in ("popc", "and", "or")), "")
    result = operands.pop(0) if operation else None
    predicate = operands.pop() if operation else None
    resume = place.instance.numbers[place.block.terminator.targets[0]]
    if "cluster" in words:
        return Barrier(instruction, place.instance, resume, CLUSTER_BARRIER, None, waits="wait" in words)
    number, expected, *_ = *map(_literal_or_register, operands), None
    assert number is not None
    waits = "arrive" not in words
    if not waits and isinstance(number, Register):
        raise UnsupportedInstruction("arrivals at a barrier whose number is in a register")
    return Barrier(instruction, place.instance, resume, number, expected, operation, result, predicate, waits)


def _literal_or_register(operand: Operand) -> int | Register:
    """Return the value of a barrier's operand, or the register that contains it."""
    if isinstance(operand, Register):
        return operand
    assert isinstance(operand, Immediate)
    return operand.value


def release(launch: NativeLaunch) -> None:
    """Release the lanes at complete barriers, or else lanes held for absent members; raise Fault at a deadlock."""
    released = release_complete(launch)
    if released or _force(launch) or (launch.ready_words() != 0).any():
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


def release_complete(launch: NativeLaunch) -> bool:
    """Release the lanes at complete barriers; return whether there are any."""
    if launch.unit > 1:
        # Machine code completes all barriers of clusters.
        return False
    arrivals = _arrivals(launch, [barrier for barrier in launch.kernel.layout.barriers if barrier.waits])
    released = [_release(launch, number, arrivals[number]) for number in sorted(arrivals)]
    return any(released)


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


def _arrivals(launch: NativeLaunch, barriers: list[Barrier]) -> dict[int, list[_Arrivals]]:
    """Return the lanes that wait at barriers, keyed by the barrier's number."""
    found = defaultdict(list)
    for barrier in barriers:
        waiting = launch.words(PARKED)[:, barrier.resume].copy()
        if not isinstance(barrier.number, Register) and not isinstance(barrier.expected, Register):
            if waiting.any():
                found[barrier.number].append(_Arrivals(barrier, waiting, barrier.expected))
            continue
        # Each lane may wait at another barrier.
        chosen = waiting[:, None] >> np.arange(LANES, dtype=np.uint32) & 1 != 0
        numbers = np.broadcast_to(_value(launch, barrier, barrier.number), chosen.shape)
        counts = np.broadcast_to(_value(launch, barrier, barrier.expected), chosen.shape)
        for number, count in sorted({*zip(numbers[chosen].tolist(), counts[chosen].tolist(), strict=True)}):
            alike = chosen & (numbers == number) & (counts == count)
            lanes = np.packbits(alike, axis=1, bitorder="little").view(np.uint32)[:, 0]
            found[number].append(_Arrivals(barrier, lanes, None if count == _NO_COUNT else count))
    return found


def _value(launch: NativeLaunch, barrier: Barrier, operand: int | Register | None) -> Any:
    """Return a barrier's number or its number of threads: one for all lanes, or one for each lane of each warp."""
    if isinstance(operand, Register):
        return launch.registers(barrier.instance, barrier.instance.code.slot(operand.name))
    return _NO_COUNT if operand is None else operand


def _release(launch: NativeLaunch, number: int, here: list[_Arrivals]) -> bool:
    """Release the lanes at one barrier if all expected threads have arrived; return whether they were released."""
    waiting = sum(int(np.bitwise_count(arrivals.lanes).sum()) for arrivals in here)
    expected = int(np.bitwise_count(launch.head(Head.ALIVE)).sum())
    for arrivals in here:
        expected = expected if arrivals.expected is None else arrivals.expected
    # The threads that have arrived without waiting; a number in a register may be that of no barrier.
    early = launch.resident.arrivals[number : number + 1]
    if waiting + int(early.sum()) < expected:
        return False
    early[:] = 0
    records, speculation = launch.resident.records, launch.speculation
    if records and speculation is not None and any(whole(one.barrier.instruction) for one in here):
        note_barriers(launch)
        records[0].release(launch.context, speculation.fences)
    _reduce(launch, [arrivals for arrivals in here if arrivals.barrier.operation])
    parked = launch.words(PARKED)
    for barrier, lanes, _ in here:
        for warp in np.flatnonzero(lanes):
            parked[warp, barrier.resume] &= ~lanes[warp]
            launch.head(Head.PARKED)[warp] &= ~lanes[warp]
            launch.make_ready(int(warp), barrier.resume, int(lanes[warp]))
    return True


def _reduce(launch: NativeLaunch, here: list[_Arrivals]) -> None:
    """Combine the predicates of all lanes at reducing barriers, and write the result to each lane's register."""
    true = lanes = 0
    for barrier, waiting, _ in here:
        true += int(np.bitwise_count(_truths(launch, barrier) & waiting).sum())
        lanes += int(np.bitwise_count(waiting).sum())
    for barrier, waiting, _ in here:
        result = barrier.result.items[0] if isinstance(barrier.result, Vector) else barrier.result
        if not isinstance(result, Register):
            continue
        rows = launch.registers(barrier.instance, barrier.instance.code.slot(result.name))
        if barrier.operation == "popc":
            chosen = waiting[:, None] >> np.arange(LANES, dtype=np.uint32) & 1
            rows[:] = np.where(chosen != 0, np.uint32(true), rows)
        else:
            holds = true == lanes if barrier.operation == "and" else true > 0
            rows[:, 0] = rows[:, 0] | waiting if holds else rows[:, 0] & ~waiting


def _truths(launch: NativeLaunch, barrier: Barrier) -> Any:
    """Return the mask of the lanes of each warp whose predicate is true."""
    operand = barrier.predicate
    if isinstance(operand, Immediate):
        return np.uint32(0xFFFFFFFF if operand.value else 0)
    assert isinstance(operand, Register)
    rows = launch.registers(barrier.instance, barrier.instance.code.slot(operand.name))[:, 0]
    return ~rows if operand.negated else rows

"""Release lanes that machine code leaves waiting: at some barriers, and if members of a mask never arrive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...compiling.opcodes import form_of
from ...faults import Fault
from ...syntax.instructions import Immediate, Instruction, Operand, Register, Vector
from ..errors import UnsupportedInstruction
from ..instances import HELD, PARKED, Instance, Place
from ..layout import CLUSTER_BARRIER, LANES, Head
from ..writing.checking import whole
from .reports import group_of, point_at
from .speculation import SpeculationFailed

if TYPE_CHECKING:
    from .launch import NativeLaunch


@dataclass(frozen=True)
class Barrier:
    """A barrier in the code: its number, the number of threads that it expects, and the operands of a reduction.

    `resume` is the number of the basic block after the barrier. If `expected` is None, the barrier expects all threads
    of the block. If `waits` is false, the threads arrive without waiting.
    """

    instruction: Instruction
    instance: Instance
    resume: int
    number: int
    expected: int | None
    operation: str = ""
    result: Operand | None = None
    predicate: Operand | None = None
    waits: bool = True

    @property
    def plain(self) -> bool:
        """Return whether all threads of the block wait at the barrier, for nothing but each other."""
        return self.expected is None and self.waits and not self.operation


def barrier_of(place: Place) -> Barrier:
    """Return the barrier that ends a block; raise UnsupportedInstruction if only the NumPy engine supports it."""
    instruction = place.block.terminator.instruction
    assert instruction is not None
    words = form_of(instruction).words
    operands = list(instruction.operands)
    operation = next((word for word in words if word in ("popc", "and", "or")), "")
    result = operands.pop(0) if operation else None
    predicate = operands.pop() if operation else None
    if "cluster" in words:
        waits = "wait" in words
        resume = place.instance.numbers[place.block.terminator.targets[0]]
        return Barrier(instruction, place.instance, resume, CLUSTER_BARRIER, None, waits=waits)
    if not all(isinstance(operand, Immediate) for operand in operands):
        raise UnsupportedInstruction("a barrier of another kind")
    numbers = [operand.value for operand in operands if isinstance(operand, Immediate)]
    expected = numbers[1] if len(numbers) > 1 else None
    resume = place.instance.numbers[place.block.terminator.targets[0]]
    waits = "arrive" not in words
    return Barrier(instruction, place.instance, resume, numbers[0], expected, operation, result, predicate, waits)


def release(launch: NativeLaunch) -> None:
    """Release the lanes at complete barriers, or else lanes held for absent members; raise Fault at a deadlock."""
    released = release_complete(launch)
    if not released and launch.speculation is not None:
        # Either members of a mask never arrive, or there is a deadlock. Both must be reported.
        raise SpeculationFailed
    if released or _force(launch) or (launch.ready_words() != 0).any():
        return
    barriers = launch.kernel.layout.barriers
    parked = launch.words(PARKED)
    lanes = int(np.bitwise_count(parked).sum())
    waiting = [barrier for barrier in barriers if parked[:, barrier.resume].any()]
    # The lowest warp with waiting lanes, at the first barrier where it has some.
    warp, first = min((int(np.flatnonzero(parked[:, barrier.resume])[0]), barrier.resume) for barrier in waiting)
    barrier = next(barrier for barrier in waiting if barrier.resume == first)
    point_at(launch, warp)
    group, _ = group_of(launch, barrier.instance, int(parked[warp, first]))
    what = f"deadlock: {lanes} threads wait at barriers that the others of their blocks never reach"
    raise Fault("CUDA_ERROR_LAUNCH_TIMEOUT", launch.state.located(what, barrier.instruction, group, 0))


def release_complete(launch: NativeLaunch) -> bool:
    """Release the lanes at complete barriers; return whether there are any."""
    if launch.unit > 1:
        # Machine code completes all barriers of clusters.
        return False
    barriers = [barrier for barrier in launch.kernel.layout.barriers if barrier.waits]
    released = [_release(launch, barriers, number) for number in sorted({barrier.number for barrier in barriers})]
    return any(released)


def _force(launch: NativeLaunch) -> bool:
    """Release held lanes without the members of their masks that never arrive; return whether any lane is ready."""
    held = launch.words(HELD)
    for warp in range(len(held)):
        numbers = np.flatnonzero(held[warp])
        if len(numbers):
            number = int(numbers[0])
            lanes = int(held[warp, number])
            held[warp, number] = 0
            # If these are all the lanes alive, none is missing. FORCED must then stay 0, because machine code clears it
            # only if lanes are missing.
            missing = lanes != int(launch.head(Head.ALIVE)[warp])
            launch.head(Head.FORCED)[warp] = number + 1 if missing else 0
            launch.make_ready(warp, number, lanes)
    return bool((launch.ready_words() != 0).any())


def _release(launch: NativeLaunch, barriers: list[Barrier], number: int) -> bool:
    """Release a barrier if all expected threads have arrived; return whether it was released."""
    parked = launch.words(PARKED)
    here = [barrier for barrier in barriers if barrier.number == number and parked[:, barrier.resume].any()]
    waiting = sum(int(np.bitwise_count(parked[:, barrier.resume]).sum()) for barrier in here)
    expected = int(np.bitwise_count(launch.head(Head.ALIVE)).sum())
    for barrier in here:
        expected = expected if barrier.expected is None else barrier.expected
    arrivals = launch.resident.arrivals
    if not waiting or waiting + int(arrivals[number]) < expected:
        return False
    arrivals[number] = 0
    records, speculation = launch.resident.records, launch.speculation
    if records and speculation is not None and any(whole(barrier.instruction) for barrier in here):
        records[0].release(launch.context, speculation.fences)
    _reduce(launch, [barrier for barrier in here if barrier.operation])
    for barrier in here:
        for warp in np.flatnonzero(parked[:, barrier.resume]):
            lanes = int(parked[warp, barrier.resume])
            parked[warp, barrier.resume] = 0
            launch.head(Head.PARKED)[warp] &= np.uint32(~lanes & 0xFFFFFFFF)
            launch.make_ready(int(warp), barrier.resume, lanes)
    return True


def _reduce(launch: NativeLaunch, barriers: list[Barrier]) -> None:
    """Combine the predicates of all lanes at reducing barriers, and write the result to each lane's register."""
    parked = launch.words(PARKED)
    true = lanes = 0
    for barrier in barriers:
        waiting = parked[:, barrier.resume]
        true += int(np.bitwise_count(_truths(launch, barrier) & waiting).sum())
        lanes += int(np.bitwise_count(waiting).sum())
    for barrier in barriers:
        result = barrier.result.items[0] if isinstance(barrier.result, Vector) else barrier.result
        if not isinstance(result, Register):
            continue
        rows = launch.registers(barrier.instance, barrier.instance.code.slot(result.name))
        waiting = parked[:, barrier.resume]
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

"""Named barriers, at which lanes wait for the other lanes of their block, and cluster barriers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..compiling.opcode_table.opcodes import form_of
from ..faults import Fault
from ..syntax.instructions import Immediate, Instruction, Operand, Register, Vector
from .groups import Group, split

if TYPE_CHECKING:
    from ..compiling.analysis.control_flow import Block
    from .scheduler import Chunk

Array = NDArray[Any]

# This module gives the cluster barrier a number that is larger than the number of any named barrier.
_CLUSTER = 1 << 16
# The number of threads of a barrier for all threads of a block that have not exited.
_ALL = -1
ndarray = np.ndarray


@dataclass(frozen=True, slots=True)
class Parked:
    """A group that waits at barrier `number` until `expected` threads have arrived, or the whole block if it is `_ALL`.

    `value` contains the destination and the predicate of a reduction; both are None if the barrier reduces nothing.
    """

    group: Group
    instruction: Instruction
    number: int
    expected: int
    value: tuple[Any, Any]


class Barriers:
    """The barriers of a chunk, and the groups that wait at them.

    Lanes that have exited count as arrived, except at barriers with an explicit number of threads.

    The methods take the chunk as an argument. A reference from here back to the chunk would form a cycle, which would
    keep the chunk's memory alive after the last other reference is gone.
    """

    def __init__(self) -> None:
        self.parked: list[Parked] = []
        self._arrived: dict[int, Array] = {}

    def arrive(self, group: Group, block: Block) -> Group | None:
        """Record a group's arrival at a barrier; return the group if it needn't wait, else None."""
        chunk = group.chunk
        instruction = block.terminator.ending
        words = form_of(instruction).words
        observer = chunk.state.observer
        if observer is not None:
            observer.barrier(group, instruction, "arrive")
        group.pc = block.terminator.targets[0]
        if "cluster" in words:
            # Arrivals at a cluster barrier aren't counted: a thread waits until all others wait too. Each thread that
            # arrives also waits, so the result is the same.
            if "arrive" in words:
                return group
            operands: list[Operand] = [Immediate(_CLUSTER)]
        else:
            operands = list(instruction.operands)
        reduces = "red" in words
        destination = operands.pop(0) if reduces else None
        predicate = np.broadcast_to(np.bool_(_operand(group, operands.pop())), group.n) if reduces else None
        counts = _operand(group, operands[1]) if len(operands) > 1 else _ALL
        named = _named(_operand(group, operands[0]), counts, group.n)
        if "arrive" in words:
            # These lanes don't wait.
            for (number, _), pick in named.items():
                arrived = np.bincount(chunk.block_of_lane[group.lane_numbers[pick]], minlength=chunk.blocks)
                self._arrived[number] = self._arrived.get(number, 0) + arrived
            return group
        if group.n == chunk.live and not self.parked and not self._arrived and len(named) == 1:
            [(_, expected)] = named
            if expected in (_ALL, chunk.threads):
                if reduces:
                    _reduce(chunk, [(group, instruction, destination, predicate)])
                if observer is not None:
                    observer.barrier(group, instruction, "release")
                return group
        parts = [group] if len(named) == 1 else split(group, list(named.values()), [group.pc] * len(named))
        for ((number, expected), pick), part in zip(named.items(), parts, strict=True):
            kept = None if predicate is None else predicate[pick]
            self.parked.append(Parked(part, instruction, number, expected, (destination, kept)))
        return None

    def release(self, chunk: Chunk, epoch: int) -> bool:
        """Release the lanes at complete barriers, raising their epoch to `epoch`; return whether any were released."""
        if not self.parked:
            return False
        released = False
        for number in sorted({parked.number for parked in self.parked}):
            released |= self._release(chunk, number, epoch)
        return released

    def _release(self, chunk: Chunk, number: int, epoch: int) -> bool:
        here = [parked for parked in self.parked if parked.number == number]
        arrived = np.array(self._arrived.get(number, np.zeros(chunk.blocks, np.int64)))
        waiting = np.zeros(chunk.blocks, np.int64)
        expected = chunk.threads - chunk.exited_in_block
        for parked in here:
            counts = np.bincount(chunk.block_of_lane[parked.group.lane_numbers], minlength=chunk.blocks)
            waiting += counts
            if parked.expected != _ALL:
                expected = np.where(counts > 0, parked.expected, expected)
        full = (waiting > 0) & (arrived + waiting >= expected)
        if number == _CLUSTER:
            # A block whose threads have all exited doesn't hold up the others.
            together = (full | (expected == 0)).reshape(-1, math.prod(chunk.state.launch.cluster))
            full = np.repeat(together.all(axis=1), together.shape[1]) & (waiting > 0)
        if not full.any():
            return False
        if number in self._arrived:
            self._arrived[number] = np.where(full, 0, arrived)
            if not self._arrived[number].any():
                del self._arrived[number]
        reductions = []
        self.parked = [parked for parked in self.parked if parked.number != number]
        for parked in here:
            group = parked.group
            destination, predicate = parked.value
            free = full[chunk.block_of_lane[group.lane_numbers]]
            if not free.all():
                picks = [np.flatnonzero(free), np.flatnonzero(~free)]
                if not len(picks[0]):
                    self.parked.append(parked)
                    continue
                kept = [predicate[pick] if predicate is not None else None for pick in picks]
                group, rest = split(group, picks, (group.pc, group.pc))
                predicate = kept[0]
                self.parked.append(Parked(rest, parked.instruction, number, parked.expected, (destination, kept[1])))
            if destination is not None:
                reductions.append((group, parked.instruction, destination, predicate))
            group.epoch = max(group.epoch, epoch)
            if chunk.state.observer is not None:
                chunk.state.observer.barrier(group, parked.instruction, "release")
            if destination is None:
                chunk.push(group)
        if reductions:
            _reduce(chunk, reductions)
            for group, *_ in reductions:
                chunk.push(group)
        return True

    def deadlock(self) -> Fault:
        """Return the fault for lanes that wait at barriers that can never complete."""
        parked = self.parked[0]
        chunk = parked.group.chunk
        lanes = np.concatenate([other.group.lane_numbers for other in self.parked])
        # The threads of the first one's block or cluster: those of others may wait for other barriers.
        clusters = chunk.block_of_lane[lanes] // math.prod(chunk.state.launch.cluster)
        count = np.count_nonzero(clusters == clusters[0])
        what = f"deadlock: {count} threads wait at barriers that the others of their block never reach"
        return parked.group.fault("CUDA_ERROR_LAUNCH_TIMEOUT", what, parked.instruction)


def _operand(group: Group, operand: Operand) -> Any:
    """Return a predicate, a barrier's number or its thread count: a number, or the value of a register."""
    if isinstance(operand, Immediate):
        return operand.value
    assert isinstance(operand, Register)
    value = group.value(group.code.slot(operand.name))
    return ~value if operand.negated else value


def _named(numbers: Any, counts: Any, lanes: int) -> dict[tuple[int, int], Any]:
    """Return the positions of the lanes at each barrier, keyed by its number and by its thread count."""
    if numbers.__class__ is not ndarray and counts.__class__ is not ndarray:
        return {(int(numbers), int(counts)): slice(None)}
    both = np.stack([np.broadcast_to(value, lanes).astype(np.int64) for value in (numbers, counts)])
    pairs, which = np.unique(both, axis=1, return_inverse=True)
    return {(int(n), int(c)): np.flatnonzero(which == place) for place, (n, c) in enumerate(pairs.T)}


def _reduce(chunk: Chunk, parts: list[tuple[Group, Instruction, Any, Any]]) -> None:
    """Reduce the predicates of each block's lanes, and write the result to each lane's destination register."""
    counts = np.zeros(chunk.blocks, np.int64)
    lanes = np.zeros(chunk.blocks, np.int64)
    for group, _, _, predicate in parts:
        blocks = chunk.block_of_lane[group.lane_numbers]
        counts += np.bincount(blocks[predicate], minlength=chunk.blocks)
        lanes += np.bincount(blocks, minlength=chunk.blocks)
    for group, instruction, destination, _ in parts:
        blocks = chunk.block_of_lane[group.lane_numbers]
        if isinstance(destination, Vector):
            destination = destination.items[0]
        slot = group.code.slot(destination.name)
        if "popc" in form_of(instruction).words:
            group.registers[slot] = counts[blocks].astype(np.uint32)
        elif "and" in form_of(instruction).words:
            group.registers[slot] = counts[blocks] == lanes[blocks]
        else:
            group.registers[slot] = counts[blocks] > 0

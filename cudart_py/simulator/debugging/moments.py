"""Moments: the states of a block's lanes immediately before each instruction that a group executes."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..ptx.running.calls import frame_bytes
from ..ptx.running.groups import Lazy
from ..ptx.running.specials import coordinates

if TYPE_CHECKING:
    from ..ptx.compiling.analysis.control_flow import Block, Code
    from ..ptx.running.barriers import Parked
    from ..ptx.running.groups import Group
    from ..ptx.running.scheduler import Chunk
    from ..ptx.syntax.instructions import Instruction

Array = NDArray[Any]
WARP = 32


class WaitingAt(NamedTuple):
    """The barrier that lanes wait at, and how many threads it waits for; None stands for the whole block."""

    number: int
    expected: int | None


class Level(NamedTuple):
    """A level of the call stack: a function's registers, and the index of the instruction that it is at."""

    code: Code
    registers: tuple[Any, ...]
    site: Instruction | None


class LaneGroup:
    """The copy of a group at one moment. `lanes` are indices within the chunk, in ascending order.

    `levels` is the call stack, innermost function first, and `pc` the innermost function's basic block. Arrays of
    registers are shared with the engine, which never changes them.
    """

    def __init__(self, group: Group, parked: Parked | None = None) -> None:
        block = group.code.blocks[group.pc]
        self.lanes = group.lane_numbers
        self.waiting = None if parked is None else WaitingAt(parked.number, parked.expected)
        self.site = site_of(block) if parked is None else parked.instruction
        self.begins = parked is None and _begins(block)
        self.levels = (
            Level(group.code, tuple(group.registers), self.site),
            *(
                Level(frame.code, tuple(frame.registers), call)
                for frame, call in zip(reversed(group.frames), group.calls, strict=True)
            ),
        )
        self.pc = group.pc
        # The offset of the local variables of each level in a thread's local memory.
        self.stacks = _stacks(group)

    def is_copy_of(self, group: Group, parked: Parked | None) -> bool:
        """Return whether a group is still as it was when it was copied."""
        return (
            (self.waiting is None) == (parked is None)
            and self.pc == group.pc
            and self.levels[0].code is group.code
            and self.depth == len(group.frames)
            and all(map(operator.is_, self.levels[0].registers, group.registers))
        )

    @property
    def depth(self) -> int:
        """The number of calls that the lanes are in."""
        return len(self.levels) - 1

    def has(self, lane: int) -> bool:
        """Return whether a lane is in the group."""
        position = int(np.searchsorted(self.lanes, lane))
        return position < len(self.lanes) and int(self.lanes[position]) == lane

    def register(self, slot: int, level: int = 0) -> Array | None:
        """Return the values of a register for all lanes, or None if none of them has written it."""
        value = self.levels[level].registers[slot]
        if value is None:
            return None
        if value.__class__ is Lazy:
            value = value.take()
        array: Array = np.broadcast_to(value, len(self.lanes))
        return array


class Mistake(NamedTuple):
    """The report of the sanitizer about an instruction, or of the fault that ended the launch, and its lane.

    `waits` is true if the launch has ended because threads wait.
    """

    report: str
    lane: int
    is_fault: bool
    waits: bool = False


@dataclass
class Change:
    """Bytes of an array that an instruction changed, with their previous values; `where` is in ascending order."""

    array: Array
    where: Array
    before: Array


class Write(NamedTuple):
    """The accesses of an instruction that write to an array: `size` bytes at each place, each by a lane of the chunk.

    A lane may leave the bytes as they are, for example with an atomicCAS that fails.
    """

    array: Array
    places: Array
    size: int
    lanes: Array


@dataclass
class Moment:
    """The state of a chunk before an instruction: the group that is about to execute it, and all other groups.

    `running` is None at the end of a launch that failed because all lanes wait. `changes` are those of the instruction,
    and `writes` its accesses to global and shared memory.
    """

    number: int
    chunk: Chunk
    running: LaneGroup | None
    others: tuple[LaneGroup, ...]
    changes: list[Change] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    mistake: Mistake | None = None

    @property
    def groups(self) -> Iterator[LaneGroup]:
        """Yield all groups of lanes that have not exited."""
        if self.running is not None:
            yield self.running
        yield from self.others

    def group_of(self, lane: int) -> LaneGroup | None:
        """Return the group of a lane, or None if the lane has exited."""
        return next((group for group in self.groups if group.has(lane)), None)

    def runs(self, lane: int) -> bool:
        """Return whether a lane is about to execute the instruction."""
        return self.running is not None and self.running.has(lane)

    def block_of(self, lane: int) -> int:
        """Return the number of a lane's block in the grid."""
        return self.chunk.first + lane // self.chunk.threads

    def block_index(self, lane: int) -> tuple[int, int, int]:
        """Return the coordinates of a lane's block."""
        return self.chunk.state.launch.block_index(self.block_of(lane))

    def thread_index(self, lane: int) -> tuple[int, int, int]:
        """Return the coordinates of a lane in its block."""
        x, y, z = coordinates(lane % self.chunk.threads, self.chunk.state.launch.block)
        return int(x), int(y), int(z)

    def indices_of(self, number: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Return the coordinates of the block and of the thread that has a number in the whole grid."""
        block, thread = divmod(number, self.chunk.threads)
        launch = self.chunk.state.launch
        return launch.block_index(block), coordinates(thread, launch.block)

    def warp_of(self, lane: int) -> tuple[int, int]:
        """Return the index of a lane's warp in its block, and the lane's index in the warp."""
        return divmod(lane % self.chunk.threads, WARP)

    def warp_lanes(self, lane: int) -> range:
        """Return the lanes of a lane's warp."""
        threads = self.chunk.threads
        first = lane - lane % threads + self.warp_of(lane)[0] * WARP
        return range(first, min(first + WARP, lane - lane % threads + threads))

    def block_lanes(self, lane: int) -> range:
        """Return the lanes of a lane's block."""
        first = lane - lane % self.chunk.threads
        return range(first, first + self.chunk.threads)


def _stacks(group: Group) -> tuple[int, ...]:
    """Return the offset of the local variables of each level of the call stack, innermost first."""
    stacks = [group.stack]
    for number, frame in reversed(list(enumerate(group.frames))):
        stacks.append(stacks[-1] - frame_bytes(frame.code, is_outermost=not number))
    return tuple(stacks)


def site_of(block: Block) -> Instruction | None:
    """Return the instruction of a block of stepped code; None for the end of a function."""
    return block.instructions[0] if block.instructions else block.terminator.instruction


def _begins(block: Block) -> bool:
    """Return whether an instruction begins with this block; the block after a guard's branch only continues it."""
    site = site_of(block)
    if site is None:
        return False
    is_guard = not block.instructions and block.terminator.kind == "branch"
    return site.guard is None or is_guard

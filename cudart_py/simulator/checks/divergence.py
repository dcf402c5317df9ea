"""Divergence: barriers that some threads of a block never reach, and member masks that omit an executing lane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ptx.compiling.analysis.reachability import Reach, Stack, lies_past, reachable
from ..ptx.syntax.instructions import Immediate, Register

if TYPE_CHECKING:
    from ..ptx.compiling.analysis.control_flow import Block, Code
    from ..ptx.running.groups import Group
    from ..ptx.syntax.instructions import Instruction

# The member mask of a whole warp.
_ALL = 0xFFFFFFFF


class _Place:
    """The location of a barrier: its instruction, and the basic block that it ends, in its call stack.

    Each copy of an inlined function and each call of another has its own barrier, although all of them have the same
    source line.
    """

    __slots__ = ("site", "stack")

    def __init__(self, group: Group, site: Instruction) -> None:
        self.stack = _stack(group)
        self.site = site


class Divergence:
    """The threads of one chunk that wait at barriers.

    A thread that has returned need not reach a barrier. A thread that has passed the barrier, by reaching a basic block
    from which the barrier can't be reached again, should have waited at it.
    """

    def __init__(self, blocks: int) -> None:
        # The barrier at which lanes of each thread block wait, as an index into `_places`, or -1.
        self._waiting = np.full(blocks, -1)
        self._places: list[_Place] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._reach: dict[int, Reach] = {}
        # Whether a block, keyed by its path, lies past a barrier.
        self._past: dict[tuple[tuple[int, ...], int], bool] = {}
        self.some = False

    def arrive(self, group: Group, site: Instruction) -> tuple[Instruction, int] | None:
        """Record lanes that wait; return another barrier at which their block waits, and a lane's position, or None."""
        number = self._numbers.setdefault(group.path, len(self._places))
        if number == len(self._places):
            self._places.append(_Place(group, site))
        blocks = group.chunk.block_of_lane[group.lane_numbers]
        waiting = self._waiting[blocks]
        other = np.flatnonzero((waiting >= 0) & (waiting != number))
        self._waiting[blocks] = number
        self.some = True
        return (self._places[int(waiting[other[0]])].site, int(other[0])) if len(other) else None

    def leave(self, group: Group) -> None:
        """Record lanes that leave a barrier."""
        if group.n == group.chunk.lanes:
            self._waiting[:] = -1
        else:
            self._waiting[group.chunk.block_of_lane[group.lane_numbers]] = -1
        self.some = bool((self._waiting >= 0).any())

    def passing(self, group: Group, block: Block) -> Iterator[tuple[Instruction, int]]:
        """Yield the barriers that lanes about to run a basic block have passed, each with a lane's position."""
        if not block.instructions:
            return
        waiting = self._waiting[group.chunk.block_of_lane[group.lane_numbers]]
        for number in np.unique(waiting[waiting >= 0]):
            key = group.path, int(number)
            if key not in self._past:
                barrier = self._places[number].stack
                self._past[key] = lies_past(block, _stack(group), barrier, self._reachable)
            if self._past[key]:
                yield self._places[number].site, int(np.flatnonzero(waiting == number)[0])

    def _reachable(self, code: Code) -> Reach:
        """Return, for each block of a function, the blocks that can come after it."""
        known = self._reach.get(code.base)
        if known is None:
            known = self._reach[code.base] = reachable(code)
        return known


def _stack(group: Group) -> Stack:
    """Return the block that a group is about to run, in its call stack."""
    calls = [(frame.code, place - frame.code.base) for frame, place in zip(group.frames, group.prefix, strict=True)]
    return [*calls, (group.code, group.pc)]


def member_masks(group: Group, block: Block) -> Any:
    """Return the member mask with which each lane begins a block, or one for all lanes; None if there is none."""
    operand = block.mask
    if isinstance(operand, Immediate):
        return np.uint32(operand.value & _ALL)
    value = group.resolve(group.code.slot(operand.name)) if isinstance(operand, Register) else None
    return None if value is None else value.view(np.uint32)


def outside_mask(group: Group, masks: Any) -> int:
    """Return the position of a lane that executes an instruction whose member mask omits it, or -1."""
    if masks is None or (np.ndim(masks) == 0 and masks == _ALL):
        return -1
    lane = (group.lane_numbers % group.chunk.threads % 32).astype(np.uint32)
    outside = np.flatnonzero((masks >> lane) & np.uint32(1) == 0)
    return int(outside[0]) if len(outside) else -1

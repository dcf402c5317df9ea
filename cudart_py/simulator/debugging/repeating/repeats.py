"""Launches that run again: which blocks must be recorded this time, and the contents of memory before the launch."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ...ptx.running.observer import RunAgain
from ...ptx.syntax.instructions import Call, Symbol
from .saved_memory import SavedMemory

if TYPE_CHECKING:
    from ...ptx.running.groups import Group
    from ...ptx.running.launch import Launch, LaunchState
    from ...ptx.running.scheduler import Chunk

Array = NDArray[Any]
# The functions of the device's runtime that change nothing but the output of the launch.
_HARMLESS = frozenset({"vprintf", "__assertfail"})

_THREAD = re.compile(r"block \((\d+), (\d+), (\d+)\), thread \((\d+), (\d+), (\d+)\)")
# If more blocks than this have to run again without showing a mistake, all blocks are recorded.
_MOST_REPEATS = 8


class Repeats:
    """The blocks of a launch that must be recorded because they have made a mistake without being recorded.

    `following` is the first block after those in which the launch has stopped: breakpoints before it do not stop again.
    """

    def __init__(self, launch: Launch) -> None:
        self.are_possible = can_be_undone(launch)
        self._all = False
        self._blocks: set[int] = set()
        self._saved = SavedMemory()
        self.following = 0

    def recorded_from(self, first: int, stops_from: Callable[[int], int]) -> int:
        """Return the first block, from `first` on, that must be recorded.

        `stops_from` returns the first one, from a block on, in which the launch may stop for another reason.
        """
        if not self.are_possible or self._all or len(self._blocks) > _MOST_REPEATS:
            return first
        return min([stops_from(max(first, self.following)), *(block for block in self._blocks if block >= first)])

    def again(self, block: int) -> RunAgain:
        """Return the exception that makes the launch run again, to record a block."""
        self._blocks.add(block)
        return RunAgain()

    def all_again(self) -> RunAgain:
        """Return the exception that makes the launch run again, to record all blocks."""
        self._all = True
        return RunAgain()

    def save(self, memory: Array, places: Array, size: int) -> None:
        """Save global memory that is about to be written: `size` bytes at each place."""
        if self.are_possible:
            self._saved.save(memory, places, size)

    def undo(self, state: LaunchState) -> None:
        """Restore memory, and discard the output of the launch."""
        self._saved.restore()
        state.printed.empty(lambda _: None)


def can_be_undone(launch: Launch) -> bool:
    """Return whether a launch can be undone.

    It cannot if the kernel allocates memory, launches other kernels, sets conditions of graphs, or writes surfaces.
    """
    entry = launch.entry
    for body in (entry.body, *entry.called):
        for site in body.instructions:
            if site.opcode.startswith(("sust", "sured")):
                return False
            target = site.operands[0].target if site.operands and isinstance(site.operands[0], Call) else None
            if isinstance(target, Symbol) and target.name not in _HARMLESS and not entry.module.function(target.name):
                return False
    return True


def block_of(group: Group, position: int) -> int:
    """Return the number of the block of the lane at a position of a group."""
    return group.chunk.first + int(group.lane_numbers[position]) // group.chunk.threads


def named_lane(report: str, chunk: Chunk) -> int | None:
    """Return the lane of a chunk that a report names, or None if it names none."""
    match = _THREAD.search(report)
    if match is None:
        return None
    block, thread = (tuple(map(int, match.group(*numbers))) for numbers in ((1, 2, 3), (4, 5, 6)))
    launch = chunk.state.launch
    width, height, _ = launch.block
    lane = thread[0] + width * (thread[1] + height * thread[2])
    numbers = (number for number in range(chunk.blocks) if launch.block_index(chunk.first + number) == block)
    number = next(numbers, None)
    return None if number is None else number * chunk.threads + lane

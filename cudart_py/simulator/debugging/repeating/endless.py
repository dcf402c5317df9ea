"""Launches that never end: they have returned to an earlier state, and repeat everything since then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..moments import LaneGroup
from .saved_memory import SavedMemory

if TYPE_CHECKING:
    from ...ptx.running.barriers import Parked
    from ...ptx.running.groups import Group
    from ...ptx.running.memory.addresses import Address
    from ...ptx.running.scheduler import Chunk

Array = NDArray[Any]


class Read(NamedTuple):
    """The reads of an instruction: `size` bytes of an array at each place, one per lane of the chunk in `lanes`.

    `running` is the group that has executed it, and `space` the state space.
    """

    chunk: Chunk
    running: LaneGroup
    lanes: Array
    space: str
    array: Array
    places: Array
    size: int


class _State(NamedTuple):
    """The state of a group that does not run. `lag` is the distance of its epoch from the latest one of its chunk."""

    lanes: LaneGroup
    spins: int
    unchanged: int
    epoch: int
    lag: int


class Endless:
    """The search for an earlier state of a launch.

    Only its own threads and the clock affect a launch. So if all groups and all memory are as they were, and no thread
    has read a clock since, the launch never ends. States are compared each time that all groups have had a turn. The
    earlier state is that after 1, 2, 4, 8, ... turns (Brent's algorithm), so that a cycle of any length is found.
    """

    def __init__(self) -> None:
        self._turns = 0
        self._earlier: list[list[_State]] | None = None
        self._memory = SavedMemory()
        self._readings = 0
        # The reads since the earlier state, keyed by the place of the instruction and the first lane.
        self.reads: dict[tuple[Any, ...], Read] = {}

    @property
    def is_searching(self) -> bool:
        """Return whether there is an earlier state to compare with."""
        return self._earlier is not None

    def write(self, memory: Array, places: Array, size: int) -> None:
        """Take note that memory is about to be written: `size` bytes at each place."""
        if self._earlier is not None:
            self._memory.save(memory, places, size)

    def read(self, group: Group, running: LaneGroup, positions: Array, part: Address, places: Array, size: int) -> None:
        """Take note that lanes, at positions of a group, are about to read memory."""
        if self._earlier is not None:
            lanes = group.lane_numbers[positions]
            key = group.chunk.first, group.path, part.space.name, int(lanes[0])
            self.reads[key] = Read(group.chunk, running, lanes, part.space.name, part.space.bytes, places, size)

    def is_repeated(self, chunks: Sequence[Chunk]) -> bool:
        """Return whether the launch is in an earlier state again; `chunks` are those that have begun and not ended."""
        self._turns += 1
        states = [_states(chunk) for chunk in chunks]
        readings = chunks[0].state.clock.readings
        is_same = self._earlier is not None and self._readings == readings and _are_same(self._earlier, states)
        if is_same and not self._memory.has_changed():
            return True
        if self._turns & (self._turns - 1) == 0:
            self._earlier, self._readings = states, readings
            self._memory.clear()
            self.reads.clear()
        return False


def _states(chunk: Chunk) -> list[_State]:
    groups: list[tuple[Group, Parked | None]] = sorted(
        chunk.waiting(), key=lambda one: (one[0].path, int(one[0].lane_numbers[0]))
    )
    latest = max((group.epoch for group, _ in groups), default=0)
    return [
        _State(LaneGroup(group, parked), group.spins, group.unchanged, group.epoch, latest - group.epoch)
        for group, parked in groups
    ]


def _are_same(earlier: list[list[_State]], present: list[list[_State]]) -> bool:
    """Return whether all groups are as they were. A group that nothing has touched keeps its epoch."""
    return [len(one) for one in earlier] == [len(one) for one in present] and all(
        (one.spins, one.unchanged) == (other.spins, other.unchanged)
        and (one.epoch == other.epoch or one.lag == other.lag)
        and _are_alike(one.lanes, other.lanes)
        for before, after in zip(earlier, present, strict=True)
        for one, other in zip(before, after, strict=True)
    )


def _are_alike(one: LaneGroup, other: LaneGroup) -> bool:
    """Return whether two copies of groups have the same lanes, at the same place, with the same values in registers."""
    if one.pc != other.pc or one.waiting != other.waiting or one.stacks != other.stacks:
        return False
    if [level.code for level in one.levels] != [level.code for level in other.levels]:
        return False
    return np.array_equal(one.lanes, other.lanes) and all(
        value is level.registers[slot] or _bits(one.register(slot, number)) == _bits(other.register(slot, number))
        for number, level in enumerate(other.levels)
        for slot, value in enumerate(one.levels[number].registers)
    )


def _bits(values: Array | None) -> bytes:
    return b"" if values is None else values.tobytes()

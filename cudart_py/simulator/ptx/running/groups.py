"""Groups of lanes at the same point of the program: their registers, and how the groups split and merge.

A register of a group is a NumPy scalar when all lanes hold the same value, an array over the group's lanes, or Lazy: a
deferred selection from an array over an earlier, larger group. Lazy values make short divergent regions cheap: a
register that neither side of a branch writes is the whole array again after the sides reconverge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..faults import Fault, UnsupportedError
from .clock import CYCLES

if TYPE_CHECKING:
    from ..compiling.analysis.control_flow import Code
    from ..syntax.instructions import Instruction
    from .scheduler import Chunk

Array = NDArray[Any]
Indices = NDArray[np.int64]
ndarray = np.ndarray


class Lazy:
    """A selection of elements from `array`, made when a block reads them."""

    __slots__ = ("_taken", "array", "selection")

    def __init__(self, array: Array, selection: Indices) -> None:
        self.array = array
        self.selection = selection
        self._taken: Array | None = None

    def take(self) -> Array:
        """Return the selected elements."""
        if self._taken is None:
            self._taken = self.array.take(self.selection)
        return self._taken


class Frame(NamedTuple):
    """The state of a caller while a callee runs: the block to resume at, and the registers that are live there."""

    code: Code
    resume: int
    registers: list[Any]
    live: tuple[int, ...]
    results: list[dict[tuple[int, int], int]]


@dataclass(eq=False, repr=False)
class Group:
    """`n` lanes of a chunk, in ascending order, that are about to execute block `pc` of `code`.

    `lanes` is None if the group contains all lanes of its chunk. `prefix` contains the return addresses of the calls
    that the lanes are in, outermost first.
    """

    chunk: Chunk
    code: Code
    lanes: Indices | None
    n: int
    pc: int = 0
    prefix: tuple[int, ...] = ()
    frames: tuple[Frame, ...] = ()
    registers: list[Any] = field(default_factory=list)
    epoch: int = 0
    spins: int = 0
    # The backward branches since these lanes were separated from others or joined by others.
    unchanged: int = 0
    stack: int = 0
    # The first block of the loop that waits for the clock, when the wait began, and when the clock was last read.
    wait: tuple[int, int, int] | None = None
    forced: bool = False
    # Lanes elsewhere in the program that execute their next instruction together with these; see `warps.Meeting`.
    meeting: Any = None
    # The layout of these lanes in rows of one warp each, computed on first use.
    rows: Any = None
    # An observer's records about these lanes.
    notes: Any = None
    _specials: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> tuple[int, ...]:
        """Return the return addresses and the program counter, as a key that orders groups."""
        return (*self.prefix, self.code.base + self.pc)

    @property
    def calls(self) -> list[Instruction]:
        """Return the call instructions of the lanes' call stack, innermost first."""
        found = []
        for frame, place in zip(self.frames, self.prefix, strict=True):
            found.append(frame.code.blocks[place - frame.code.base].terminator.ending)
        return found[::-1]

    def fault(self, status_name: str, what: str, site: Instruction, position: int = 0) -> Fault:
        """Return the fault of an instruction, located at the lane at `position`."""
        return Fault(status_name, self.chunk.state.launch.located(what, site, self, position))

    def unsupported(self, what: str, site: Instruction, position: int = 0) -> UnsupportedError:
        """Return the error for something that isn't simulated, located at the lane at `position`."""
        return UnsupportedError(self.chunk.state.launch.located(what, site, self, position))

    @property
    def lane_numbers(self) -> Indices:
        """Return the lanes' indices within the chunk."""
        return self.chunk.lane_numbers if self.lanes is None else self.lanes

    def per_lane(self, array: Array) -> Array:
        """Select this group's lanes from an array over the whole chunk."""
        return array if self.lanes is None else array.take(self.lanes)

    def special(self, name: str) -> Any:
        """Return a special register: a scalar when all lanes of the chunk share its value."""
        value = self._specials.get(name)
        if value is None:
            value = self.chunk.special(name)
            if value.__class__ is ndarray:
                value = self.per_lane(value)
            self._specials[name] = value
        return value

    def clock(self, name: str, behind: int, loop: int) -> int:
        """Read a clock register at an instruction that `behind` others follow in its block; see `Clock.look`."""
        state = self.chunk.state
        if loop < 0 and state.only_waits and self.code.blocks[self.pc].waits:
            # No block has this index. All such loops share it, because the lanes do nothing else between one loop and
            # the next.
            loop = len(self.code.blocks)
        return state.clock.look(self, name, CYCLES * (state.steps_done - behind), loop)

    def nap(self, nanoseconds: Any) -> None:
        """Let all lanes sleep for the longest of the times that they request."""
        self.chunk.state.clock.nap(int(np.max(nanoseconds)))

    @cached_property
    def shared_base(self) -> Array:
        """The offset of each lane's block in the chunk's arena of shared memory."""
        return self.per_lane(self.chunk.block_of_lane) * self.chunk.shared_stride

    @cached_property
    def local_base(self) -> Array:
        """The offset of each lane's local memory in the chunk's arena."""
        return self.lane_numbers * self.chunk.local_stride

    def resolve(self, slot: int) -> Any:
        """Return the value of a register, or None if it was never written."""
        value = self.registers[slot]
        return value.take() if value.__class__ is Lazy else value

    def value(self, slot: int) -> Any:
        """Return the value of a register, zero if it was never written."""
        value = self.resolve(slot)
        return self.code.zeros[slot] if value is None else value


def split(group: Group, picks: Sequence[Indices], targets: Sequence[int]) -> list[Group]:
    """Split a group by positions; child i continues at block `targets[i]` with the registers that are live there."""
    children = []
    for pick, target in zip(picks, targets, strict=True):
        lanes = pick if group.lanes is None else group.lanes.take(pick)
        child = Group(group.chunk, group.code, lanes, len(pick))
        child.pc = target
        child.prefix, child.epoch, child.spins, child.stack = group.prefix, group.epoch, group.spins, group.stack
        child.wait = group.wait
        # The new selection that replaces each earlier one, which several registers may share.
        selections: dict[int, Indices] = {}
        child.registers = _select(group.registers, group.code.blocks[target].live_slots, pick, selections)
        child.frames = tuple(
            frame._replace(registers=_select(frame.registers, frame.live, pick, selections)) for frame in group.frames
        )
        children.append(child)
    return children


def _select(registers: list[Any], live: Iterable[int], pick: Indices, selections: dict[int, Indices]) -> list[Any]:
    selected: list[Any] = [None] * len(registers)
    for slot in live:
        value = registers[slot]
        if value.__class__ is ndarray:
            value = Lazy(value, pick)
        elif value.__class__ is Lazy:
            selection = selections.get(id(value.selection))
            if selection is None:
                selection = selections[id(value.selection)] = value.selection.take(pick)
            value = Lazy(value.array, selection)
        selected[slot] = value
    return selected


def merge(groups: Sequence[Group]) -> Group:
    """Merge groups with the same path into one, with lanes in ascending order."""
    first = groups[0]
    chunk = first.chunk
    total = sum(group.n for group in groups)
    places: list[Indices]
    if total == chunk.lanes:
        lanes = None
        places = [group.lane_numbers for group in groups]
    else:
        flags = np.zeros(chunk.lanes, np.bool_)
        for group in groups:
            flags[group.lane_numbers] = True
        lanes = np.flatnonzero(flags)
        table = np.empty(chunk.lanes, np.int64)
        table[lanes] = chunk.lane_numbers[:total]
        places = [table.take(group.lane_numbers) for group in groups]
    merged = Group(chunk, first.code, lanes, total)
    merged.pc, merged.prefix, merged.stack = first.pc, first.prefix, first.stack
    merged.wait = first.wait
    merged.epoch = max(group.epoch for group in groups)
    merged.spins = max(group.spins for group in groups)
    # The selections that were joined, keyed by the identities of their parts.
    selections: dict[tuple[int, ...], Array] = {}
    live = first.code.blocks[first.pc].live_slots
    merged.registers = _join([group.registers for group in groups], live, places, selections)
    merged.frames = tuple(
        frame._replace(registers=_join([group.frames[i].registers for group in groups], frame.live, places, selections))
        for i, frame in enumerate(first.frames)
    )
    return merged


def _join(
    lists: Sequence[list[Any]], live: Iterable[int], places: Sequence[Indices], selections: dict[tuple[int, ...], Array]
) -> list[Any]:
    joined: list[Any] = [None] * len(lists[0])
    for slot in live:
        joined[slot] = _join_one([registers[slot] for registers in lists], places, selections)
    return joined


def _join_one(values: list[Any], places: Sequence[Indices], selections: dict[tuple[int, ...], Array]) -> Any:
    first = next((value for value in values if value is not None), None)
    if first is None:
        return None
    if first.__class__ is Lazy:
        array = first.array
        if all(value.__class__ is Lazy and value.array is array for value in values):
            # The selections are disjoint, so if they have as many elements as the array, they are the whole array.
            if len(array) == sum(map(len, places)):
                return array
            key = tuple(id(value.selection) for value in values)
            if key not in selections:
                selections[key] = _placed([value.selection for value in values], places, np.dtype(np.int64))
            return Lazy(array, selections[key])
    elif first.__class__ is not ndarray:
        bits = first.tobytes()
        if all(value is None or (value.__class__ is first.__class__ and value.tobytes() == bits) for value in values):
            return first
    resolved: list[Any] = [value.take() if value.__class__ is Lazy else value for value in values]
    return _placed(resolved, places, next(value.dtype for value in resolved if value is not None))


def _placed(values: Sequence[Any], places: Sequence[Indices], dtype: np.dtype[Any]) -> Array:
    """Return the values of several groups in the places of their lanes; those of a group that has none are 0."""
    placed = np.zeros(sum(map(len, places)), dtype)
    for value, place in zip(values, places, strict=True):
        if value is not None:
            placed[place] = value
    return placed

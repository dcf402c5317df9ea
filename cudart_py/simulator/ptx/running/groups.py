"""Groups of lanes at the same point of the program: their registers, and how the groups split and merge.

A register of a group is a NumPy scalar when all lanes hold the same value, an array over the group's lanes, or Lazy: a
deferred selection from an array over an earlier, larger group. Lazy values make short divergent regions cheap: a
register that neither side of a branch touches is never copied, and is the whole array again after the sides reconverge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
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


class Domain:
    """The lanes of one group, from which later groups select theirs."""

    __slots__ = ()


class Lazy:
    """A deferred selection from `array`, which has one element for each lane of `domain`."""

    __slots__ = ("array", "domain")

    def __init__(self, array: Array, domain: Domain) -> None:
        self.array = array
        self.domain = domain


class Frame(NamedTuple):
    """The state of a caller while a callee runs: the block to resume at, and the registers that are live there."""

    code: Code
    resume: int
    registers: list[Any]
    live: tuple[int, ...]
    results: list[dict[tuple[int, int], int]]


@dataclass(slots=True, eq=False, repr=False)
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
    selections: dict[Domain, Indices] = field(default_factory=dict)
    cache: dict[int, tuple[Lazy, Array]] = field(default_factory=dict)
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
    _own: Domain | None = None
    _specials: dict[str, Any] = field(default_factory=dict)
    _shared_base: Any = None
    _local_base: Any = None

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
    def own(self) -> Domain:
        """Return the domain of this group's lanes."""
        if self._own is None:
            self._own = Domain()
        return self._own

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

    @property
    def shared_base(self) -> Array:
        """Return the offset of each lane's block in the chunk's arena of shared memory."""
        if self._shared_base is None:
            self._shared_base = self.per_lane(self.chunk.shared_base)
        return self._shared_base  # type: ignore[no-any-return]  # because the slot also holds None

    @property
    def local_base(self) -> Array:
        """Return the offset of each lane's local memory in the chunk's arena."""
        if self._local_base is None:
            self._local_base = self.per_lane(self.chunk.local_base)
        return self._local_base  # type: ignore[no-any-return]  # because the slot also holds None

    def resolve(self, slot: int) -> Any:
        """Return the value of a register; if it is lazy, make the selection now."""
        value = self.registers[slot]
        if value.__class__ is Lazy:
            array = value.array.take(self.selections[value.domain])
            self.cache[slot] = (value, array)
            self.registers[slot] = value = array
        return value

    def value(self, slot: int) -> Any:
        """Return the value of a register, zero if it was never written."""
        value = self.resolve(slot)
        return self.code.zeros[slot] if value is None else value


def _lazy(group: Group, value: Any, slot: int, cached: bool, seen: dict[int, Lazy]) -> Any:
    """Return a register's value in the form that the child groups share: arrays become lazy."""
    if value.__class__ is not ndarray:
        return value
    if cached:
        known = group.cache.get(slot)
        if known is not None and known[1] is value:
            return known[0]
    lazy = seen.get(id(value))
    if lazy is None:
        lazy = seen[id(value)] = Lazy(value, group.own)
    return lazy


def split(group: Group, picks: Sequence[Indices], targets: Sequence[int]) -> list[Group]:
    """Split a group by positions; child i continues at block `targets[i]` with the registers that are live there."""
    seen: dict[int, Lazy] = {}
    children = []
    for pick, target in zip(picks, targets, strict=True):
        lanes = pick if group.lanes is None else group.lanes.take(pick)
        child = Group(group.chunk, group.code, lanes, len(pick))
        child.pc = target
        child.prefix, child.epoch, child.spins, child.stack = group.prefix, group.epoch, group.spins, group.stack
        child.wait = group.wait
        domains: set[Domain] = set()
        live = group.code.blocks[target].live_slots
        child.registers = _share(group, group.registers, live, True, seen, domains)
        child.frames = tuple(
            frame._replace(registers=_share(group, frame.registers, frame.live, False, seen, domains))
            for frame in group.frames
        )
        own = group.own
        child.selections = {d: pick if d is own else group.selections[d].take(pick) for d in domains}
        children.append(child)
    return children


def _share(
    group: Group,
    registers: list[Any],
    live: Iterable[int],
    cached: bool,
    seen: dict[int, Lazy],
    domains: set[Domain],
) -> list[Any]:
    shared = [None] * len(registers)
    for slot in live:
        value = shared[slot] = _lazy(group, registers[slot], slot, cached, seen)
        if value.__class__ is Lazy:
            domains.add(value.domain)
    return shared


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
    domains: set[Domain] = set()
    live = first.code.blocks[first.pc].live_slots
    merged.registers = _join(groups, [g.registers for g in groups], live, True, places, total, domains)
    merged.frames = tuple(
        frame._replace(
            registers=_join(groups, [g.frames[i].registers for g in groups], frame.live, False, places, total, domains)
        )
        for i, frame in enumerate(first.frames)
    )
    for domain in domains:
        selection = np.empty(total, np.int64)
        for group, place in zip(groups, places, strict=True):
            selection[place] = group.selections[domain]
        merged.selections[domain] = selection
    return merged


def _join(
    groups: Sequence[Group],
    lists: Sequence[list[Any]],
    live: Iterable[int],
    cached: bool,
    places: Sequence[Indices],
    total: int,
    domains: set[Domain],
) -> list[Any]:
    joined: list[Any] = [None] * len(lists[0])
    for slot in live:
        values = [registers[slot] for registers in lists]
        if cached:
            for i, group in enumerate(groups):
                known = group.cache.get(slot)
                if known is not None and known[1] is values[i]:
                    values[i] = known[0]
        value = joined[slot] = _join_one(groups, values, places, total)
        if value.__class__ is Lazy:
            domains.add(value.domain)
    return joined


def _join_one(groups: Sequence[Group], values: list[Any], places: Sequence[Indices], total: int) -> Any:
    known = [value for value in values if value is not None]
    if not known:
        return None
    first = known[0]
    if first.__class__ is Lazy:
        array = first.array
        if len(known) == len(values) and all(v.__class__ is Lazy and v.array is array for v in known):
            # The selections are disjoint, so if they have as many elements as the array, they are the whole array.
            return array if len(array) == total else first
        dtype = array.dtype
    else:
        if first.__class__ is not ndarray:
            bits = first.tobytes()
            if all(v.__class__ is first.__class__ and v.tobytes() == bits for v in known):
                return first
        dtype = first.dtype
    out = np.zeros(total, dtype) if len(known) < len(values) else np.empty(total, dtype)
    for group, value, place in zip(groups, values, places, strict=True):
        if value is None:
            continue
        if value.__class__ is Lazy:
            value = value.array.take(group.selections[value.domain])
        out[place] = value
    return out

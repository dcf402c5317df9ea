"""The recorder of a launch: it shows a debugger each instruction before it is executed, and records what it changes."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..ptx.compiling.opcode_table.opcodes import form_of
from ..ptx.running.memory.addresses import Mixed
from ..ptx.running.observer import MatrixPiece, MatrixRows, Observer
from ..ptx.windows import SHARED_WINDOW
from ..state.fault_reports import readable
from .block_scope import BlockScope
from .exits import Exits
from .expressions import evaluate, holds, type_of
from .kernel_source import KernelSource
from .moments import Change, LaneGroup, Mistake, Moment, Write
from .past_memory import PastMemory
from .repeating.endless import Endless, Read
from .repeating.repeats import Repeats, block_of, named_lane
from .scope import Scope, ShownValue
from .symbols.cpp_types import CType, Pointer, Scalar
from .values import MemoryView, Value, as_address, space_of
from .writers import Atomic, Effect, LastWrite, LastWriters, WriteAccess, Writers, WritingPlaces, atomic_of, effect_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..ptx.compiling.analysis.control_flow import Block
    from ..ptx.faults import Fault
    from ..ptx.running.groups import Group
    from ..ptx.running.launch import LaunchState
    from ..ptx.running.memory.addresses import Address
    from ..ptx.running.scheduler import Chunk
    from ..ptx.syntax.instructions import Instruction

Array = NDArray[Any]
# The number of instructions that can be undone. Each costs the values of the registers that it writes.
HISTORY = 20_000
# The status of a launch that never ends, and the largest number of its blocks that are all recorded to show why.
_ENDLESS = "CUDA_ERROR_LAUNCH_TIMEOUT"
_MOST_WAITING_BLOCKS = 64


class Listener(Protocol):
    """The debugger. Its methods return when the launch may continue."""

    stop_at_findings: bool

    @property
    def is_interrupted(self) -> bool:
        """Whether the launch must stop at once."""

    def stops_from(self, recorder: Recorder, first: int) -> int:
        """Return the first block, from `first` on, in which the launch may stop for another reason than a mistake."""

    def started(self, recorder: Recorder) -> None:
        """A launch begins."""

    def reached(self, moment: Moment) -> None:
        """A group is about to execute an instruction."""

    def found(self, moment: Moment) -> None:
        """The sanitizer has found a mistake in the instruction of a moment, or it has ended the launch by a fault."""

    def finished(self) -> None:
        """The launch has ended."""


class Recorder(KernelSource, Observer):
    """The recorder of one launch. `history` contains its latest moments, in order.

    Blocks in which the launch will not stop run without being recorded, many of them together. If one of them makes a
    mistake, the launch runs again from its start, and this block is recorded.
    """

    watch = None
    stepped = True
    can_restart = True

    def __init__(self, listener: Listener) -> None:
        super().__init__()
        self._listener = listener
        self.history: deque[Moment] = deque(maxlen=HISTORY)
        self._past = PastMemory(self.history)
        self._count = 0
        self._running: Group | None = None
        self._writers: dict[int, Writers] = {}
        self._writing_places = WritingPlaces()
        self._last_writers = LastWriters(self._writing_places)
        # The accesses of the latest instruction that may write.
        self._accesses: list[WriteAccess] = []
        # Whether all blocks so far have been recorded.
        self.is_complete = True
        # The copies of the groups that wait, keyed by the group's identity.
        self._copies: dict[int, tuple[Group, LaneGroup]] = {}
        # The chunks that have begun and not ended, by their first blocks, and the number of blocks that have begun.
        self._active: dict[int, Chunk] = {}
        self.begun = 0
        # The contents of shared and local memory at the latest moment of each chunk.
        self._known: dict[int, list[tuple[Array, Array]]] = {}
        # Whether the launch runs again because of an interrupt.
        self._is_interrupting = False
        self._endless = Endless()
        self.exits = Exits()
        # The reads that the threads of a launch that never ends repeat.
        self.reads: list[Read] = []

    def start(self, state: LaunchState) -> None:
        """Tell the debugger that a launch begins."""
        self.state = state
        self._repeats = Repeats(state.launch)
        self._listener.started(self)

    def stepped_from(self, first: int) -> int:
        """Return the first block, from `first` on, that must be recorded."""
        return self._repeats.recorded_from(first, lambda block: self._listener.stops_from(self, block))

    def shown(self, moment: Moment) -> None:
        """Take note that the launch has stopped at a moment."""
        self._repeats.following = max(self._repeats.following, moment.chunk.first + moment.chunk.blocks)

    def restart(self, state: LaunchState) -> None:
        """Undo what the launch has done."""
        self._repeats.undo(state)
        self._active.clear()
        self.begun = 0
        self._endless = Endless()
        self.exits = Exits()
        self._forget_history()
        self.is_complete = True

    def _forget_history(self) -> None:
        """Let the history begin after blocks that are not recorded, because it lacks their changes of memory."""
        self._past.clear()
        self.history.clear()
        self._copies.clear()
        self._last_writers = LastWriters(self._writing_places)
        self._accesses.clear()

    def finish(self, state: LaunchState) -> None:
        """Tell the debugger that the launch has ended."""
        self._listener.finished()

    def block(self, group: Group, block: Block) -> None:
        """Record a moment, and show it to the debugger."""
        chunk = group.chunk
        if chunk.first not in self._active:
            self._active[chunk.first] = chunk
            self.begun = max(self.begun, chunk.first + chunk.blocks)
        if not group.code.stepped:
            self._pass(group)
            return
        self._is_interrupting = False
        self._note_writers(None)
        self._note_changes(group.chunk)
        self._running = group
        running = LaneGroup(group)
        self.exits.follow(group, running, self)
        self._add(group.chunk, running)
        self._listener.reached(self.history[-1])

    def _pass(self, group: Group) -> None:
        """Let a block run without being recorded, unless an interrupt asks for it."""
        self.is_complete = False
        if self.history:
            self._forget_history()
        self._running = group
        if self._listener.is_interrupted and not self._is_interrupting:
            self._is_interrupting = True
            raise self._repeats.again(block_of(group, 0))

    def executed(self, group: Group, block: Block) -> None:
        """Record the lanes that have changed memory."""
        if self._accesses:
            self._note_writers(atomic_of(group, block))

    def ended(self, chunk: Chunk) -> None:
        """Record the last changes of a chunk."""
        self._active.pop(chunk.first, None)
        if not chunk.program.is_stepped:
            return
        self._note_writers(None)
        self._last_writers.forget(chunk.shared.bytes)
        self.exits.ended(chunk)
        self._note_changes(chunk)
        self._known.pop(id(chunk), None)

    def exit(self, group: Group) -> None:
        """Record where lanes exit."""
        if group.code.stepped:
            self.exits.note(group)

    def never_ends(self, chunks: Sequence[Chunk]) -> bool:
        """Return whether the launch never ends, and note what its threads have read since its earlier state."""
        if not self._repeats.are_possible or not self._endless.is_repeated(chunks):
            return False
        self.reads = list(self._endless.reads.values())
        return True

    def failed(self, chunk: Chunk, fault: Fault) -> None:
        """Show the debugger the fault that ends the launch: at its instruction, or when all lanes wait."""
        waiting = list(chunk.waiting())
        self._note_writers(None)
        if not chunk.program.is_stepped and self._listener.stop_at_findings and not self.state.limit_reached():
            if fault.status_name == _ENDLESS and self.state.blocks <= _MOST_WAITING_BLOCKS:
                # Any block may be the one that the others wait for.
                raise self._repeats.all_again()
            raise self._repeats.again(self._block_in(fault.report, chunk))
        if not chunk.program.is_stepped and self._running is not None:
            self._add(chunk, LaneGroup(self._running))
        elif not self.history or self.history[-1].chunk is not chunk or self._has_stopped(chunk, waiting):
            self._note_changes(chunk)
            self._add(chunk, None)
        moment = self.history[-1]
        lane, waits = self._lane_in(fault.report, moment), fault.status_name == _ENDLESS
        moment.mistake = Mistake(readable(fault.report), lane, is_fault=True, waits=waits)
        self._listener.found(moment)
        self._listener.finished()

    def finding(self, group: Group, position: int, report: str) -> None:
        """Show the debugger a finding of the sanitizer."""
        if not group.code.stepped:
            if self._listener.stop_at_findings:
                raise self._repeats.again(block_of(group, position))
            return
        moment = self.history[-1]
        moment.mistake = Mistake(readable(report), int(group.lane_numbers[position]), is_fault=False)
        self._listener.found(moment)

    def access(
        self, group: Group, kind: str, address: Address | Mixed, offset: int, size: int, site: Instruction, *_: Any
    ) -> None:
        """Record the writer of shared memory, and the previous contents of global memory."""
        if kind != "ld":
            self._write(group, address, offset, size)
        if kind not in ("st", "red") and self._endless.is_searching and group.code.stepped:
            running = self.history[-1].running
            assert running is not None
            for positions, part in _parts(group, address):
                places = np.broadcast_to(part.places, len(positions)) + offset
                self._endless.read(group, running, positions, part, places, size)

    def matrix(
        self, group: Group, kind: str, pieces: Sequence[MatrixPiece], rows: MatrixRows | None, site: Instruction
    ) -> None:
        """Record the stores of matrices like those of single values."""
        if kind == "st":
            for piece in pieces:
                self._write(group, piece.address, 0, piece.size)

    def bulk(self, group: Group, kind: str, units: Mixed, size: int, barriers: Any, site: Instruction) -> None:
        """Record the writes of the asynchronous proxy like those of threads."""
        if kind == "st":
            self._write(group, units, 0, size)

    @property
    def active(self) -> Iterable[Chunk]:
        """The chunks that have begun and not ended."""
        return self._active.values()

    def elsewhere(self, moment: Moment) -> list[tuple[Chunk, LaneGroup]]:
        """Return the groups of the chunks that have begun and not ended, except that of a moment."""
        chunks = [chunk for chunk in self.active if chunk is not moment.chunk]
        return [(chunk, LaneGroup(group, parked)) for chunk in chunks for group, parked in chunk.waiting()]

    def address_of(self, space: str, place: int, chunk: Chunk) -> int:
        """Return the generic address of a place in global memory, or in the shared memory of a chunk."""
        return SHARED_WINDOW + place % chunk.shared_stride if space == "shared" else self.state.memory.base + place

    def allocation_of(self, address: int) -> str:
        """Return the line that allocated the memory at an address as ``allocated at file:line``, or ""."""
        _, mark, line = self.state.memory.describe(address).rpartition("allocated at ")
        return f"{mark}{line}" if mark else ""

    def last_writer(self, array: Array, place: int, size: int) -> LastWrite | None:
        """Return the last writer of bytes of an array, or None if no recorded block has changed them."""
        return self._last_writers.of(array, place, size)

    def writing_line(self, index: int) -> int:
        """Return the line of a place that has written memory, by its index in `Writers`, in the kernel's file."""
        place = self.user_place(self._writing_places.groups[index])
        assert place is not None  # only a group at the end of a function has no line
        return place.line

    def scope(self, moment: Moment, group: LaneGroup, frame: int = 0) -> Scope:
        """Return the names that are visible to a group in the frame of an index."""
        return Scope(self, moment, group, self.frames(group)[frame])

    def evaluate(self, text: str, scope: Scope) -> Value:
        """Return the value of an expression for the lanes of a scope; raises ValueError if it has none."""
        return evaluate(text, scope)

    def shown_value(self, value: Value, position: int) -> ShownValue:
        """Return the value for the lane at a position, to be named later."""
        address = None if value.addresses is None else int(value.addresses[position])
        is_number = isinstance(value.type, (Scalar, Pointer))
        return ShownValue(value.type, value.data[position] if is_number else None, address)

    def pointer(self, text: str, scope: Scope) -> Value:
        """Return the value of an expression, an array as a pointer to its first element."""
        return as_address(self.evaluate(text, scope))

    def type_of(self, text: str, scope: Scope) -> CType:
        """Return the type that a text names, or that of an expression; raises ValueError for another text."""
        return type_of(text, scope)

    def memory_of(self, moment: Moment, lane: int, count: int) -> MemoryView:
        """Return memory as a lane sees it, for `count` addresses at a time."""
        return MemoryView(self, moment, np.full(count, lane))

    def space_of(self, address: int) -> str:
        """Return the state space of an address: global, shared or local."""
        return space_of(address)

    def holds(self, text: str, scope: Scope) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return for which lanes of a scope a condition holds, and for which it has a value."""
        return holds(text, scope)

    def first_block(self, first: int, index: tuple[int, ...] | None, condition: str) -> int:
        """Return the first block, from `first` on, that has an index and for which a condition may hold.

        The number of all blocks means that there is none.
        """
        blocks = np.arange(first, self.state.blocks)
        scope = BlockScope(self.state.launch, blocks)
        chosen = scope.may_hold(condition)
        if index is not None:
            chosen &= scope.are_at(index)
        return int(blocks[chosen][0]) if chosen.any() else int(self.state.blocks)

    def writers(self, chunk: Chunk) -> Writers:
        """Return the writers of a chunk's shared and local memory."""
        key = id(chunk)
        if key not in self._writers:
            # The writers keep their chunks, so that the identities of these are not used again.
            recorded = {id(moment.chunk) for moment in self.history}
            self._writers = {
                number: known for number, known in self._writers.items() if number in recorded or known.chunk.live
            }
            self._writers[key] = Writers(chunk)
        return self._writers[key]

    def before(self, moment: Moment) -> Iterator[Moment]:
        """Yield the moments of the history before another one, the latest first."""
        return (one for one in reversed(self.history) if one.number < moment.number)

    def read(self, array: Array, where: Array, moment: Moment) -> Array:
        """Return elements of an array as they were at a moment of the history."""
        return self._past.read(array, where, moment)

    def _add(self, chunk: Chunk, running: LaneGroup | None) -> None:
        copies: dict[int, tuple[Group, LaneGroup]] = {}
        for group, parked in chunk.waiting():
            known = self._copies.get(id(group))
            copy = known[1] if known is not None and known[1].is_copy_of(group, parked) else LaneGroup(group, parked)
            copies[id(group)] = group, copy
        self._copies = copies
        self._past.clear()
        self.history.append(Moment(self._count, chunk, running, tuple(copy for _, copy in copies.values())))
        self._count += 1

    def _has_stopped(self, chunk: Chunk, waiting: list[tuple[Group, Any]]) -> bool:
        """Return whether the lanes that ran last now wait or have exited."""
        group = self._running
        assert group is not None
        lane = int(group.lane_numbers[0])
        return bool(chunk.exited[lane]) or any(lane in other.lane_numbers for other, _ in waiting)

    def _lane_in(self, report: str, moment: Moment) -> int:
        """Return the lane that a report names, or the first one of the moment."""
        lane = named_lane(report, moment.chunk)
        return int(next(moment.groups).lanes[0]) if lane is None else lane

    def _block_in(self, report: str, chunk: Chunk) -> int:
        """Return the block that a report names, or that of the first thread that waits."""
        lane = named_lane(report, chunk)
        if lane is None:
            lane = min((int(group.lane_numbers[0]) for group, _ in chunk.waiting()), default=0)
        return chunk.first + lane // chunk.threads

    # --- changes of memory

    def _note_changes(self, chunk: Chunk) -> None:
        """Record the changes of the chunk's latest instruction in shared and local memory."""
        known = self._known.get(id(chunk))
        if known is None:
            arrays = (chunk.shared.bytes, chunk.local.bytes)
            self._known[id(chunk)] = [(array, array.copy()) for array in arrays if len(array)]
            return
        moment = next((one for one in reversed(self.history) if one.chunk is chunk), None)
        if moment is None or not _may_write(moment):
            return
        for array, before in known:
            where = np.flatnonzero(array != before)
            if len(where):
                self._changed(moment, Change(array, where, before[where]))
                before[where] = array[where]

    def _write(self, group: Group, address: Address | Mixed, offset: int, size: int) -> None:
        for positions, part in _parts(group, address):
            space = part.space.name
            if space not in ("shared", "global", "local", "workspace"):
                continue
            places = np.broadcast_to(part.places, len(positions)) + offset
            if space in ("shared", "local") and not group.code.stepped and not self._endless.is_searching:
                continue
            # This comes before the engine's own check. Bytes outside all allocations may be inaccessible to Python too.
            inside = self._inside(places, size) if space == "global" else _fits(places, size, len(part.space.bytes))
            self._endless.write(part.space.bytes, places[inside], size)
            if space in ("global", "workspace"):
                self._repeats.save(part.space.bytes, places[inside], size)
            if not group.code.stepped:
                continue
            where = places[inside][:, None] + np.arange(size)
            lanes = group.lane_numbers[positions][inside]
            if space == "local":
                written = self.writers(group.chunk).local
                self._keep(written, where)
                written[where] = True
                continue
            memory = part.space.bytes
            write = Write(memory, places[inside], size, lanes)
            self._accesses.append(WriteAccess(self.history[-1], write, where, memory[where], group.path))
            if space != "shared":
                self._keep(memory, where)

    def _note_writers(self, atomic: Atomic | None) -> None:
        """Record the writers of the latest accesses, which have happened, perhaps by an atomic."""
        for access in self._accesses:
            effect = effect_of(access, atomic)
            self._last_writers.note(access, effect)
            access.moment.writes.append(effect.write)
            if access.write.array is access.moment.chunk.shared.bytes:
                self._note_shared(access, effect)
        self._accesses.clear()

    def _note_shared(self, access: WriteAccess, effect: Effect) -> None:
        """Record the lanes that have written shared memory."""
        writers, where = self.writers(access.moment.chunk), access.where[effect.writing].ravel()
        self._keep(writers.lanes, where)
        self._keep(writers.places, where)
        writers.lanes[where] = np.repeat(effect.write.lanes, effect.write.size)
        writers.places[where] = self._writing_places.index(access)

    def _inside(self, places: Array, size: int) -> NDArray[np.bool_]:
        """Return the places in global memory that are within an allocation."""
        starts, ends = self.state.memory.extents()
        if not len(starts):
            return np.zeros(len(places), np.bool_)
        addresses = places + self.state.memory.base
        extent = np.searchsorted(starts, addresses, "right") - 1
        inside: NDArray[np.bool_] = (extent >= 0) & (addresses <= ends[extent] - size)
        return inside

    def _keep(self, array: Array, where: Array) -> None:
        """Record the present values of elements that the latest instruction is about to change."""
        where = np.unique(where)
        if len(where):
            self._changed(self.history[-1], Change(array, where, array[where]))

    def _changed(self, moment: Moment, change: Change) -> None:
        """Record a change by the instruction of a moment, the latest change first."""
        self._past.clear()
        moment.changes.insert(0, change)


def _parts(group: Group, address: Address | Mixed) -> Iterator[tuple[Array, Address]]:
    """Yield the positions of lanes and their addresses, by space."""
    if isinstance(address, Mixed):
        yield from address.parts
    else:
        yield np.arange(group.n), address


def _fits(places: Array, size: int, whole: int) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = (places >= 0) & (places <= whole - size)
    return inside


def _may_write(moment: Moment) -> bool:
    """Return whether the instruction of a moment may write shared or local memory."""
    site = None if moment.running is None else moment.running.site
    if site is None:
        return False
    row = form_of(site).row
    return row.access not in ("", "ld") or bool(row.ends) or row.converges != ""

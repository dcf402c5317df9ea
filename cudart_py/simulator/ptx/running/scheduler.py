"""Run a chunk of thread blocks, always advancing all lanes with the lowest program counter together.

Lanes with the same path (return addresses and program counter) form a group. A group runs until other lanes have a
lower path, it splits, or it must wait. Branching backwards ages a group: it increases the group's epoch. Younger groups
run first, so spinning lanes let all others pass, whatever their program counters are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from sys import maxsize
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..compiling.analysis.wait_loops import Waiting
from ..compiling.program import variant
from ..faults import Fault
from . import calls
from .barriers import Barriers, Parked
from .device_runtime.system import System
from .groups import Group, Lazy, merge, split
from .matrices import Matrices
from .memory.bulk_copies import BulkCopies
from .memory.spaces import Space, shared_space
from .memory.tensor_copies import TensorCopies
from .specials import geometry, special_value
from .warps import Warps, incomplete, meet

if TYPE_CHECKING:
    from ..compiling.analysis.control_flow import Block
    from ..compiling.program import Program
    from .launch import LaunchState

Array = NDArray[Any]
ndarray = np.ndarray
Path = tuple[int, ...]

# The number of backward branches that a group may take before other groups get a turn: few in loops that poll memory,
# more in loops with atomics, and many in other loops that read memory. A loop that reads no memory can't depend on what
# other lanes do.
_TURNS = {Waiting.POLLS: 16, Waiting.LOCKS: 256, Waiting.ATOMICS: 256, Waiting.LOADS: 4096}
# The same for a loop that may take a lock, counted since a lane has last left the loop. In other loops around a
# compare-and-swap, one lane at least succeeds and leaves the loop in each iteration.
_TURNS_WITHOUT_CHANGE = 16
_STALLED_EPOCHS = 4


class Chunk:
    """The lanes of consecutive blocks, their shared and local memory, and the groups that are ready or waiting."""

    def __init__(self, state: LaunchState, first: int, count: int, program: Program | None = None) -> None:
        self.state = state
        # The code that the lanes execute. A debugger lets blocks that it need not see execute whole basic blocks.
        self.program = program or state.program
        self.memory = state.memory_access
        self.system = System(state)
        self.warps = Warps()
        self.matrices = Matrices()
        self.bulk_copies = BulkCopies()
        self.tensor_copies = TensorCopies()
        self.first = first
        self.blocks = count
        self.threads = state.threads
        self.lanes = count * state.threads
        self.live = self.lanes
        self.geometry = geometry(count, state.launch.block)
        self.lane_numbers = self.geometry.lane_numbers
        self.block_of_lane = self.geometry.block_of_lane
        self.exited: NDArray[np.bool_] = np.zeros(self.lanes, np.bool_)
        self.exited_in_block = np.zeros(count, np.int64)
        self.shared_stride = state.shared_limit
        self.shared = shared_space(state, np.zeros(count * self.shared_stride, np.uint8))
        self.local_stride = state.local_stride
        self.local = Space("local", np.zeros(self.lanes * self.local_stride, np.uint8), state.local_size)
        self.barriers = Barriers()
        # Each output: the index of its block, its text, and its size in the device's buffer.
        self.printed: list[tuple[int, str, int]] = []
        # An observer's records about the chunk.
        self.notes: Any = None
        self._specials: dict[str, Any] = {}
        self._ready: dict[Path, list[Group]] = {}
        self._held: dict[Path, Group] = {}
        start = Group(self, self.program.main, None, self.lanes)
        start.registers = [None] * len(start.code.types)
        self.push(start)

    def special(self, name: str) -> Any:
        """Return a special register for all lanes of the chunk."""
        value = self._specials.get(name)
        if value is None:
            value = self._specials[name] = special_value(self, name)
        return value

    def waiting(self) -> Iterator[tuple[Group, Parked | None]]:
        """Yield the groups that do not run now, each with the barrier that it waits at, or None."""
        for groups in self._ready.values():
            yield from ((group, None) for group in groups)
        yield from ((group, None) for group in self._held.values())
        yield from ((parked.group, parked) for parked in self.barriers.parked)

    @property
    def is_spinning(self) -> bool:
        """Return whether a group of lanes could run, although it may only wait in a loop."""
        return bool(self._ready)

    def endless(self, chunks: Sequence[Chunk]) -> Fault:
        """Return the fault for a launch that never ends; `chunks` are all that have begun and not ended."""
        parked = sum(one.group.n for chunk in chunks for one in chunk.barriers.parked)
        group = next(group for groups in self._ready.values() for group in groups)
        what = (
            f"deadlock: {sum(chunk.live for chunk in chunks) - parked} threads repeat the same instructions forever, "
            "because no thread changes the memory that they read"
        )
        what += f", and {parked} threads wait at barriers" if parked else ""
        return self._endless(group, group.code.blocks[group.pc], what)

    def let_go(self) -> None:
        """Drop the references back to the chunk, so that its memory is freed with the last reference to it.

        After a fault, groups still wait here. An observer's records may refer to the chunk's groups at any time.
        """
        self._ready.clear()
        self._held.clear()
        self.barriers.parked.clear()
        self.notes = None

    def print_out(self) -> None:
        """Add the chunk's output to the launch's buffer, in block order."""
        for _, text, size in sorted(self.printed, key=lambda item: item[0]):
            self.state.printed.add(text, size)
        self.printed = []

    # --- the group that runs next

    def push(self, group: Group) -> None:
        """Make a group ready to run."""
        self._ready.setdefault(group.path, []).append(group)

    def hold(self, group: Group) -> None:
        """Hold a group until more lanes reach its path; if lanes are held there already, make all of them ready."""
        other = self._held.pop(group.path, None)
        if other is None:
            self._held[group.path] = group
        else:
            self.push(merge([other, group]))

    def _lowest(self) -> tuple[int, Path]:
        """Return the epoch and the path of the ready groups that run next; the greatest epoch if there are none."""
        ready = ((max(group.epoch for group in groups), path) for path, groups in self._ready.items())
        return min(ready, default=(maxsize, ()))

    def _pop(self, path: Path) -> Group:
        groups = self._ready.pop(path)
        if path in self._held:
            groups.append(self._held.pop(path))
        return groups[0] if len(groups) == 1 else merge(groups)

    @property
    def _others(self) -> bool:
        return bool(self._ready or self._held or self.barriers.parked)

    def run(self, alone: bool) -> bool:
        """Run until all lanes have exited, or, unless `alone`, until they only wait for other chunks.

        Return whether all lanes have exited. For a debugger, a chunk that is alone also returns while its lanes wait.
        """
        goes_on = alone and not self.state.stepped
        started: int | None = None
        while True:
            while not self._ready:
                if not self._revive(alone):
                    return True
            epoch, path = self._lowest()
            if started is None:
                started = epoch
            elif epoch > started:
                self.barriers.release(self, epoch)
                if not goes_on and epoch > started + _STALLED_EPOCHS:
                    return False
                path = self._lowest()[1]
            self._advance(self._pop(path), alone)

    def _revive(self, alone: bool) -> bool:
        """Make waiting groups ready, if need be without the missing lanes; return whether any group can continue.

        Raises Fault at a deadlock.
        """
        if self.barriers.release(self, 0) or self._ready:
            return True
        if self._held:
            met, waiting = meet(self._held.values())
            if met:
                self._held = {group.path: group for group in waiting}
                for group in met:
                    self._advance(group, alone)
                return True
            # The missing lanes will never arrive, so the waiting lanes continue without them.
            for group in self._held.values():
                group.forced = True
                self.push(group)
            self._held = {}
            return True
        if self.barriers.parked:
            raise self.barriers.deadlock()
        return False

    # --- running

    def _advance(self, group: Group, alone: bool) -> None:
        """Run a group until it splits, waits or exits, or until other lanes have a lower path."""
        state = self.state
        environment = state.environment
        observer = state.observer
        epoch, lowest = group.epoch, self._lowest()
        while True:
            code = group.code
            block = code.blocks[group.pc]
            if block.converges and group.n != self.lanes and not group.forced and group.meeting is None:
                waiting = incomplete(group, block)
                if waiting is not None:
                    here, later = split(group, waiting, (group.pc, group.pc)) if len(waiting[0]) else (None, group)
                    self.hold(later)
                    lowest = self._lowest()
                    if here is None:
                        return
                    group = here
            if observer is not None and group.forced and group.n != self.lanes:
                missed = incomplete(group, block) if block.converges else None
                if missed is not None:
                    observer.deserted(group, block.first, int(missed[1][0]))
            group.forced = False
            state.steps_left -= len(block.instructions) + 1
            if state.steps_left < state.next_look and (limit := state.look()) is not None:
                raise self._endless(group, block, limit)
            registers, inputs, uniform = group.registers, [], []
            for slot in block.input_slots:
                value = registers[slot]
                if value is None:
                    registers[slot] = value = code.zeros[slot]
                    if observer is not None:
                        observer.unwritten(group, slot)
                elif value.__class__ is Lazy:
                    value = value.take()
                inputs.append(value)
                uniform.append(value.__class__ is not ndarray)
            function, spread = variant(code, group.pc, tuple(uniform), environment)
            if spread:
                inputs = [value if value.__class__ is ndarray else np.full(group.n, value) for value in inputs]
            if observer is not None:
                observer.block(group, block)
            result = function(group, registers, inputs)
            if group.meeting is not None:
                group.meeting = group.rows = None
            if not block.waits:
                state.progress = state.steps_left
            if observer is not None:
                observer.executed(group, block)
            next_group = self._leave(group, block, result, alone)
            if next_group is None:
                return
            group = next_group
            if group.epoch != epoch:
                # The group has aged, so other groups get a turn, and perhaps another chunk too.
                self.push(group)
                return
            if self._ready and (epoch, group.path) >= lowest:
                self.push(group)
                return

    def _leave(self, group: Group, block: Block, result: Any, alone: bool) -> Group | None:
        """Execute the terminator of a block; return the group if it continues without splitting."""
        terminator = block.terminator
        kind = terminator.kind
        if kind == "next":
            return self._go(group, block.index, terminator.targets[0], alone)
        if kind == "branch":
            taken, other = terminator.targets
            if self.state.observer is not None:
                self.state.observer.branch(group, terminator.instruction, result)
            if result.__class__ is not ndarray:
                return self._go(group, block.index, taken if result else other, alone)
            count = int(np.count_nonzero(result))
            if count == group.n or not count:
                return self._go(group, block.index, taken if count else other, alone)
            picks = [np.flatnonzero(result), np.flatnonzero(~result)]
            for child in split(group, picks, (taken, other)):
                moved = self._go(child, block.index, child.pc, alone)
                self.push(moved)
            return None
        if kind == "exit":
            self._exit(group)
            return None
        if kind == "barrier":
            return self.barriers.arrive(group, block)
        if kind == "call":
            return calls.call(self, group, block)
        if kind == "return":
            return calls.leave(group)
        if kind == "switch":
            return self._switch(group, block, result, alone)
        raise self.state.launch.trapped(terminator.ending, group)

    def _switch(self, group: Group, block: Block, index: Any, alone: bool) -> Group | None:
        targets = block.terminator.targets
        values = np.unique(index)
        if values[-1] >= len(targets):
            instruction = block.terminator.ending
            lane = int(np.argmax(index))
            what = f"branch to index {int(values[-1])} of {len(targets)} targets"
            raise group.fault("CUDA_ERROR_LAUNCH_FAILED", what, instruction, lane)
        if len(values) == 1:
            return self._go(group, block.index, targets[int(values[0])], alone)
        # Several indices may share a target.
        places: dict[int, Array] = {}
        for value in values:
            target = targets[int(value)]
            places[target] = places[target] | (index == value) if target in places else index == value
        picks = [np.flatnonzero(mask) for mask in places.values()]
        for child in split(group, picks, list(places)):
            self.push(self._go(child, block.index, child.pc, alone))
        return None

    def _go(self, group: Group, source: int, target: int, alone: bool) -> Group:
        """Move a group to a block; branching backwards in a loop that may wait for other lanes ages the group.

        Before a group initialises or invalidates a barrier in memory, it becomes the oldest one.
        A group that is alone has no other group to wait for. A debugger must notice that it never ends.
        """
        group.pc = target
        if self._ready and group.code.blocks[source].gives_way:
            group.epoch = 1 + max(other.epoch for groups in self._ready.values() for other in groups)
        if target <= source and (not alone or self.state.stepped or self._others):
            waiting = self.program.loop_waiting(group.code, target, source)
            if waiting:
                group.spins += 1
                group.unchanged += 1
                is_stalled = waiting is Waiting.LOCKS and group.unchanged >= _TURNS_WITHOUT_CHANGE
                if is_stalled or group.spins >= _TURNS[waiting]:
                    group.spins = group.unchanged = 0
                    group.epoch += 1
        return group

    def _exit(self, group: Group) -> None:
        if self.state.observer is not None:
            self.state.observer.exit(group)
        self.live -= group.n
        if self.live:
            lanes = group.lane_numbers
            self.exited[lanes] = True
            self.exited_in_block += np.bincount(self.block_of_lane[lanes], minlength=self.blocks)

    def _endless(self, group: Group, block: Block, what: str) -> Fault:
        site = block.first
        if site is None:
            return Fault("CUDA_ERROR_LAUNCH_TIMEOUT", f"kernel {self.state.launch.entry.name}: {what}")
        return group.fault("CUDA_ERROR_LAUNCH_TIMEOUT", what, site)

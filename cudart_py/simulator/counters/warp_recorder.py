"""The record of one warp: its active lanes at each source line, and the addresses of their memory accesses."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..ptx.compiling.opcode_table.opcodes import form_of
from ..ptx.operations.warp import shuffle_source
from ..ptx.running.memory.addresses import Address, Mixed
from ..ptx.running.observer import Observer
from .banks import assign_wavefronts
from .launch_counters import executed_instructions
from .traits import traits_of

if TYPE_CHECKING:
    from ..ptx.compiling.analysis.control_flow import Block
    from ..ptx.running.groups import Group
    from ..ptx.running.launch import LaunchState
    from ..ptx.syntax.instructions import Instruction

Array = NDArray[Any]
_LANES = 32
# The maximum number of recorded accesses per instruction. The first iterations of a loop represent all of them, and the
# limit bounds the memory for the records of many launches.
_MOST_OF_ONE_SITE = 16
_MOST_STEPS = 1024
_OPERATIONS = {"ld": "load", "st": "store", "atom": "atomic", "red": "atomic"}


class RecordedAccess(NamedTuple):
    """One access: the address that the kernel uses in each lane, -1 for an inactive lane.

    For shared memory, `wavefronts` has the index of the wavefront that serves each 4-byte word of each lane; otherwise
    it is None. `size` is in bytes.
    """

    file: str
    line: int
    operation: str
    space: str
    size: int
    addresses: Array
    wavefronts: Array | None


class RecordedShuffle(NamedTuple):
    """One shuffle: the lane that each lane reads from, -1 for an inactive lane."""

    file: str
    line: int
    sources: Array


class RecordedStep(NamedTuple):
    """Consecutive instructions of one source line, executed by the same lanes."""

    file: str
    line: int
    instructions: int
    lanes: Array


class WarpRecorder(Observer):
    """A recorder of one warp of a launch. The index of the warp is counted over the blocks of the launch.

    Machine code records no addresses, so a launch with a recorder runs in the NumPy engine.
    """

    watch = None

    def __init__(self, warp: int) -> None:
        self.warp = warp
        self.accesses: list[RecordedAccess] = []
        self.shuffles: list[RecordedShuffle] = []
        self.steps: list[RecordedStep] = []
        self.complete = True
        self._places: Any = None
        self._block = self._first = 0
        self._recorded: Counter[int] = Counter()

    def start(self, state: LaunchState) -> None:
        """Find the warp's block."""
        self._places = state.launch.entry.module.places
        self._block, warp = divmod(self.warp, -(-state.threads // _LANES))
        self._first = warp * _LANES

    def block(self, group: Group, block: Block) -> None:
        """Record the lines of a block's instructions."""
        own = self._own(group)
        if own is None:
            return
        present = np.zeros(_LANES, np.bool_)
        present[own[1]] = True
        for (file, line), instructions in groupby(executed_instructions(block), lambda one: (one.file, one.line)):
            self._add_step(RecordedStep(self._file(file), line, len(list(instructions)), present))

    def access(
        self, group: Group, kind: str, address: Address | Mixed, offset: int, size: int, site: Instruction, *_: Any
    ) -> None:
        """Record the lanes' addresses."""
        own = self._own(group)
        if own is None or kind not in _OPERATIONS:
            return
        for positions, part in address.parts:
            self._add_access(group, kind, part, positions, offset, size, site, own)

    def shuffle(self, group: Group, site: Instruction, mode: str, lane: Any, control: Any) -> None:
        """Record the source lane of each lane."""
        own = self._own(group)
        if own is None or not self._wants(site):
            return
        taken, lanes = own
        operands = np.zeros((2, 1, _LANES), np.uint32)
        for row, operand in zip(operands, (lane, control), strict=True):
            row[0, lanes] = np.broadcast_to(operand, group.n)[taken]
        source, _ = shuffle_source(mode, *operands)
        sources = np.full(_LANES, -1)
        # A lane whose source is out of range keeps its own value.
        sources[lanes] = source[0, lanes]
        self.shuffles.append(RecordedShuffle(self._file(site.file), site.line, sources))

    def _own(self, group: Group) -> tuple[slice, Array] | None:
        """Return the positions of the warp's lanes in a group, and their lane numbers; None if none is in the group."""
        chunk = group.chunk
        begin = (self._block - chunk.first) * chunk.threads + self._first
        end = min(begin + _LANES, begin - self._first + chunk.threads)
        numbers = group.lane_numbers
        taken = slice(*np.searchsorted(numbers, (begin, end)))
        return (taken, numbers[taken] - begin) if taken.start < taken.stop else None

    def _add_access(
        self,
        group: Group,
        kind: str,
        address: Address,
        positions: Array | None,
        offset: int,
        size: int,
        site: Instruction,
        own: tuple[slice, Array],
    ) -> None:
        taken, lanes = own
        seen = address.seen + offset
        if positions is None:
            seen = np.broadcast_to(seen, group.n)[taken]
        else:
            inside = (positions >= taken.start) & (positions < taken.stop)
            seen, lanes = np.broadcast_to(seen, len(positions))[inside], lanes[positions[inside] - taken.start]
        if not len(lanes) or not self._wants(site):
            return
        addresses = np.full(_LANES, -1)
        addresses[lanes] = seen
        space = form_of(site).space if address.space.name == "global" else ""
        space = space if space == "const" else address.space.name
        wavefronts = None
        if space == "shared":
            traits = traits_of(group.code, kind, site)
            wavefronts = assign_wavefronts(addresses, addresses >= 0, size, traits.wavefronts)
        self.accesses.append(
            RecordedAccess(self._file(site.file), site.line, _OPERATIONS[kind], space, size, addresses, wavefronts)
        )

    def _add_step(self, step: RecordedStep) -> None:
        last = self.steps[-1] if self.steps else None
        if last and last[:2] == step[:2] and (last.lanes == step.lanes).all():
            self.steps[-1] = last._replace(instructions=last.instructions + step.instructions)
        elif len(self.steps) < _MOST_STEPS:
            self.steps.append(step)
        else:
            self.complete = False

    def _wants(self, site: Instruction) -> bool:
        self._recorded[id(site)] += 1
        if self._recorded[id(site)] > _MOST_OF_ONE_SITE:
            self.complete = False
            return False
        return True

    def _file(self, number: int) -> str:
        name: str = self._places.files.get(number, "")
        return name

"""The lines at which threads have left a kernel."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .moments import site_of
from .symbols.lines import Lines, Place, place_of

if TYPE_CHECKING:
    from ..ptx.running.groups import Group
    from ..ptx.running.scheduler import Chunk
    from ..ptx.syntax.instructions import Instruction
    from .moments import LaneGroup
    from .recorder import Recorder

_NOWHERE = -1


class _Tracks:
    """For each lane of a chunk, the index of the line that it executes, and that of the line before."""

    def __init__(self, chunk: Chunk) -> None:
        lanes = chunk.blocks * chunk.threads
        self.present: NDArray[Any] = np.full(lanes, _NOWHERE, np.int32)
        self.previous: NDArray[Any] = self.present.copy()


class Exits:
    """The last lines of the threads that have exited, as far as they were recorded.

    All threads leave a kernel at its closing brace. So the line is the one before, such as that of a `return`.
    """

    def __init__(self) -> None:
        self._lines: dict[int, dict[Place | None, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._tracks: dict[int, _Tracks] = {}
        self._places: list[Place] = []
        # The index of the line at each place of the program, or _NOWHERE.
        self._indices: dict[tuple[int, ...], int] = {}

    def follow(self, group: Group, running: LaneGroup, recorder: Recorder) -> None:
        """Take note that a group is about to execute an instruction; `running` is its copy."""
        index = self._indices.get(group.path)
        if index is None:
            index = self._indices[group.path] = self._index(group, running, recorder)
        if index == _NOWHERE:
            return
        chunk, lanes = group.chunk, group.lane_numbers
        if chunk.first not in self._tracks:
            self._tracks[chunk.first] = _Tracks(chunk)
        tracks = self._tracks[chunk.first]
        moved = lanes[tracks.present[lanes] != index]
        tracks.previous[moved] = tracks.present[moved]
        tracks.present[moved] = index

    def _index(self, group: Group, running: LaneGroup, recorder: Recorder) -> int:
        site = site_of(group.code.blocks[group.pc])
        place = recorder.source_place(running)
        if site is None or place is None or _is_only_a_jump(site, recorder.lines):
            return _NOWHERE
        if place not in self._places:
            self._places.append(place)
        return self._places.index(place)

    def note(self, group: Group) -> None:
        """Record the lanes of a group that is about to exit."""
        chunk, lanes = group.chunk, group.lane_numbers
        tracks = self._tracks.get(chunk.first)
        if tracks is None:
            return
        for lane, present, previous in zip(lanes, tracks.present[lanes], tracks.previous[lanes], strict=True):
            index = present if previous == _NOWHERE else previous
            place = None if index == _NOWHERE else self._places[index]
            self._lines[chunk.first + lane // chunk.threads][place].append(int(lane % chunk.threads))

    def of(self, block: int) -> dict[Place | None, list[int]]:
        """Return the threads of a block that have exited, by their last lines."""
        return {place: sorted(threads) for place, threads in self._lines.get(block, {}).items()}

    def ended(self, chunk: Chunk) -> None:
        """Forget where the lanes of a chunk are, which have all exited."""
        self._tracks.pop(chunk.first, None)


def _is_only_a_jump(site: Instruction, lines: Lines) -> bool:
    """Return whether an instruction jumps and has the line of the instruction before it in the text.

    The compiler ends the branches of an `if` with such jumps. Threads that skip an inner branch also execute them, so
    they do not show which branch was taken. A `return` is a jump with a line of its own.
    """
    if site.opcode.split(".")[0] != "bra" or site.guard is not None:
        return False
    index = lines.index(site)
    return index > 0 and place_of(lines.body(site).instructions[index - 1]) == place_of(site)

"""The lines at which threads have left a kernel."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from .symbols.lines import Place

if TYPE_CHECKING:
    from ..ptx.running.groups import Group
    from .recorder import Recorder

# The number of earlier instructions that are searched for the line before the end of the kernel.
_SEARCHED = 256


class Exits:
    """The last lines of the threads that have exited, as far as they were recorded.

    All threads leave a kernel at its closing brace. So the line is the one before, such as that of a `return`.
    """

    def __init__(self) -> None:
        self._lines: dict[int, dict[Place | None, list[int]]] = defaultdict(lambda: defaultdict(list))

    def note(self, group: Group, recorder: Recorder) -> None:
        """Record the lanes of a group that is about to exit."""
        chunk, left = group.chunk, set(group.lane_numbers.tolist())
        last = recorder.source_place(recorder.history[-1].running)
        for moment, _ in zip(reversed(recorder.history), range(_SEARCHED), strict=False):
            place = None if moment.chunk is not chunk else recorder.source_place(moment.running)
            if place is None or place == last or moment.running is None:
                continue
            found = left.intersection(moment.running.lanes.tolist())
            left -= found
            for lane in found:
                self._add(chunk.first + lane // chunk.threads, place, lane % chunk.threads)
            if not left:
                return
        for lane in left:
            self._add(chunk.first + lane // chunk.threads, last, lane % chunk.threads)

    def _add(self, block: int, place: Place | None, thread: int) -> None:
        self._lines[block][place].append(thread)

    def of(self, block: int) -> dict[Place | None, list[int]]:
        """Return the threads of a block that have exited, by their last lines."""
        return {place: sorted(threads) for place, threads in self._lines.get(block, {}).items()}

    def clear(self) -> None:
        """Forget the threads, because the launch runs again."""
        self._lines.clear()

"""Find a kernel's loops, and the loops in which lanes may wait for other lanes."""

from __future__ import annotations

from ...compiling.analysis.control_flow import Block
from ...compiling.analysis.wait_loops import Waiting
from ...compiling.opcode_table.opcodes import form_of
from ..instances import Layout

# The number of iterations of a loop before other lanes get a turn: few in loops that clearly wait for others, many in
# loops that may do so because they contain atomics or fences. A loop that only waits at barriers in memory ends at once
# or after other lanes have had a turn.
_WAIT_TURNS = 1
_SPIN_TURNS = 16
_LOOP_TURNS = 4096


class Loops:
    """The loops of a kernel: for each backward branch, the numbers of its block and of its target."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._turns = [_turns(place.block) for place in layout.places]
        self.edges: list[tuple[int, int]] = []
        for number, place in enumerate(layout.places):
            if place.block.terminator.kind in ("next", "branch", "switch"):
                targets = [place.instance.numbers[target] for target in place.block.terminator.targets]
                self.edges += [(number, target) for target in targets if target <= number]

    def turns(self, number: int, target: int) -> int:
        """Return how many times lanes may branch back from a block to another before other lanes get a turn.

        The result is 0 (no limit) if the loop doesn't wait for other lanes.
        """
        return min(filter(None, self._turns[target : number + 1]), default=0)

    def waiting(self) -> list[int]:
        """Return the first blocks of loops that may wait for other lanes."""
        return sorted({target for number, target in self.edges if self.turns(number, target)})

    def only_waits(self, number: int) -> bool:
        """Return whether the loops that begin with a block, if they wait for other lanes, wait only at barriers."""
        return self._layout.places[number].block.waits

    def load(self) -> bool:
        """Return whether a loop loads from memory that other lanes may store to, even if it isn't known to wait."""
        return any(
            form.row.access in ("ld", "tex") and form.space not in ("param", "const")
            for number, target in self.edges
            for place in self._layout.places[target : number + 1]
            for form in map(form_of, place.block.instructions)
        )


def _turns(block: Block) -> int:
    """Return how many iterations a loop around a block may have before other lanes get a turn; 0 means no limit."""
    if block.waits:
        return _WAIT_TURNS
    return {Waiting.POLLS: _SPIN_TURNS, Waiting.LOCKS: _LOOP_TURNS, Waiting.ATOMICS: _LOOP_TURNS}.get(block.waiting, 0)

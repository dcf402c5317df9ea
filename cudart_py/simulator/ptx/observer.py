"""Let counters and checks watch a launch.

An observer is told of every block of instructions, memory access, branch and barrier. Blocks are compiled in a
second form for it, so a launch without one pays nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .control_flow import Block
    from .groups import Group
    from .instructions import Instruction
    from .scheduler import Chunk

__all__ = ["Observer"]


class Observer:
    """Watch a launch; `group.lane_numbers` tells which lanes of which chunk take part in an event.

    A class that inherits from this one need only have the methods for what it wants to see.
    """

    def start(self, launched: Any) -> None:
        """Begin: the launch's shape, module and program are at hand."""

    def block(self, group: Group, block: Block) -> None:
        """See a group about to execute a block's instructions together."""

    def executed(self, group: Group, block: Block) -> None:
        """See that a group has executed a block's instructions, but for what ends the block."""

    def unwritten(self, group: Group, slot: int) -> None:
        """See a group about to read a register that none of its lanes has written."""

    def deserted(self, group: Group, block: Block, position: int) -> None:
        """See a group go on though the member mask of the lane at `position` names lanes that will never come."""

    def access(
        self, group: Group, kind: str, address: Any, offset: int, size: int, site: Instruction, values: tuple[Any, ...]
    ) -> None:
        """See an access (`kind` is ld, st, atom, red or mbarrier) of `size` bytes, `offset` behind an Address or Mixed.

        `values` are what a store is about to store, element by element, and empty for everything else.
        """

    def fence(self, group: Group, site: Instruction) -> None:
        """See a group execute a fence."""

    def copies(self, group: Group, site: Instruction, event: str, allowed: int) -> None:
        """See what `cp.async` is told beside copying (`event` is commit, wait or wait_all).

        A wait is for all groups of copies but the last `allowed` ones.
        """

    def shuffle(self, group: Group, site: Instruction, mode: str, lane: Any, control: Any) -> None:
        """See a group about to exchange values (`mode` is up, down, bfly or idx), with the operands b and c."""

    def branch(self, group: Group, site: Instruction | None, taken: Any) -> None:
        """See a conditional branch: `taken` is a scalar, or an array over the group's lanes."""

    def barrier(self, group: Group, site: Instruction, event: str) -> None:
        """See a group arrive at a barrier or leave one (`event` is arrive or release)."""

    def exit(self, group: Group) -> None:
        """See lanes end."""

    def ended(self, chunk: Chunk) -> None:
        """See that all lanes of a chunk have ended."""

    def finish(self, launched: Any) -> None:
        """End: all blocks have run."""

"""Let counters and checks watch a launch.

An observer is told of every block of instructions, memory access, branch and barrier. Blocks are compiled in a
second form for it, so a launch without one pays nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .control_flow import Block
    from .groups import Group
    from .instructions import Instruction

__all__ = ["Observer"]


class Observer(Protocol):
    """Watch a launch; `group.lane_numbers` tells which lanes of which chunk take part in an event."""

    def start(self, launched: Any) -> None:
        """Begin: the launch's shape, module and program are at hand."""

    def block(self, group: Group, block: Block) -> None:
        """See a group about to execute a block's instructions together."""

    def access(self, group: Group, kind: str, address: Any, offset: int, size: int, site: Instruction) -> None:
        """See an access (`kind` is ld, st, atom or red) of `size` bytes, `offset` behind an Address or Mixed."""

    def branch(self, group: Group, site: Instruction | None, taken: Any) -> None:
        """See a conditional branch: `taken` is a scalar, or an array over the group's lanes."""

    def barrier(self, group: Group, site: Instruction, event: str) -> None:
        """See a group arrive at a barrier or leave one (`event` is arrive or release)."""

    def exit(self, group: Group) -> None:
        """See lanes end."""

    def finish(self, launched: Any) -> None:
        """End: all blocks have run."""

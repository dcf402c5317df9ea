"""Graph memory: the bytes of a device that graphs have used at their launches, which a device keeps until a trim."""

from __future__ import annotations

import weakref
from typing import Protocol

# An H200's driver takes memory for graphs in units of this size.
_UNIT = 32 << 20


class Block(Protocol):
    """The bytes of one allocation of a graph."""

    size: int

    @property
    def in_use(self) -> bool:
        """Whether a launch still needs the bytes, or has left them allocated."""


class GraphMemory:
    """The blocks that launches have used on one device, and the largest sizes of all blocks in bytes so far.

    Memory that is reserved for graphs counts as used, as on an H200. The two largest sizes can be reset one by one.
    """

    def __init__(self) -> None:
        self._blocks: weakref.WeakSet[Block] = weakref.WeakSet()
        self.used_high = self.reserved_high = 0

    @property
    def size(self) -> int:
        """The size of all blocks in bytes, in whole units."""
        return -(-sum(block.size for block in self._blocks) // _UNIT) * _UNIT

    def use(self, block: Block) -> None:
        """Count a block that a launch uses."""
        self._blocks.add(block)
        self.used_high, self.reserved_high = max(self.used_high, self.size), max(self.reserved_high, self.size)

    def trim(self) -> None:
        """Stop counting the blocks that are not in use."""
        for block in list(self._blocks):
            if not block.in_use:
                self._blocks.discard(block)

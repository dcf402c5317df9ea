"""Reachability in the control-flow graph of a function."""

from __future__ import annotations

from .control_flow import Code


def reachable(code: Code) -> dict[int, frozenset[int]]:
    """Return, for each block of a function, the blocks that are reachable from its successors."""
    known = {}
    for block in code.blocks:
        found: set[int] = set()
        waiting = list(block.terminator.targets)
        while waiting:
            index = waiting.pop()
            if index not in found:
                found.add(index)
                waiting.extend(code.blocks[index].terminator.targets)
        known[block.index] = frozenset(found)
    return known

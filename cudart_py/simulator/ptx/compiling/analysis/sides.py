"""Find instructions with a member mask on several sides of a branch; diverged lanes may converge at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .control_flow import Block, Code
from .reachability import blocks_from


def has_meetings(code: Code, callees: Callable[[Block], Iterable[Code]]) -> bool:
    """Return whether both sides of a branch contain an instruction with the same qualifiers and a member mask.

    Such instructions are often copies of one instruction, made by the compiler. Lanes that diverge at the branch
    execute them together. `callees` returns the functions that a block may call.
    """
    return _Sides(callees).meet(code)


class _Sides:
    def __init__(self, callees: Callable[[Block], Iterable[Code]]) -> None:
        self._callees = callees
        self._of_code: dict[str, frozenset[str]] = {}

    def meet(self, code: Code) -> bool:
        """Return whether a branch of this function, not of a callee, has matching instructions on two sides."""
        names = [self._names(block) for block in code.blocks]
        several = {name for name in set().union(*names) if sum(name in found for found in names) > 1}
        if not several:
            return False
        after = _post_dominators(code)
        for block in code.blocks:
            targets = set(block.terminator.targets)
            if len(targets) < 2:
                continue
            end = after[block.index] | 1 << block.index
            sides = [blocks_from(code, [target], end) for target in targets]
            for side in sides:
                here = side.difference(*(other for other in sides if other is not side))
                elsewhere = set().union(*(other - side for other in sides if other is not side))
                if several & _all(names, here) & _all(names, elsewhere):
                    return True
        return False

    def _names(self, block: Block) -> frozenset[str]:
        """Return the qualifiers of the instructions with a member mask in a block and in functions that it calls."""
        own = frozenset([block.meets] if block.meets else [])
        if block.terminator.kind != "call":
            return own
        for code in self._callees(block):
            if code.name not in self._of_code:
                self._of_code[code.name] = frozenset()  # otherwise, a recursive function would recurse here forever
                self._of_code[code.name] = frozenset().union(*map(self._names, code.blocks))
            own |= self._of_code[code.name]
        return own


def _all(names: list[frozenset[str]], blocks: Iterable[int]) -> set[str]:
    return set().union(*(names[index] for index in blocks))


def _post_dominators(code: Code) -> list[int]:
    """Return the post-dominators of each block, including the block itself, as bit sets."""
    everything = (1 << len(code.blocks)) - 1
    found = [everything] * len(code.blocks)
    changed = True
    while changed:
        changed = False
        for block in reversed(code.blocks):
            common = everything
            for target in block.terminator.targets:
                common &= found[target]
            new = (common if block.terminator.targets else 0) | 1 << block.index
            if new != found[block.index]:
                found[block.index] = new
                changed = True
    return found

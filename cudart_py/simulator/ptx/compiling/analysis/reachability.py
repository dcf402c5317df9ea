"""Reachability in the control-flow graph of a function, and in the call stacks of a kernel.

Diverged lanes may converge at instructions with a member mask on several sides of a branch, which are also found here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from ..opcode_table.opcodes import form_of
from .control_flow import Block, Code

# A basic block in its call stack: the blocks of the calls, outermost first, and the block, each with its function.
Stack: TypeAlias = Sequence[tuple[Code, int]]
Reach: TypeAlias = dict[int, frozenset[int]]


def reachable(code: Code) -> Reach:
    """Return, for each block of a function, the blocks that are reachable from its successors."""
    return {block.index: frozenset(blocks_from(code, block.terminator.targets)) for block in code.blocks}


def blocks_from(code: Code, starts: Iterable[int], end: int = 0) -> set[int]:
    """Return the blocks that are reachable from `starts`, themselves too, but not through the blocks of the set `end`.

    The set has one bit per block.
    """
    found: set[int] = set()
    waiting = list(starts)
    while waiting:
        index = waiting.pop()
        if index not in found and not end >> index & 1:
            found.add(index)
            waiting.extend(code.blocks[index].terminator.targets)
    return found


def lies_past(block: Block, here: Stack, barrier: Stack, reach_of: Callable[[Code], Reach]) -> bool:
    """Return whether a block comes after a barrier from which it is reachable, and never leads to that barrier again.

    `here` is the stack of `block`. Each call of a function has its own barriers. The first function in which the two
    stacks differ decides, unless a call that they have in common is in a loop. A thread that has returned from a
    function before its barrier may be about to exit, which is allowed, so it must also access memory.
    """
    if not (_accesses(block) if len(barrier) > 1 else block.instructions):
        return False
    for (code, index), (other, at) in zip(here, barrier, strict=False):
        if code is not other:
            return False
        reach = reach_of(code)
        if index != at:
            return index in reach[at] and at not in reach[index]
        if at in reach[at]:
            return False
    return False


def comes_after_all(here: Stack) -> bool:
    """Return whether a block comes after all blocks that lead to it, so that it is in no loop; also its callers."""
    for code, index in here:
        reach = reachable(code)
        if any(other >= index for other, reached in reach.items() if index in reached):
            return False
    return True


def bypasses(here: Stack, barrier: Stack) -> bool:
    """Return whether a thread may reach a block without having gone past a barrier in the same call of a function."""
    depth, (code, at) = len(barrier) - 1, barrier[-1]
    calls = [index for _, index in here]
    if calls[:depth] != [index for _, index in barrier[:depth]] or len(here) <= depth or at in reachable(code)[at]:
        return True
    return calls[depth] in blocks_from(code, [0], 1 << at)


def leads_before(first: Stack, second: Stack) -> bool:
    """Return whether a block and all blocks that lead to it come before another block, in the function that decides."""
    for (code, index), (_, other) in zip(first, second, strict=False):
        if index != other:
            reach = reachable(code)
            return index < other and all(one < other for one, reached in reach.items() if index in reached)
    return False


def _accesses(block: Block) -> bool:
    """Return whether a block accesses memory that other threads can access."""
    return any(form.row.access and form.space not in ("param", "local") for form in map(form_of, block.instructions))


class Meetings:
    """Instructions with the same qualifiers and a member mask on several sides of a branch.

    Such instructions are often copies of one instruction, made by the compiler. Lanes that diverge at the branch
    execute them together. `callees` returns the functions that a block may call.
    """

    def __init__(self, callees: Callable[[Block], Iterable[Code]]) -> None:
        self._callees = callees
        self._of_code: dict[str, frozenset[str]] = {}

    def exist_in(self, code: Code) -> bool:
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

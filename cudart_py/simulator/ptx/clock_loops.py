"""Find the loops that only wait for a clock, in which time may leap."""

from __future__ import annotations

import re

from .control_flow import Block, Code
from .instructions import Instruction, Symbol
from .special_names import is_clock

__all__ = ["clock_loop"]

# A loop that does one of these does more than wait, or waits for more; parameters and constants don't change.
_MORE = re.compile(r"(ld|st|atom|red|call|cp|mbarrier|tex|wmma|shfl|vote|match)\b(?!\.(param|const))")


def clock_loop(code: Code, index: int) -> int:
    """Give the block at which the innermost loop around a block begins if it only waits for a clock, else -1."""
    if code.clock_loops is None:
        code.clock_loops = _clock_loops(code)
    return code.clock_loops[index]


def _clock_loops(code: Code) -> list[int]:
    found = [-1] * len(code.blocks)
    loops = [(target, block.index) for block in code.blocks for target in block.terminator.targets]
    # The longest first, so that the innermost one stays.
    for first, last in sorted(loops, key=lambda loop: loop[0] - loop[1]):
        if first <= last:
            waits = _waits_for_clock(code, code.blocks[first : last + 1])
            found[first : last + 1] = [first if waits else -1] * (last + 1 - first)
    return found


def _waits_for_clock(code: Code, loop: list[Block]) -> bool:
    """Tell whether what a clock says ends a loop that does nothing to memory and doesn't look at any."""
    if any(block.terminator.kind not in ("next", "branch") for block in loop):
        return False
    instructions = [instruction for block in loop for instruction in block.instructions]
    if any(_MORE.match(instruction.opcode) for instruction in instructions):
        return False
    told: set[int] = set()
    before = -1
    while before != len(told):
        before = len(told)
        for instruction in instructions:
            reads, writes = code.touched(instruction)
            if _looks(instruction) or not told.isdisjoint(reads):
                told.update(writes)
    inside = {block.index for block in loop}
    return any(block.terminator.condition in told and not inside.issuperset(block.terminator.targets) for block in loop)


def _looks(instruction: Instruction) -> bool:
    return any(isinstance(operand, Symbol) and is_clock(operand.name) for operand in instruction.operands)

"""Find the loops that may wait for other lanes, and those that only wait for a clock or at barriers in memory.

Simulated time may jump ahead in a loop that only waits for a clock.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from ...syntax.instructions import Function, Immediate, Instruction, Symbol
from ...syntax.special_names import is_clock
from ..opcode_table.opcodes import form_of

if TYPE_CHECKING:
    from .control_flow import Block, Code


class Waiting(IntEnum):
    """The likelihood that a loop around a block waits for other lanes, the lowest first."""

    NEVER = 0  # it reads nothing that other lanes can change
    LOADS = 1  # it reads memory, calls a function or has a barrier
    ATOMICS = 2  # it has an atomic or a fence
    LOCKS = 3  # it has a compare-and-swap or an exchange, as every loop that takes a lock has
    POLLS = 4  # it has an instruction that may show the progress of other lanes (`Row.spins`), or an atomic that reads


def waiting_of(block: Block) -> Waiting:
    """Return how probably a loop around a block waits for other lanes."""
    found = max(map(_waiting, block.instructions), default=Waiting.NEVER)
    return max(found, Waiting.LOADS) if block.terminator.kind in ("call", "barrier") else found


def waiting_in(body: Function) -> Waiting:
    """Return how probably a loop that calls a function waits for other lanes, by the function's own code."""
    return max(map(_waiting, body.instructions), default=Waiting.NEVER)


def _waiting(instruction: Instruction) -> Waiting:
    form = form_of(instruction)
    row = form.row
    if row.spins or _only_reads(instruction):
        return Waiting.POLLS
    if row.access == "atom" and form.operation in ("cas", "exch"):
        return Waiting.LOCKS
    if row.access == "atom" or row.name in ("membar", "fence"):
        return Waiting.ATOMICS
    reads = row.access not in ("", "st") and form.space not in ("param", "const")
    return Waiting.LOADS if reads or row.ends else Waiting.NEVER


def _only_reads(instruction: Instruction) -> bool:
    """Return whether an instruction is an atomic that changes nothing, such as adding 0, which kernels use to poll."""
    form = form_of(instruction)
    if form.row.access != "atom" or form.operation not in ("add", "or", "xor"):
        return False
    operand = instruction.operands[2]
    return isinstance(operand, Immediate) and operand.value == 0


def find_clock_loops(code: Code) -> list[int]:
    """Return, for each block, the first block of its innermost loop if that loop only waits for a clock, else -1."""
    found = [-1] * len(code.blocks)
    loops = [(target, block.index) for block in code.blocks for target in block.terminator.targets]
    # The longest loops come first, so the entries of the innermost loop are written last.
    for first, last in sorted(loops, key=lambda loop: loop[0] - loop[1]):
        if first <= last:
            waits = _waits_for_clock(code, code.blocks[first : last + 1])
            found[first : last + 1] = [first if waits else -1] * (last + 1 - first)
    return found


def find_barrier_loops(code: Code) -> list[bool]:
    """Return, for each block, whether it is in a loop that only tests barriers in memory for a complete phase.

    Such a loop may read clocks, too: the wait loops in CUDA 13.0's headers sleep for longer and longer, and others have
    a timeout.
    """
    found = [False] * len(code.blocks)
    for block in code.blocks:
        for first in block.terminator.targets:
            loop = code.blocks[first : block.index + 1]
            if _waits_at_barriers(loop):
                found[first : block.index + 1] = [True] * len(loop)
    return found


def _waits_at_barriers(loop: list[Block]) -> bool:
    instructions = [instruction for block in loop for instruction in block.instructions]
    others = [one for one in instructions if (form := form_of(one)).row.access != "mbarrier" or not form.row.spins]
    return (
        len(others) < len(instructions)
        and all(block.terminator.kind in ("next", "branch") for block in loop)
        and not any(_does_more(instruction) for instruction in others)
    )


def _waits_for_clock(code: Code, loop: list[Block]) -> bool:
    """Return whether a loop's end depends on a clock, and the loop accesses no memory that can change."""
    if any(block.terminator.kind not in ("next", "branch") for block in loop):
        return False
    instructions = [instruction for block in loop for instruction in block.instructions]
    if any(_does_more(instruction) for instruction in instructions):
        return False
    told: set[int] = set()
    before = -1
    while before != len(told):
        before = len(told)
        for instruction in instructions:
            reads, writes = code.touched(instruction)
            if reads_clock(instruction) or not told.isdisjoint(reads):
                told.update(writes)
    inside = {block.index for block in loop}
    return any(block.terminator.condition in told and not inside.issuperset(block.terminator.targets) for block in loop)


def reads_clock(instruction: Instruction) -> bool:
    """Return whether an operand of an instruction is a clock or timer."""
    return any(isinstance(operand, Symbol) and is_clock(operand.name) for operand in instruction.operands)


def _does_more(instruction: Instruction) -> bool:
    """Return whether an instruction does more than wait, or may wait for something other than a clock.

    Loads of parameters and constants don't count, because these don't change. Neither do instructions that only
    synchronise lanes and have no result.
    """
    form = form_of(instruction)
    if form.row.access in ("ld", "st"):
        return form.space not in ("param", "const")
    return bool(form.row.access or form.row.ends or (form.row.converges and form.writes_first))

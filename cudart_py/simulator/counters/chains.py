"""The longest chains of dependent instructions, which bound how fast a single warp executes a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple
from weakref import WeakKeyDictionary

from ..ptx.compiling.opcode_table.opcodes import form_of
from ..ptx.syntax.instructions import Access
from .machine_code import machine_code

if TYPE_CHECKING:
    from ..ptx.compiling.analysis.control_flow import Block, Code
    from ..ptx.syntax.instructions import Instruction

# The reasons of Nsight Compute for which a warp waits for the result of an instruction: "wait" is the fixed latency of
# arithmetic, "short" that of shared memory, shuffles, special functions and barriers (short scoreboard), and "long"
# that of global and local memory and of textures (long scoreboard).
Wait = Literal["wait", "short", "long"]
# Approximate latencies in cycles, which decide which chain is the longest.
_CYCLES: dict[Wait, int] = {"wait": 4, "short": 24, "long": 400}


class Step(NamedTuple):
    """An instruction of a chain, and how often a warp waits for its results, by reason."""

    instruction: Instruction
    waits: tuple[tuple[Wait, int], ...]


class _Chain(NamedTuple):
    """The chain that ends with a step; `cycles` is its length."""

    cycles: int
    last: Step | None = None
    before: _Chain | None = None


_known: WeakKeyDictionary[Code, dict[int, list[Step]]] = WeakKeyDictionary()


def longest_chains(code: Code) -> dict[int, list[Step]]:
    """Return the steps of the longest chain in each run of instructions, keyed by the index of the run's first block.

    A run is a basic block of machine code, in which guarded instructions are predicated. Its instructions depend on
    each other through registers. The assembler is free to reorder the others, for example to have several loads in
    flight.
    """
    chains = _known.get(code)
    if chains is None:
        chains = _known[code] = {run[0].index: _steps(_longest(code, run)) for run in _runs(code)}
    return chains


def _runs(code: Code) -> list[list[Block]]:
    """Return the blocks of each run, which begins where control flow may enter from elsewhere."""
    starts = {0}
    for block in code.blocks:
        terminator = block.terminator
        if terminator.kind != "next" and not _is_predication(block):
            starts |= {block.index + 1, *terminator.targets}
    edges = sorted(start for start in starts if start < len(code.blocks))
    return [code.blocks[start:end] for start, end in pairwise([*edges, len(code.blocks)])]


def _is_predication(block: Block) -> bool:
    """Return whether a block ends with a branch around a guarded instruction."""
    instruction = block.terminator.instruction
    return block.terminator.kind == "branch" and instruction is not None and not form_of(instruction).row.ends


def _longest(code: Code, run: Sequence[Block]) -> _Chain:
    longest = start = _Chain(0)
    chains: dict[int, _Chain] = {}
    guards: list[int] = []
    for block in run:
        last = block.terminator.instruction
        if _is_predication(block):
            # The guarded instruction is the next block.
            guards = [block.terminator.condition]
            continue
        for instruction in [*block.instructions, *([] if last is None else [last])]:
            reads, writes = code.touched(instruction)
            before = max((chains.get(slot, start) for slot in reads + guards), key=_length, default=start)
            waits = _waits(code, instruction)
            cycles = sum(_CYCLES[reason] * count for reason, count in waits)
            chain = _Chain(before.cycles + cycles, Step(instruction, waits), before) if waits else before
            chains |= dict.fromkeys(writes, chain)
            longest = max(longest, chain, key=_length)
            guards = []
    return longest


def _length(chain: _Chain) -> int:
    return chain.cycles


def _steps(chain: _Chain) -> list[Step]:
    steps = []
    while chain.last is not None and chain.before is not None:
        steps.append(chain.last)
        chain = chain.before
    return steps


def _waits(code: Code, instruction: Instruction) -> tuple[tuple[Wait, int], ...]:
    form = form_of(instruction)
    row = form.row
    if row.ends == "barrier" or row.converges == "members":
        return (("short", 1),)
    if row.access in ("tex", "surf"):
        return (("long", 1),)
    if row.access in ("ld", "atom"):
        return ((_of_space(code, instruction, form.space), 1),)
    # Stores have no results, and the assembler removes copies of registers.
    if row.access or row.flow == "copy":
        return ()
    made = machine_code(form)
    fixed = max(made.issued - made.special, 1 if not made.special else 0)
    return (*((("short", 1),) if made.special else ()), *((("wait", fixed),) if fixed else ()))


def _of_space(code: Code, instruction: Instruction, space: str) -> Wait:
    if space in ("param", "const"):
        return "wait"
    access = next((operand for operand in instruction.operands if isinstance(operand, Access)), None)
    if space == "shared" or (access is not None and code.space_of(access, space, ()) == "shared"):
        return "short"
    return "long"

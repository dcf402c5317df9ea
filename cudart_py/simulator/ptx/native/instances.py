"""Lay out a kernel and the functions that it calls as one list of basic blocks.

Calls are inlined: each call is followed by its own copy of the function's blocks, with its own registers. The list is
therefore in the order of the NumPy engine's paths (return addresses and program counter), by which its scheduler
chooses the lowest block.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

from ..compiling.control_flow import Block, Code
from ..compiling.program import Program
from ..compiling.sides import has_meetings
from ..syntax.instructions import Call, Instruction, Symbol
from .errors import UnsupportedInstruction
from .layout import Head
from .vectors import I1, I32, Builder, vector

Value = Any

# LLVM takes about 10 milliseconds per block and 1 millisecond per instruction, and can't be interrupted while it
# compiles.
_MOST_BLOCKS = 1_000
_MOST_INSTRUCTIONS = 10_000
# Laying out the code recurses once in Python per level of calls.
_MOST_NESTED_CALLS = 100
_FRAME_BYTES = 16
_SIZES = {"pred": 4, "f32": 128, "f64": 256, "b8": 32, "b16": 64, "b32": 128, "b64": 256, "b128": 512}


class Instance:
    """One copy of a function's code, the offsets of its registers in a warp's state, and the offset of its stack frame.

    `calls` are the call instructions that lead to it, innermost first.
    """

    def __init__(self, code: Code, stack: int, caller: Instance | None, call: Block | None) -> None:
        self.code = code
        self.stack = stack
        self.caller = caller
        self.call = call
        self.registers: dict[int, int] = {}
        # Each block's index in the list of basic blocks, and the callee's instance for each block that ends in a call.
        self.numbers: list[int] = []
        self.callees: dict[int, Instance] = {}

    @property
    def calls(self) -> list[Instruction]:
        """Return the call instructions that lead to this copy, innermost first."""
        found = []
        instance = self
        while instance.caller is not None:
            assert instance.call is not None
            assert instance.call.terminator.instruction is not None
            found.append(instance.call.terminator.instruction)
            instance = instance.caller
        return found

    def load(self, b: Builder, state: Value, slot: int, element: ir.Type) -> Value:
        """Return a register's value."""
        place = b.at(state, self.registers[slot])
        if element == I1:
            return b.truth(b.load(place, typ=I32))
        return b.load(place, typ=vector(element), align=32)

    def store(self, b: Builder, state: Value, slot: int, value: Value) -> None:
        """Store a register's value."""
        place = b.at(state, self.registers[slot])
        if value.type.element == I1:
            b.store(b.bits(value), place)
        else:
            b.store(value, place, align=32)


@dataclass
class Place:
    """A basic block in the list. `live` are the registers that are live on entry, including the callers' registers."""

    instance: Instance
    block: Block
    live: set[tuple[int, int]]


@dataclass
class Layout:
    """The list of basic blocks, the number of their instructions, and the offsets and size of a warp's state."""

    places: list[Place]
    instances: list[Instance]
    instructions: int = 0
    ready_at: int = 0
    registers_at: int = 0
    barriers: list[Any] = field(default_factory=list)
    bytes: int = 0

    @property
    def ready_words(self) -> int:
        """Return the number of 64-bit words in the bitmap of the blocks that have lanes ready to run."""
        return -(-len(self.places) // 64)


def lay_out(program: Program, local_size: int) -> Layout:
    """Return the layout of a kernel and of all functions that it calls."""
    layout = Layout([], [])
    _add(program, layout, Instance(program.main, 0, None, None), frozenset(), local_size)
    for code in {instance.code.name: instance.code for instance in layout.instances}.values():
        if has_meetings(code, lambda block: called(program, block)):
            raise UnsupportedInstruction("copies of an instruction with a member mask on both sides of a branch")
    layout.ready_at = 4 * Head.WORDS + 4 * 4 * len(layout.places)
    layout.registers_at = -(-(layout.ready_at + 8 * layout.ready_words) // 64) * 64
    end = layout.registers_at
    for instance in layout.instances:
        # Placing the largest registers first wastes the least space on alignment.
        sizes = [_SIZES[kind] for kind in instance.code.types]
        for slot in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
            size = sizes[slot]
            end = -(-end // min(size, 64)) * min(size, 64)
            instance.registers[slot] = end
            end += size
    layout.bytes = -(-end // 64) * 64
    return layout


def _add(program: Program, layout: Layout, instance: Instance, active: frozenset[str], local_size: int) -> None:
    code = instance.code
    if code.name in active:
        raise UnsupportedInstruction("a function that calls itself")
    if len(active) > _MOST_NESTED_CALLS:
        raise UnsupportedInstruction(f"calls that are nested more than {_MOST_NESTED_CALLS} deep")
    index = len(layout.instances)
    layout.instances.append(instance)
    around = _live_in_callers(layout, instance)
    for block in code.blocks:
        instance.numbers.append(len(layout.places))
        layout.places.append(Place(instance, block, around | {(index, slot) for slot in block.live_slots}))
        layout.instructions += len(block.instructions) + 1
        if len(layout.places) > _MOST_BLOCKS:
            raise UnsupportedInstruction(f"more than {_MOST_BLOCKS} basic blocks")
        if layout.instructions > _MOST_INSTRUCTIONS:
            raise UnsupportedInstruction(f"more than {_MOST_INSTRUCTIONS} instructions")
        if block.terminator.kind == "call":
            callee = called(program, block)
            stack = instance.stack + -(-code.local_bytes // 16) * 16 + (_FRAME_BYTES if instance.caller else 0)
            if stack + callee.local_bytes > local_size:
                raise UnsupportedInstruction("a stack that overflows")
            inner = Instance(callee, stack, instance, block)
            _add(program, layout, inner, active | {code.name}, local_size)
            instance.callees[block.index] = inner


def _live_in_callers(layout: Layout, instance: Instance) -> set[tuple[int, int]]:
    """Return the callers' registers that are live after their calls return."""
    found: set[tuple[int, int]] = set()
    while instance.caller is not None:
        caller, call = instance.caller, instance.call
        assert call is not None
        index = layout.instances.index(caller)
        resume = call.terminator.targets[0]
        found |= {(index, slot) for slot in caller.code.blocks[resume].live_slots}
        instance = caller
    return found


def called(program: Program, block: Block) -> Code:
    """Return the code of the function that a block's terminator calls."""
    instruction = block.terminator.instruction
    assert instruction is not None
    call = instruction.operands[0]
    assert isinstance(call, Call)
    if not isinstance(call.target, Symbol):
        raise UnsupportedInstruction("a call through a pointer")
    code = program.code(call.target.name)
    if code is None:
        raise UnsupportedInstruction(f"function {call.target.name}, which has no body")
    return code


# The lane masks of each basic block in a warp's state: the lanes that wait, are held, stand aside, and are parked at a
# barrier (see `layout`).
WAITING, HELD, ASIDE, PARKED = range(4)


def word_of(layout: Layout, kind: int, number: int) -> int:
    """Return the offset, in bytes, of a basic block's lane mask of one kind in a warp's state."""
    return 4 * Head.WORDS + 4 * (kind * len(layout.places) + number)

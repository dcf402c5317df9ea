"""Compile a basic block to a Python function made of NumPy calls.

A block is compiled once for each set of inputs that are scalars. The function takes a group, its registers, and a list
of the block's inputs, which it empties. It leaves the live values in the registers, and returns the condition or the
index on which the block's terminator depends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..syntax.instructions import Instruction
from .analysis.control_flow import Block, Code, Terminator
from .opcode_table.opcodes import form_of
from .writer import Environment, Writer

BlockFunction = Callable[[Any, list[Any], list[Any]], Any]


def compile_block(code: Code, block: Block, uniform: tuple[bool, ...], environment: Environment) -> BlockFunction:
    """Compile one variant of a block.

    `uniform` says which of the block's inputs are scalars. Raise UnsupportedError for an instruction that isn't
    simulated; the error names the instruction.
    """
    writer = Writer(code, block, dict(zip(block.input_slots, uniform, strict=True)), environment)
    keep = block.live_out | exit_slots(code, block)
    if block.input_slots:
        # Nothing else may keep the arrays of registers alive that are dead after the block.
        writer.emit(f"{''.join(f'v{slot}, ' for slot in block.input_slots)}= I")
        writer.emit("I.clear()")
    for slot in block.input_slots:
        if not keep >> slot & 1:
            writer.emit(f"R[{slot}] = None")
    last = _last_uses(code, block)
    for number, instruction in enumerate(block.instructions):
        writer.instruction = instruction
        form = form_of(instruction)
        # An instruction that only ends a block is its terminator.
        assert form.row.emit is not None
        form.row.emit(writer, instruction, form)
        for slot in last.get(number, ()):
            if not keep >> slot & 1:
                writer.drop(slot)
    written = set()
    for instruction in block.instructions:
        written.update(code.touched(instruction)[1])
    for slot in sorted(written):
        if keep >> slot & 1:
            writer.emit(f"R[{slot}] = v{slot}")
    terminator = block.terminator
    if terminator.condition >= 0:
        name = f"v{terminator.condition}"
        writer.emit(f"return {'~' if terminator.negated else ''}{name}")
    function: BlockFunction = writer.compile("block", "g, R, I", f"<ptx {code.name} block {block.index}>")
    return function


def compile_instruction(code: Code, instruction: Instruction, environment: Environment) -> BlockFunction:
    """Return the function of a single instruction, for inputs that are arrays."""
    key = (id(instruction), environment)
    if key not in code.variants:
        reads, writes = exchanged_slots(code, instruction)
        kept = sum(1 << slot for slot in writes)
        block = Block(0, [instruction], Terminator("next"), live_out=kept, input_slots=reads)
        code.variants[key] = compile_block(code, block, (False,) * len(reads), environment)
    function: BlockFunction = code.variants[key]
    return function


def exchanged_slots(code: Code, instruction: Instruction) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the slots that an instruction reads and those that it writes, each once."""
    reads, writes = code.touched(instruction)
    return tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes))


def exit_slots(code: Code, block: Block) -> int:
    """Return the slots that the scheduler reads at a block's end, as a bit set."""
    terminator = block.terminator
    bits = 0
    if terminator.kind == "return":
        bits = code.returned
    elif terminator.kind in ("call", "barrier"):
        for slot in code.touched(terminator.ending)[0]:
            bits |= 1 << slot
    return bits


def _last_uses(code: Code, block: Block) -> dict[int, list[int]]:
    """Return the slots that each instruction is the last in the block to touch, keyed by the instruction's index."""
    final: dict[int, int] = {}
    for number, instruction in enumerate(block.instructions):
        for slots in code.touched(instruction):
            for slot in slots:
                final[slot] = number
    if block.terminator.condition >= 0:
        final.pop(block.terminator.condition, None)
    last: dict[int, list[int]] = {}
    for slot, number in final.items():
        last.setdefault(number, []).append(slot)
    return last

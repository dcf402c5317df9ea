"""The barriers in a kernel's code, at which lanes wait for other lanes of their block or cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..compiling.opcode_table.opcodes import form_of
from ..syntax.instructions import Immediate, Instruction, Operand, Register
from .errors import UnsupportedInstruction
from .layout import BARRIERS, CLUSTER_BARRIER
from .vectors import I32, Builder

if TYPE_CHECKING:
    from .instances import Instance, Place

Value = Any


@dataclass(frozen=True)
class Barrier:
    """A barrier in the code: its number, the number of threads that it expects, and the operands of a reduction.

    The number and the number of expected threads are literals or registers. `resume` is the number of the basic block
    after the barrier. If `expected` is None, the barrier expects all threads of the block. If `waits` is false, the
    threads arrive without waiting.
    """

    instruction: Instruction
    instance: Instance
    resume: int
    number: int | Register
    expected: int | Register | None
    operation: str = ""
    result: Operand | None = None
    predicate: Operand | None = None
    waits: bool = True

    @property
    def is_unnamed(self) -> bool:
        """Return whether the barrier may be that of __syncthreads, which all threads must reach at the same place."""
        return isinstance(self.number, Register) or self.number == 0

    @property
    def is_literal(self) -> bool:
        """Return whether the number of the barrier and the number of threads are literals."""
        return not isinstance(self.number, Register) and not isinstance(self.expected, Register)


def barrier_of(place: Place) -> Barrier:
    """Return the barrier that ends a block; raise UnsupportedInstruction if only the NumPy engine supports it."""
    instruction = place.block.terminator.ending
    words = form_of(instruction).words
    operands = list(instruction.operands)
    operation = next((word for word in words if word in ("popc", "and", "or")), "")
    result = operands.pop(0) if operation else None
    predicate = operands.pop() if operation else None
    resume = place.instance.numbers[place.block.terminator.targets[0]]
    if "cluster" in words:
        return Barrier(instruction, place.instance, resume, CLUSTER_BARRIER, None, waits="wait" in words)
    number, expected, *_ = *map(_literal_or_register, operands), None
    assert number is not None
    waits = "arrive" not in words
    if not waits and isinstance(number, Register):
        raise UnsupportedInstruction("arrivals at a barrier whose number is in a register")
    return Barrier(instruction, place.instance, resume, number, expected, operation, result, predicate, waits)


def _literal_or_register(operand: Operand) -> int | Register:
    """Return the value of a barrier's operand, or the register that contains it."""
    if isinstance(operand, Register):
        return operand
    assert isinstance(operand, Immediate)
    return operand.value


def numbers_of(b: Builder, state: Value, barrier: Barrier) -> Value:
    """Return the number, for each lane of a warp, of a barrier whose number is in a register."""
    assert isinstance(barrier.number, Register)
    numbers = barrier.instance.load(b, state, barrier.instance.code.slot(barrier.number.name), I32)
    # No other numbers are valid.
    return b.and_(numbers, b.const(I32, BARRIERS - 1))

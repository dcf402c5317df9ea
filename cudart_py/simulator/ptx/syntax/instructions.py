"""The parts of a parsed program: operands, instructions, functions and variables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from .types import type_size


@dataclass(frozen=True, slots=True)
class Register:
    """One register; `negated` is True for ``!%p1``.

    `selector` names the bytes or halves that a video instruction selects from the register, such as ``b0`` or ``h10``;
    a minus sign before it, or alone, negates the operand.
    """

    name: str
    negated: bool = False
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal: an integer, or the bits of a floating-point literal and their width."""

    value: int
    float_bits: int = 0

    def bits_as(self, ptx_type: str) -> int:
        """Return the bits of the literal as an operand of a type."""
        if ptx_type == "pred":
            return int(bool(self.value))
        size = type_size(ptx_type)
        if ptx_type not in ("f32", "f64"):
            return self.value & (1 << 8 * size) - 1
        number: object = float(self.value)
        if self.float_bits:
            number = np.array(self.value, f"u{self.float_bits // 8}").view(f"f{self.float_bits // 8}")
        return int(np.array(number, f"f{size}").view(f"u{size}"))


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name of a label, variable, function, parameter or special register, with a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Access:
    """An address ``[base+offset]``; `coordinates` are a texture's ``{x, y}``."""

    base: Register | Symbol | Immediate
    offset: int = 0
    coordinates: Vector | None = None


@dataclass(frozen=True, slots=True)
class Vector:
    """Operands in braces, or the two destinations of ``%r1|%p1``."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """The three parts of a call: results, target and arguments.

    Arguments and results are names of parameters, or registers.
    """

    results: tuple[Operand, ...]
    target: Register | Symbol
    arguments: tuple[Operand, ...]


Operand: TypeAlias = Register | Immediate | Symbol | Access | Vector | Call


def items_of(operand: Operand) -> tuple[Operand, ...]:
    """Return the operands in a vector, or the operand itself."""
    return operand.items if isinstance(operand, Vector) else (operand,)


class InlinedCall(NamedTuple):
    """The call of a function that was inlined: the label of the function's name, and the place of the call."""

    function: str
    file: int
    line: int


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One PTX instruction and its location in the source.

    File 0 is the PTX text itself, for text that doesn't name its source. `user` is the location in the outermost
    function that the instruction was inlined into, or `file` and `line` if it wasn't inlined. `calls` are the
    calls of the functions that contained it, innermost first.
    """

    opcode: str
    operands: tuple[Operand, ...]
    guard: Register | None
    file: int
    line: int
    text: str
    function: str
    user: tuple[int, int]
    ptx_line: int
    calls: tuple[InlinedCall, ...] = ()

    @property
    def access(self) -> Access:
        """Return the first address among the operands; there is one."""
        return next(operand for operand in self.operands if isinstance(operand, Access))

    @property
    def call(self) -> Call:
        """Return the parts of a call, which is its only operand."""
        (call,) = self.operands
        assert isinstance(call, Call)
        return call


@dataclass(frozen=True, slots=True)
class UnsupportedUse:
    """An instruction that isn't simulated, and why. Of the uses with the same key, a report lists only the first."""

    instruction: Instruction
    why: str
    key: str


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter: its byte offset among the parameters, its size and its alignment.

    `register_type` is the type of a device function's parameter that is a register, and empty for others.
    """

    name: str
    offset: int
    size: int
    alignment: int
    register_type: str = ""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a module or a function.

    `relocations` contains ``(offset, symbol, addend)`` for each 8-byte address among the initial bytes.
    """

    name: str
    space: str
    size: int
    alignment: int
    initial: bytes = b""
    relocations: tuple[tuple[int, str, int], ...] = ()
    external: bool = False
    element_type: str = "b8"
    managed: bool = False


def placed(variables: Iterable[Variable]) -> tuple[dict[str, int], int]:
    """Return the offsets of variables that are placed one after another, and the end of the last one."""
    offsets: dict[str, int] = {}
    end = 0
    for variable in variables:
        end = -(-end // variable.alignment) * variable.alignment
        offsets[variable.name] = end
        end += variable.size
    return offsets, end


@dataclass(slots=True)
class Function:
    """One parsed body: its instructions in order, labels as instruction indices, and declarations.

    `parameters` and `results` are a device function's names for its arguments and results; names that are registers are
    in `registers` too. `names` are all symbols in the instructions except registers and labels, and `taken` those of
    them that are not only called. `calls_pointers` says whether there is an indirect call.
    """

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    shared: dict[str, Variable] = field(default_factory=dict)
    local: dict[str, Variable] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parameter_sizes: dict[str, int] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    names: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    calls_pointers: bool = False

"""Byte rules: the bytes of an instruction's operands on which each byte of its result depends.

A byte of a register is undefined if it comes from uninitialised memory, constant if an instruction filled it in (such
as a zero above a loaded byte, or below a shifted value), and defined otherwise. The marks of a register are one integer
per lane: bit k is set if byte k is undefined, and bit 8 + k if byte k is constant; 0 means that all bytes are defined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...ptx.compiling.analysis.control_flow import passes_parameter
from ...ptx.compiling.forms import Form
from ...ptx.compiling.opcode_table.opcodes import form_of
from ...ptx.syntax.instructions import Access, Immediate, Instruction, Operand, Register, items_of
from ...ptx.syntax.types import TYPE_SIZES, type_size
from .matrix_rules import MatrixRule, matrix_rules

if TYPE_CHECKING:
    from ...ptx.compiling.analysis.control_flow import Code

Array = NDArray[Any]
# The marks of the registers that have marks, keyed by slot.
Known = Mapping[int, Array]
# A byte of a register: the register's slot, and the index of the byte.
Byte = tuple[int, int]
Bytes = tuple[Byte, ...]

_CONSTANT: Byte = (-1, 0)
_DEFINED: Byte = (-2, 0)
MOST = 8


class Rule(NamedTuple):
    """The origin of the bytes of a written register: `sources` has the source bytes of each byte.

    `how` says when a byte is undefined. With "any", it is undefined if any of its sources is undefined. With "rest",
    one source must be undefined and the rest undefined or constant. With "every", every source register must have an
    undefined byte. In any case, all bytes are undefined if any of the `selectors` is: the bytes of an operand that says
    where the bits of the result come from, such as the amount of a shift.
    """

    slot: int
    how: str
    sources: tuple[Bytes, ...]
    selectors: Bytes = ()

    def marks(self, known: Known) -> Array:
        """Return the marks of the result."""
        result: Any = np.uint16(0)
        met: dict[Bytes, tuple[Any, Any]] = {}
        for number, sources in enumerate(self.sources):
            if sources not in met:
                met[sources] = self._meet(known, sources)
            undefined, constant = met[sources]
            result = result | undefined * np.uint16(1 << number) | constant * np.uint16(1 << 8 + number)
        for byte in self.selectors:
            result = np.where(_state(known, byte)[0], np.uint16((1 << len(self.sources)) - 1), result)
        # Constant bytes matter only together with undefined ones.
        return np.where(result & 0xFF, result, np.uint16(0))

    def _meet(self, known: Known, sources: Bytes) -> tuple[Any, Any]:
        """Return whether a byte with these sources is undefined, and whether it is constant."""
        if self.how == "every":
            return reduce(and_, (_of(known, slot) & 0xFF != 0 for slot, _ in sources)), np.False_
        states = [_state(known, byte) for byte in sources]
        undefined = reduce(or_, (state[0] for state in states))
        if self.how == "rest":
            undefined = undefined & reduce(and_, (state[0] | state[1] for state in states))
        return undefined, reduce(and_, (state[1] for state in states))


def _state(known: Known, byte: Byte) -> tuple[Any, Any]:
    """Return whether a byte is undefined, and whether it is constant."""
    if byte[0] < 0:
        return np.False_, np.bool_(byte == _CONSTANT)
    marks = _of(known, byte[0])
    return marks >> byte[1] & 1 != 0, marks >> (8 + byte[1]) & 1 != 0


def _of(known: Known, slot: int) -> Any:
    return known.get(slot, np.uint16(0))


def width(code: Code, slot: int) -> int:
    """Return the size of a register in bytes."""
    kind = code.types[slot]
    return 1 if kind == "pred" else int(kind[1:]) // 8


def undefined(code: Code, slot: int) -> int:
    """Return the marks of a register that has never been written."""
    return (1 << min(width(code, slot), MOST)) - 1


def loaded(code: Code, site: Instruction, slot: int) -> int:
    """Return the marks of a register into which an instruction has loaded uninitialised bytes."""
    whole = undefined(code, slot)
    kind = form_of(site).type
    low = (1 << type_size(kind)) - 1 & whole
    return whole if kind.startswith("s") else low | (whole & ~low) << 8


def bytes_of(marks: Array, first: int, size: int) -> Array:
    """Return a mask of the undefined bytes among the `size` bytes from `first` on, one row per element of `marks`."""
    return np.asarray(marks[:, None] >> np.arange(first, first + size, dtype=np.uint16) & 1 != 0)


def widened(code: Code, site: Instruction, slot: int, first: int, bytes_: Array) -> Array:
    """Return the marks of a register after a load has filled its bytes from `first` on.

    `bytes_` has one row per lane, and is true for undefined bytes. Above the loaded bytes, the register has zeros or
    copies of the sign.
    """
    size = bytes_.shape[1]
    marks = bytes_ @ (1 << np.arange(first, first + size)).astype(np.uint16)
    kind = form_of(site).type
    above = undefined(code, slot) & ~((1 << first + size) - 1)
    if form_of(site).row.converges or not above:
        return np.asarray(marks, np.uint16)
    top = bytes_[:, -1] * above if kind.startswith("s") else bytes_.any(axis=1) * (above << 8)
    return np.asarray(marks | top, np.uint16)


def rules(code: Code, instruction: Instruction, form: Form) -> tuple[Rule | MatrixRule, ...]:
    """Return the rules for the registers that an instruction writes, or none if it doesn't propagate marks."""
    reads, writes = code.touched(instruction)
    if passes_parameter(form):
        return _passed(code, instruction, form)
    flow = form.row.flow
    if flow == "fresh" or not reads or any(width(code, slot) > MOST for slot in (*reads, *writes)):
        return ()
    follow = _FOLLOWED.get(flow)
    found = follow(code, instruction, form) if follow is not None else None
    if found is not None:
        return found
    everything = tuple((slot, k) for slot in reads for k in range(width(code, slot)))
    how = "any"
    if flow in ("choice", "select"):
        how, everything = "every", tuple((slot, 0) for slot in reads)
    return tuple(Rule(slot, how, (everything,) * width(code, slot)) for slot in writes)


def _passed(code: Code, instruction: Instruction, form: Form) -> tuple[Rule, ...]:
    """Return the rules of a load or store of a parameter, which is kept in slots; a kernel's parameters are defined."""
    access = next(operand for operand in instruction.operands if isinstance(operand, Access))
    if not code.is_parameter(access):
        return ()
    value = next(operand for operand in instruction.operands if not isinstance(operand, Access))
    items = items_of(value)
    found = []
    for item, slot in zip(items, code.parameter_slots(instruction), strict=True):
        if isinstance(item, Register):
            register = code.slot(item.name)
            source, target = (slot, register) if form.row.access == "ld" else (register, slot)
            size = width(code, source)
            bytes_ = (((source, k),) if k < size else (_CONSTANT,) for k in range(width(code, target)))
            found.append(Rule(target, "any", tuple(bytes_)))
    return tuple(found)


# --- operands -----------------------------------------------------------------------------------------------------


def _bytes(code: Code, operand: Operand, size: int) -> list[Byte]:
    """Return the bytes of an operand; a narrower register is extended with zeros."""
    if not isinstance(operand, Register):
        return [_DEFINED] * size
    slot = code.slot(operand.name)
    return [(slot, k) if k < width(code, slot) else _CONSTANT for k in range(size)]


def _numbers(operands: Sequence[Operand]) -> list[int] | None:
    """Return the values of the operands, or None if one is not an immediate."""
    values = [operand.value for operand in operands if isinstance(operand, Immediate)]
    return values if len(values) == len(operands) else None


def _destination(code: Code, instruction: Instruction) -> tuple[int, int] | None:
    """Return the slot and the size in bytes of the register that an instruction writes, or None for a vector."""
    first = instruction.operands[0]
    if not isinstance(first, Register):
        return None
    slot = code.slot(first.name)
    return slot, width(code, slot)


def _field(source: Sequence[Byte], first_bit: int, top: Byte) -> list[Bytes]:
    """Return the source bytes of a value that begins at a bit of `source`, with zeros below it and `top` above it."""
    result = []
    for k in range(len(source)):
        low = (8 * k + first_bit) // 8
        places = (low, low + 1) if first_bit % 8 else (low,)
        result.append(
            tuple(_CONSTANT if place < 0 else source[place] if place < len(source) else top for place in places)
        )
    return result


# --- instructions that are followed byte by byte ------------------------------------------------------------------

Rules = tuple[Rule | MatrixRule, ...] | None


def _mov(code: Code, instruction: Instruction, form: Form) -> Rules:
    """Return the rules of moves, including vector moves: the targets receive the bytes of the sources in order."""
    to, source = instruction.operands[:2]
    targets = items_of(to)
    pieces = items_of(source)
    # The type is that of a whole, or that of each element of a vector move.
    size = max(TYPE_SIZES[form.type] * form.vector // len(pieces), 1)
    flat = [byte for piece in pieces for byte in _bytes(code, piece, size)]
    each = len(flat) // len(targets)
    found = []
    for number, target in enumerate(targets):
        if isinstance(target, Register):
            slot, value = code.slot(target.name), flat[number * each : (number + 1) * each]
            # The registers of a vector move may be wider than its type.
            value += [value[-1] if form.type[0] == "s" else _CONSTANT] * (width(code, slot) - each)
            found.append(Rule(slot, "rest", tuple((byte,) for byte in value)))
    return tuple(found)


def _cvt(code: Code, instruction: Instruction, form: Form) -> Rules:
    """Return the rule of integer conversions: zeros, or copies of the sign in the highest byte, extend the source."""
    to, came = form.types
    found = _destination(code, instruction)
    if found is None:
        return None
    slot, size = found
    source = _bytes(code, instruction.operands[1], TYPE_SIZES[came])
    value = (source + [source[-1] if came[0] == "s" else _CONSTANT] * MOST)[: TYPE_SIZES[to]]
    value = (value + [value[-1] if to[0] == "s" else _CONSTANT] * MOST)[:size]
    return (Rule(slot, "rest", tuple((byte,) for byte in value)),)


def _shift(code: Code, instruction: Instruction, form: Form) -> Rules:
    """Return the rule of shifts: if the amount is an immediate, each byte depends on one or two bytes of the source."""
    found = _destination(code, instruction)
    if found is None:
        return None
    slot, size = found
    source = _bytes(code, instruction.operands[1], size)
    amount = _numbers(instruction.operands[2:])
    if amount is None:
        # Any byte may move to any other.
        selectors = tuple(_bytes(code, instruction.operands[2], 4))
        return (Rule(slot, "rest", (tuple(source),) * size, selectors),)
    top = source[-1] if form.type.startswith("s") else _CONSTANT
    bits = min(amount[0] & 0xFFFFFFFF, 8 * size)
    return (Rule(slot, "rest", tuple(_field(source, bits if form.row.flow == "right" else -bits, top))),)


def _funnel(code: Code, instruction: Instruction, form: Form) -> Rules:
    """Return the rule of funnel shifts, which may discard either of the two words."""
    found = _destination(code, instruction)
    if found is None:
        return None
    words = [operand for operand in instruction.operands[1:3] if isinstance(operand, Register)]
    sources = tuple(_bytes(code, word, 1)[0] for word in words) or (_DEFINED,)
    used = 1 if "wrap" in form.modifiers else 4
    return (Rule(found[0], "every", (sources,) * 4, tuple(_bytes(code, instruction.operands[3], used))),)


def _logic(code: Code, instruction: Instruction, form: Form) -> Rules:
    """Return the rule of bytewise logic; an immediate operand of ``and`` or ``or`` may determine a byte by itself."""
    found = _destination(code, instruction)
    if found is None or any(isinstance(operand, Register) and operand.selector for operand in instruction.operands):
        return None
    slot, size = found
    operands = [operand for operand in instruction.operands[1:] if not isinstance(operand, Immediate)]
    bytes_ = [_bytes(code, operand, size) for operand in operands]
    bits = next((operand.value for operand in instruction.operands[1:] if isinstance(operand, Immediate)), None)
    sources: list[Bytes] = []
    for k in range(size):
        fixed = None if bits is None else bits >> 8 * k & 0xFF
        if form.row.flow == "and" and fixed == 0:
            sources.append((_CONSTANT,))
        elif form.row.flow == "or" and fixed == 0xFF:
            sources.append((_DEFINED,))
        else:
            sources.append(tuple(each[k] for each in bytes_))
    return (Rule(slot, "any" if form.row.flow == "bytewise" else "rest", tuple(sources)),)


def _prmt(code: Code, instruction: Instruction, form: Form) -> Rules:
    """Return the rule of ``prmt``: each byte is one of the eight bytes of two operands, chosen by the selector."""
    found, selector = _destination(code, instruction), _numbers(instruction.operands[3:])
    source = [byte for operand in instruction.operands[1:3] for byte in _bytes(code, operand, 4)]
    if found is None:
        return None
    if selector is None or form.modifiers:
        selectors = tuple(_bytes(code, instruction.operands[3], 2))
        return (Rule(found[0], "rest", (tuple(source),) * 4, selectors),)
    return (Rule(found[0], "rest", tuple((source[selector[0] >> 4 * k & 7],) for k in range(4))),)


def _bounds(code: Code, instruction: Instruction, size: int) -> Bytes:
    """Return the bytes that have an effect of a field's position and length, the last two operands."""
    used = 4 if size == MOST else 1  # as in `integers.bfe`
    return tuple(byte for operand in instruction.operands[-2:] for byte in _bytes(code, operand, used))


def _bfe(code: Code, instruction: Instruction, form: Form) -> Rules:
    """Return the rule of a bit-field extraction: zeros, or copies of the field's sign, extend the field."""
    found, numbers = _destination(code, instruction), _numbers(instruction.operands[2:])
    if found is None:
        return None
    slot, size = found
    source = _bytes(code, instruction.operands[1], size)
    if numbers is None:
        return (Rule(slot, "rest", (tuple(source),) * size, _bounds(code, instruction, size)),)
    first, count = (number & 0xFF for number in numbers)
    taken = _field(source, first, _CONSTANT)
    last = taken[min(max(count - 1, 0) // 8, size - 1)]
    fill = last if form.type.startswith("s") else (_CONSTANT,)
    return (Rule(slot, "rest", tuple(taken[k] if 8 * k < count else fill for k in range(size))),)


def _bfi(code: Code, instruction: Instruction, form: Form) -> Rules:
    """Return the rule of a bit-field insertion: the bytes at the ends of the field depend on both operands."""
    found, numbers = _destination(code, instruction), _numbers(instruction.operands[3:])
    if found is None:
        return None
    slot, size = found
    inserted, base = (_bytes(code, operand, size) for operand in instruction.operands[1:3])
    if numbers is None:
        return (Rule(slot, "rest", ((*inserted, *base),) * size, _bounds(code, instruction, size)),)
    first, count = (number & 0xFF for number in numbers)
    moved = _field(inserted, -first, _CONSTANT)
    sources: list[Bytes] = []
    for k in range(size):
        inside = max(0, min(8 * k + 8, first + count) - max(8 * k, first))
        sources.append(moved[k] if inside == 8 else (*moved[k], base[k]) if inside else (base[k],))
    return (Rule(slot, "rest", tuple(sources)),)


def _sum(code: Code, instruction: Instruction, form: Form) -> Rules:
    """Return the rule of sums: because of carries, each byte depends on the same and the lower bytes."""
    found = _destination(code, instruction)
    if found is None:
        return None
    slot, size = found
    operands = [_bytes(code, operand, size) for operand in instruction.operands[1:]]
    return (Rule(slot, "any", tuple(tuple(b for each in operands for b in each[: k + 1]) for k in range(size))),)


_FOLLOWED: dict[str, Callable[[Code, Instruction, Form], Rules]] = {
    "copy": _mov, "convert": _cvt, "left": _shift, "right": _shift, "funnel": _funnel, "and": _logic, "or": _logic,
    "bytewise": _logic, "permute": _prmt, "extract": _bfe, "insert": _bfi, "sum": _sum, "matrix": matrix_rules,
}  # fmt: skip  # rows of a table

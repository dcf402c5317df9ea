"""Logic, bit fields, bit counts and byte permutation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...compiling.forms import Form
from ...syntax.instructions import Immediate, Instruction
from ..vectors import I1, I32, I64, Builder, vector

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any
_ALL = 0xFFFFFFFF


def logic(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``and``, ``or``, ``xor`` and ``not``."""
    b = e.b
    x, *rest = e.sources(i, form)
    if form.row.name == "not":
        result = b.not_(x)
    else:
        result = {"and": b.and_, "or": b.or_, "xor": b.xor}[form.row.name](x, rest[0])
    e.write(i.operands[0], result, form.type)


def logical_not(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``cnot``."""
    (x,) = e.sources(i, form)
    e.write(i.operands[0], e.b.zext(e.b.compare("==", x, 0), x.type), form.type)


def lop3(e: Emitter, i: Instruction, form: Form) -> None:
    """Write any function of three bits, as a sum of the products that its table names."""
    b = e.b
    table = i.operands[4]
    assert isinstance(table, Immediate)
    x, y, z = (e.value(operand, "b32") for operand in i.operands[1:4])
    one, zero = divmod(table.value, 16)
    where_one, where_zero = _two_inputs(b, one, y, z), _two_inputs(b, zero, y, z)
    e.write(i.operands[0], b.xor(where_zero, b.and_(x, b.xor(where_zero, where_one))), "b32")


def _two_inputs(b: Builder, table: int, y: Value, z: Value) -> Value:
    """Return one of the 16 functions of two bits; bit ``2 * y + z`` of the table is its value."""
    if table >= 8:
        return b.not_(_two_inputs(b, 15 - table, y, z))
    functions = {
        0: lambda: b.const(I32, 0),
        1: lambda: b.not_(b.or_(y, z)),
        2: lambda: b.and_(b.not_(y), z),
        3: lambda: b.not_(y),
        4: lambda: b.and_(y, b.not_(z)),
        5: lambda: b.not_(z),
        6: lambda: b.xor(y, z),
        7: lambda: b.not_(b.and_(y, z)),
    }
    return functions[table]()


# --- fields: shifts by the width or more give zeros, or copies of the sign


def _left(b: Builder, x: Value, by: Value) -> Value:
    width = x.type.element.width
    inside = b.compare("<", by, width)
    return b.select(inside, b.shl(x, b.select(inside, by, b.like(by, 0))), b.like(x, 0))


def _right(b: Builder, x: Value, by: Value) -> Value:
    width = x.type.element.width
    inside = b.compare("<", by, width)
    return b.select(inside, b.lshr(x, b.select(inside, by, b.like(by, 0))), b.like(x, 0))


def _right_signed(b: Builder, x: Value, by: Value) -> Value:
    return b.ashr(x, b.least(by, b.like(by, x.type.element.width - 1), False))


def _low_mask(b: Builder, count: Value) -> Value:
    return b.sub(_left(b, b.like(count, 1), count), b.like(count, 1))


def _counted(b: Builder, x: Value, value: Value) -> Value:
    """Return what counts of a position or a length, in the width of the field: of 32 bits the low eight."""
    if x.type.element == I64:
        return b.zext(value, vector(I64))
    return b.and_(value, b.const(I32, 0xFF))


def extract(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``bfe``."""
    b = e.b
    x, position, length = e.sources(i, form)
    position, length = _counted(b, x, position), _counted(b, x, length)
    if form.type[0] != "s":
        e.write(i.operands[0], b.and_(_right(b, x, position), _low_mask(b, length)), form.type)
        return
    width = x.type.element.width
    spare = b.select(b.compare("<", length, width), b.sub(b.like(length, width), length), b.like(length, 0))
    field = _right_signed(b, x, position)
    e.write(i.operands[0], _right_signed(b, _left(b, field, spare), spare), form.type)


def insert(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``bfi``."""
    b = e.b
    x, y, position, length = e.sources(i, form)
    position, length = _counted(b, x, position), _counted(b, x, length)
    mask = _left(b, _low_mask(b, length), position)
    result = b.or_(b.and_(y, b.not_(mask)), b.and_(_left(b, x, position), mask))
    e.write(i.operands[0], result, form.type)


def mask(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``bmsk``."""
    b = e.b
    position, width = e.sources(i, form)
    first, count = (b.and_(value, b.const(I32, 31)) for value in (position, width))
    ones = b.const(I32, _ALL)
    above = _left(b, ones, b.add(first, count))
    if "clamp" in form.words:
        above = b.select(b.compare(">=", width, 32), b.const(I32, 0), above)
    result = b.and_(_left(b, ones, first), b.not_(above))
    if "clamp" in form.words:
        result = b.select(b.compare(">=", position, 32), b.const(I32, 0), result)
    e.write(i.operands[0], result, "b32")


def extend(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``szext``."""
    b = e.b
    x, width = e.sources(i, form)
    width = b.least(width, b.const(I32, 32), False) if "clamp" in form.words else b.and_(width, b.const(I32, 31))
    spare = b.sub(b.const(I32, 32), width)
    up = _left(b, x, spare)
    e.write(i.operands[0], (_right_signed if form.type[0] == "s" else _right)(b, up, spare), form.type)


# --- counts


def _leading_zeros(b: Builder, x: Value) -> Value:
    return b.intrinsic("ctlz", x, flags=[I1(0)])


def count(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``popc`` and ``clz``."""
    b = e.b
    x = e.value(i.operands[1], form.type)
    found = b.intrinsic("ctpop", x) if form.row.name == "popc" else _leading_zeros(b, x)
    e.write(i.operands[0], b.resized(found, I32, False), "u32")


def find(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``bfind``."""
    b = e.b
    x = e.value(i.operands[1], form.type)
    if form.type[0] == "s":
        x = b.select(b.compare("<", x, 0, True), b.not_(x), x)
    zeros = b.resized(_leading_zeros(b, x), I32, False)
    top = b.const(I32, x.type.element.width - 1)
    found = zeros if "shiftamt" in form.words else b.sub(top, zeros)
    e.write(i.operands[0], b.select(b.compare("==", x, 0), b.const(I32, _ALL), found), "u32")


def reverse(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``brev``."""
    x = e.value(i.operands[1], form.type)
    e.write(i.operands[0], e.b.intrinsic("bitreverse", x), form.type)


# --- permutation


def permute(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``prmt``."""
    b = e.b
    modes = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}
    x, y = (e.value(operand, "b32") for operand in i.operands[1:3])
    mode = next((word for word in form.words if word in modes), "")
    selector = i.operands[3]
    if isinstance(selector, Immediate) and not mode:
        e.write(i.operands[0], _permuted(b, x, y, selector.value), "b32")
        return
    selectors = e.value(selector, "b32")
    if mode:
        selectors = _nibbles(b, selectors, mode)
    joined = b.or_(b.shl(b.zext(y, vector(I64)), b.const(I64, 32)), b.zext(x, vector(I64)))
    result = b.const(I32, 0)
    for index in range(4):
        nibble = b.lshr(selectors, b.const(I32, 4 * index))
        by = b.zext(b.shl(b.and_(nibble, b.const(I32, 7)), b.const(I32, 3)), vector(I64))
        byte = b.and_(b.trunc(b.lshr(joined, by), vector(I32)), b.const(I32, 0xFF))
        sign = b.mul(b.lshr(byte, b.const(I32, 7)), b.const(I32, 0xFF))
        byte = b.select(b.compare("!=", b.and_(nibble, b.const(I32, 8)), 0), sign, byte)
        result = b.or_(result, b.shl(byte, b.const(I32, 8 * index)))
    e.write(i.operands[0], result, "b32")


def _permuted(b: Builder, x: Value, y: Value, selectors: int) -> Value:
    """Pick bytes by one selector for all lanes, as compilers write it."""
    result = b.const(I32, 0)
    for index in range(4):
        selector = selectors >> 4 * index & 15
        word = y if selector & 4 else x
        byte = b.and_(b.lshr(word, b.const(I32, 8 * (selector & 3))), b.const(I32, 0xFF))
        if selector & 8:
            byte = b.mul(b.lshr(byte, b.const(I32, 7)), b.const(I32, 0xFF))
        result = b.or_(result, b.shl(byte, b.const(I32, 8 * index)))
    return result


def _nibbles(b: Builder, selectors: Value, mode: str) -> Value:
    """Return the selectors of four bytes that a mode of ``prmt`` stands for."""
    result = b.const(I32, 0)
    chosen = b.and_(selectors, b.const(I32, 3))
    for index in range(4):
        place = b.const(I32, index)
        if mode == "f4e":
            byte = b.add(chosen, place)
        elif mode == "b4e":
            byte = b.and_(b.sub(chosen, place), b.const(I32, 7))
        elif mode == "rc16":
            byte = b.or_(b.shl(b.and_(selectors, b.const(I32, 1)), b.const(I32, 1)), b.const(I32, index & 1))
        elif mode in ("ecl", "ecr"):
            byte = (b.greatest if mode == "ecl" else b.least)(chosen, place, False)
        else:
            byte = chosen
        result = b.or_(result, b.shl(byte, b.const(I32, 4 * index)))
    return result


LOWERINGS: dict[str, Any] = {
    "and": logic, "or": logic, "xor": logic, "not": logic, "cnot": logical_not, "lop3": lop3, "bfe": extract,
    "bfi": insert, "bmsk": mask, "szext": extend, "popc": count, "clz": count, "bfind": find, "brev": reverse,
    "prmt": permute,
}  # fmt: skip  # rows of a table

"""Integer arithmetic: sums, products, division, shifts, carries, and packed pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...compiling.forms import Form
from ...syntax.instructions import Immediate, Instruction
from ..vectors import F64, I32, I64, Builder, vector

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any
_MINUS_ONE = {8: 0xFF, 16: 0xFFFF, 32: 0xFFFFFFFF, 64: (1 << 64) - 1}


def _signed(form: Form) -> bool:
    return form.type[0] == "s"


def _double(b: Builder, value: Value, signed: bool) -> Value:
    return b.resized(value, ir.IntType(2 * value.type.element.width), signed)


def _high(b: Builder, x: Value, y: Value, signed: bool) -> Value:
    """Return the upper half of the full product."""
    element = x.type.element
    product = b.mul(_double(b, x, signed), _double(b, y, signed))
    return b.trunc(b.lshr(product, b.like(product, element.width)), vector(element))


def _clipped(b: Builder, wide: Value) -> Value:
    """Saturate 64-bit values to the range of s32."""
    low, high = b.const(I64, (1 << 64) - (1 << 31)), b.const(I64, (1 << 31) - 1)
    return b.trunc(b.greatest(b.least(wide, high, True), low, True), vector(I32))


def _carried(e: Emitter, i: Instruction, form: Form, x: Value, y: Value, subtract: bool) -> None:
    """Add or subtract with the carry flag, which after a subtraction is set where there was no borrow."""
    b = e.b
    slot = e.code.slot("%CC")
    if subtract:
        y = b.not_(y)
    carry_in: Value = None
    if form.row.reads_carry:
        carry_in = b.zext(e.register(slot), x.type)
    elif subtract:
        carry_in = b.like(x, 1)
    total = b.add(x, y)
    carry = b.compare("<", total, x)
    if carry_in is not None:
        partial, total = total, b.add(total, carry_in)
        carry = b.or_(carry, b.compare("<", total, partial))
    e.write(i.operands[0], total, form.type_of(form.operands[0]))
    if form.writes_carry:
        e.put(slot, carry)


def add(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``add``, ``addc``, ``sub`` and ``subc`` of integers."""
    b = e.b
    x, y = e.sources(i, form)
    subtract = form.row.name in ("sub", "subc")
    if form.writes_carry or form.row.reads_carry:
        _carried(e, i, form, x, y, subtract)
        return
    if "sat" in form.words:
        x, y = (b.sext(value, vector(I64)) for value in (x, y))
        e.write(i.operands[0], _clipped(b, b.sub(x, y) if subtract else b.add(x, y)), "s32")
        return
    if form.type.endswith("x2"):
        high, low = b.const(I32, 0xFFFF0000), b.const(I32, 0xFFFF)
        total = b.or_(b.and_(b.add(b.and_(x, high), b.and_(y, high)), high), b.and_(b.add(x, y), low))
        e.write(i.operands[0], total, "b32")
        return
    e.write(i.operands[0], b.sub(x, y) if subtract else b.add(x, y), "u" + form.type[1:])


def multiply(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``mul``, ``mad`` and ``madc`` of integers."""
    b = e.b
    x, y, *rest = e.sources(i, form)
    signed = _signed(form)
    if "wide" in form.words:
        product = b.mul(_double(b, x, signed), _double(b, y, signed))
        e.write(i.operands[0], b.add(product, rest[0]) if rest else product, form.type_of("W"))
        return
    if "sat" in form.words:
        product = b.ashr(b.mul(b.sext(x, vector(I64)), b.sext(y, vector(I64))), b.const(I64, 32))
        e.write(i.operands[0], _clipped(b, b.add(product, b.sext(rest[0], vector(I64)))), "s32")
        return
    product = _high(b, x, y, signed) if "hi" in form.words else b.mul(x, y)
    if form.writes_carry or form.row.reads_carry:
        _carried(e, i, form, product, rest[0], False)
        return
    kind = form.type if "hi" in form.words else "u" + form.type[1:]
    e.write(i.operands[0], b.add(product, rest[0]) if rest else product, kind)


def multiply_24(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``mul24`` and ``mad24``."""
    b = e.b
    x, y, *rest = e.sources(i, form)
    signed = _signed(form)
    forty = b.const(I64, 40)
    x, y = ((b.ashr if signed else b.lshr)(b.shl(b.resized(value, I64, signed), forty), forty) for value in (x, y))
    product = b.mul(x, y)
    if "hi" in form.words:
        product = (b.ashr if signed else b.lshr)(product, b.const(I64, 16))
    if "sat" in form.words:
        e.write(i.operands[0], _clipped(b, b.add(product, b.sext(rest[0], vector(I64)))), "s32")
        return
    low = b.trunc(product, vector(I32))
    e.write(i.operands[0], b.add(low, rest[0]) if rest else low, form.type)


def sad(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``sad``."""
    b = e.b
    x, y, z = e.sources(i, form)
    signed = _signed(form)
    difference = b.sub(b.greatest(x, y, signed), b.least(x, y, signed))
    e.write(i.operands[0], b.add(difference, z), form.type)


def extreme(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``min`` and ``max`` of integers, also of packed ones of 16 bits."""
    b = e.b
    x, y = e.sources(i, form)
    signed = form.type[0] == "s"
    pick = b.least if form.row.name == "min" else b.greatest
    if form.type.endswith("x2"):
        halves = []
        for place in range(2):
            chosen = pick(_piece(b, x, place, 16, signed), _piece(b, y, place, 16, signed), signed)
            halves.append(b.greatest(chosen, b.const(I32, 0), True) if "relu" in form.words else chosen)
        low = b.and_(halves[0], b.const(I32, 0xFFFF))
        e.write(i.operands[0], b.or_(b.shl(halves[1], b.const(I32, 16)), low), "b32")
        return
    result = pick(x, y, signed)
    if "relu" in form.words:
        result = b.greatest(result, b.like(result, 0), True)
    e.write(i.operands[0], result, form.type)


def unary(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``abs`` and ``neg`` of integers."""
    b = e.b
    (x,) = e.sources(i, form)
    negative = b.sub(b.like(x, 0), x)
    if form.row.name == "neg":
        e.write(i.operands[0], negative, "u" + form.type[1:])
    else:
        e.write(i.operands[0], b.select(b.compare("<", x, 0, True), negative, x), form.type)


def divide(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``div`` and ``rem`` of integers; of a division by zero all bits are ones."""
    b = e.b
    x, y = e.sources(i, form)
    signed, width = _signed(form), x.type.element.width
    zero = b.compare("==", y, 0)
    ones = b.like(x, _MINUS_ONE[width])
    if width <= 32:
        # The quotient in double precision, cut off, is that of the integers.
        to, back = (b.sitofp, b.fptosi) if signed else (b.uitofp, b.fptoui)
        over = to(b.select(zero, b.like(y, 1), y), vector(F64))
        quotient = b.trunc(back(b.fdiv(to(x, vector(F64)), over), vector(I64)), x.type)
    else:
        bad = zero
        if signed:
            # The least integer divided by -1 wraps to itself, which the processor refuses to do.
            overflow = b.and_(b.compare("==", x, 1 << 63), b.compare("==", y, (1 << 64) - 1))
            bad = b.or_(zero, overflow)
        safe = b.select(bad, b.like(y, 1), y)
        quotient = b.sdiv(x, safe) if signed else b.udiv(x, safe)
    result = quotient if form.row.name == "div" else b.sub(x, b.mul(quotient, y))
    e.write(i.operands[0], b.select(zero, ones, result), form.type)


# --- shifts


def shift(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``shl`` and ``shr``; amounts are clamped to the width."""
    b = e.b
    x = e.value(i.operands[1], form.type)
    amount = i.operands[2]
    width = x.type.element.width
    signed = _signed(form)
    if isinstance(amount, Immediate):
        count = amount.value & 0xFFFFFFFF
        if count >= width and not signed:
            e.write(i.operands[0], b.like(x, 0), form.type)
            return
        by = b.like(x, min(count, width - 1))
        outside: Value = None
    else:
        wanted = e.value(amount, "u32")
        by = b.resized(b.least(wanted, b.const(I32, width - 1), False), x.type.element, False)
        outside = b.compare(">", wanted, width - 1)
    result = b.shl(x, by) if form.row.name == "shl" else b.ashr(x, by) if signed else b.lshr(x, by)
    if outside is not None and not signed:
        result = b.select(outside, b.like(x, 0), result)
    e.write(i.operands[0], result, form.type)


def funnel_shift(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``shf``."""
    b = e.b
    low, high, amount = e.sources(i, form)
    amount = b.and_(amount, b.const(I32, 31)) if "wrap" in form.words else b.least(amount, b.const(I32, 32), False)
    by = b.zext(amount, vector(I64))
    joined = b.or_(b.shl(b.zext(high, vector(I64)), b.const(I64, 32)), b.zext(low, vector(I64)))
    result = b.lshr(b.shl(joined, by), b.const(I64, 32)) if form.words[0] == "l" else b.lshr(joined, by)
    e.write(i.operands[0], b.trunc(result, vector(I32)), "b32")


# --- pieces of words


def _piece(b: Builder, x: Value, index: int, bits: int, signed: bool) -> Value:
    """Return one byte or half as a 32-bit integer."""
    up = b.shl(x, b.const(I32, 32 - bits * (index + 1)))
    return (b.ashr if signed else b.lshr)(up, b.const(I32, 32 - bits))


def dot(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``dp4a`` and ``dp2a``."""
    b = e.b
    x, y, total = e.sources(i, form)
    x_signed, y_signed = (name[0] == "s" for name in form.types[:2])
    if form.row.name == "dp4a":
        pairs = [(place, 8, place) for place in range(4)]
    else:
        pairs = [(0, 16, 2 * ("hi" in form.words)), (1, 16, 2 * ("hi" in form.words) + 1)]
    for left, bits, right in pairs:
        product = b.mul(_piece(b, x, left, bits, x_signed), _piece(b, y, right, 8, y_signed))
        total = b.add(total, product)
    e.write(i.operands[0], total, "b32")


def absolute_differences(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``vabsdiff2`` and ``vabsdiff4``."""
    b = e.b
    x, y, z = e.sources(i, form)
    bits = 16 if form.row.name.endswith("2") else 8
    signs = [form.type_of(pattern)[0] == "s" for pattern in form.operands[1:3]]
    total = b.const(I32, 0)
    for place in range(32 // bits):
        left, right = (_piece(b, value, place, bits, sign) for value, sign in zip((x, y), signs, strict=True))
        difference = b.sub(b.greatest(left, right, True), b.least(left, right, True))
        total = b.add(total, difference if "add" in form.words else b.shl(difference, b.const(I32, bits * place)))
    e.write(i.operands[0], b.add(total, z) if "add" in form.words else total, form.type_of(form.operands[0]))


def convert_packed(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``cvt.pack``."""
    b = e.b
    narrow = form.types[0]
    bits = int(narrow[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if narrow[0] == "s" else (0, (1 << bits) - 1)
    mask = (1 << bits) - 1
    x, y = (e.value(operand, "s32") for operand in i.operands[1:3])
    x, y = (
        b.and_(
            b.greatest(b.least(value, b.const(I32, high), True), b.const(I32, low & 0xFFFFFFFF), True),
            b.const(I32, mask),
        )
        for value in (x, y)
    )
    packed = b.or_(b.shl(x, b.const(I32, bits)), y)
    if len(i.operands) > 3:
        above = b.shl(e.value(i.operands[3], "b32"), b.const(I32, 2 * bits))
        packed = b.or_(packed, above)
    e.write(i.operands[0], packed, "b32")


LOWERINGS: dict[str, Any] = {
    "add": add, "addc": add, "sub": add, "subc": add, "mul": multiply, "mad": multiply, "madc": multiply,
    "mul24": multiply_24, "mad24": multiply_24, "sad": sad, "div": divide, "rem": divide, "abs": unary, "neg": unary,
    "min": extreme, "max": extreme, "shl": shift, "shr": shift, "shf": funnel_shift, "dp4a": dot, "dp2a": dot,
    "vabsdiff2": absolute_differences, "vabsdiff4": absolute_differences,
}  # fmt: skip  # rows of a table

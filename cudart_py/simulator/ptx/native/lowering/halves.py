"""Half-precision arithmetic: f16 and bf16 patterns, and pairs of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...compiling.forms import Form
from ...syntax.instructions import Instruction
from ..errors import NotNative
from ..vectors import F32, F64, I16, I32, NAN_F32, Builder, vector
from . import floats

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any
_SIGN = 0x8000
_LEAST = {"f16": 0x0400, "bf16": 0x0080}
_ONE = {"f16": 0x3C00, "bf16": 0x3F80}
_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80}
NAN = 0x7FFF


def halves_of(b: Builder, value: Value, kind: str) -> list[Value]:
    """Return the patterns of a register: one, or the lower and the upper one of a pair."""
    if not kind.endswith("x2"):
        return [value]
    upper = b.lshr(value, b.const(I32, 16))
    return [b.trunc(value, vector(I16)), b.trunc(upper, vector(I16))]


def joined(b: Builder, patterns: list[Value]) -> Value:
    """Return patterns as a register keeps them."""
    if len(patterns) == 1:
        return patterns[0]
    low, high = (b.zext(pattern, vector(I32)) for pattern in patterns)
    return b.or_(b.shl(high, b.const(I32, 16)), low)


def _size(b: Builder, pattern: Value) -> Value:
    return b.and_(pattern, b.const(I16, 0x7FFF))


def flushed(b: Builder, pattern: Value, kind: str) -> Value:
    """Return patterns with subnormal numbers as zeros of their sign."""
    tiny = b.compare("<", _size(b, pattern), _LEAST[kind])
    return b.select(tiny, b.and_(pattern, b.const(I16, _SIGN)), pattern)


def widen(b: Builder, pattern: Value, kind: str, ftz: bool = False) -> Value:
    """Return patterns in single precision; a NaN of f16 becomes the hardware's."""
    if ftz:
        pattern = flushed(b, pattern, kind)
    bits = b.zext(pattern, vector(I32))
    if kind == "bf16":
        return b.as_type(b.shl(bits, b.const(I32, 16)), F32)
    # Exponent and fraction, put where single precision has its own, stand for the number divided by 2**112.
    size = b.shl(b.and_(bits, b.const(I32, 0x7FFF)), b.const(I32, 13))
    scaled = b.as_integer(b.fmul(b.as_type(size, F32), b.const(F32, 0x77800000)))
    sign = b.shl(b.and_(bits, b.const(I32, _SIGN)), b.const(I32, 16))
    scaled = b.or_(scaled, sign)
    special = b.compare(">=", size, 0x7C00 << 13)
    infinite = b.or_(scaled, b.const(I32, 0x7F800000))
    result = b.select(special, infinite, scaled)
    return b.as_type(b.select(b.compare(">", size, 0x7C00 << 13), b.const(I32, NAN_F32), result), F32)


def _nearest_f16(b: Builder, x: Value) -> Value:
    bits = b.as_integer(x)
    size = b.and_(bits, b.const(I32, 0x7FFFFFFF))
    odd = b.and_(b.lshr(size, b.const(I32, 13)), b.const(I32, 1))
    rounded = b.lshr(b.add(b.add(size, b.const(I32, 0xFFF)), odd), b.const(I32, 13))
    rounded = b.sub(rounded, b.const(I32, 112 << 10))
    # One half has the last bit of f16's subnormal numbers as its own: the addition rounds there.
    shifted = b.as_integer(b.fadd(b.as_type(size, F32), b.const(F32, 0x3F000000)))
    shifted = b.sub(shifted, b.const(I32, 0x3F000000))
    rounded = b.select(b.compare("<", size, 0x38800000), shifted, rounded)
    rounded = b.least(rounded, b.const(I32, 0x7C00), False)
    rounded = b.or_(rounded, b.and_(b.lshr(bits, b.const(I32, 16)), b.const(I32, _SIGN)))
    nan = b.compare(">", size, 0x7F800000)
    return b.trunc(b.select(nan, b.const(I32, NAN), rounded), vector(I16))


def _nearest_bf16(b: Builder, x: Value) -> Value:
    bits = b.as_integer(x)
    odd = b.and_(b.lshr(bits, b.const(I32, 16)), b.const(I32, 1))
    rounded = b.lshr(b.add(b.add(bits, b.const(I32, 0x7FFF)), odd), b.const(I32, 16))
    return b.trunc(b.select(b.floats("uno", x, x), b.const(I32, NAN), rounded), vector(I16))


def narrow(b: Builder, x: Value, kind: str) -> Value:
    """Round single-precision numbers to patterns, to nearest even."""
    return (_nearest_f16 if kind == "f16" else _nearest_bf16)(b, x)


def odd_f32(b: Builder, high: Value, low: Value | None = None) -> Value:
    """Round double to single precision, toward zero, with the last bit set where anything was cut off."""
    cut = floats.narrow(b, high, low, "rz")
    rest = b.fsub(high, floats.wide(b, cut))
    if low is not None:
        rest = b.select(b.floats("oeq", rest, b.const(F64, 0)), low, rest)
    inexact = b.floats("one", rest, b.const(F64, 0))
    return b.as_type(b.or_(b.as_integer(cut), b.zext(inexact, vector(I32))), F32)


def finished(b: Builder, pattern: Value, kind: str, form: Form) -> Value:
    """Saturate the bits of a result to [0, 1], or raise negative ones to 0, where the form asks for it."""
    if "sat" in form.words:
        low = b.least(pattern, b.const(I16, _ONE[kind]), False)
        pattern = b.select(b.compare(">", pattern, _INFINITY[kind]), b.const(I16, 0), low)
    return rectified(b, pattern, kind) if "relu" in form.words else pattern


def rectified(b: Builder, pattern: Value, kind: str) -> Value:
    """Return patterns with negative numbers as +0; a NaN is kept."""
    negative = b.compare("<", pattern, 0, True)
    number = b.compare("<=", _size(b, pattern), _INFINITY[kind])
    return b.select(b.and_(negative, number), b.const(I16, 0), pattern)


def _on_halves(function: Callable[..., Value]) -> Callable[[Emitter, Instruction, Form], None]:
    def lower(e: Emitter, i: Instruction, form: Form) -> None:
        kind = form.types[0]
        one = kind.removesuffix("x2")
        operands = [halves_of(e.b, e.value(operand, kind), kind) for operand in i.operands[1:]]
        parts = [function(e.b, one, form, *values) for values in zip(*operands, strict=True)]
        e.write(i.operands[0], joined(e.b, parts), "b32" if len(parts) > 1 else "b16")

    return lower


def _add(b: Builder, kind: str, form: Form, x: Value, y: Value) -> Value:
    ftz = "ftz" in form.words
    if form.row.name == "sub":
        y = b.xor(y, b.const(I16, _SIGN))
    total = narrow(b, b.fadd(widen(b, x, kind, ftz), widen(b, y, kind, ftz)), kind)
    return finished(b, flushed(b, total, kind) if ftz else total, kind, form)


def _multiply(b: Builder, kind: str, form: Form, x: Value, y: Value) -> Value:
    if "ftz" in form.words:
        raise NotNative("products of halves with ftz")
    product = b.fmul(widen(b, x, kind), widen(b, y, kind))
    return finished(b, narrow(b, product, kind), kind, form)


def _fma(b: Builder, kind: str, form: Form, x: Value, y: Value, z: Value) -> Value:
    if "ftz" in form.words:
        raise NotNative("products of halves with ftz")
    wide_x, wide_y, wide_z = (floats.wide(b, widen(b, value, kind)) for value in (x, y, z))
    product = b.fmul(wide_x, wide_y)
    if kind == "f16":
        high, low = b.fadd(product, wide_z), None
    else:
        high, low = floats.two_sum(b, product, wide_z)
    return finished(b, narrow(b, odd_f32(b, high, low), kind), kind, form)


def _extreme(b: Builder, kind: str, form: Form, x: Value, y: Value) -> Value:
    if "ftz" in form.words:
        x, y = flushed(b, x, kind), flushed(b, y, kind)
    signs = b.and_(b.xor(x, y), b.const(I16, _SIGN))
    if "xorsign" in form.words:
        x, y = _size(b, x), _size(b, y)
    x_nan, y_nan = (b.compare(">", _size(b, value), _INFINITY[kind]) for value in (x, y))
    first, second = (_ordered(b, value) for value in (x, y))
    less = b.compare("<", first, second, True)
    result = b.select(less, x, y) if form.row.name == "min" else b.select(less, y, x)
    result = b.select(x_nan, y, b.select(y_nan, x, result))
    if "xorsign" in form.words:
        result = b.or_(result, signs)
    nan = (b.or_ if "NaN" in form.words else b.and_)(x_nan, y_nan)
    return b.select(nan, b.const(I16, NAN), result)


def _ordered(b: Builder, pattern: Value) -> Value:
    """Return patterns as integers in the order of the numbers, with -0 just below +0."""
    return b.select(b.compare("<", pattern, 0, True), b.not_(_size(b, pattern)), pattern)


LOWERINGS: dict[str, Any] = {
    "add": _on_halves(_add), "sub": _on_halves(_add), "mul": _on_halves(_multiply), "fma": _on_halves(_fma),
    "min": _on_halves(_extreme), "max": _on_halves(_extreme),
}  # fmt: skip  # rows of a table

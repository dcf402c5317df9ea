"""Arithmetic of single and double precision, exact and approximate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...compiling.forms import Form
from ...syntax.instructions import Instruction
from ..vectors import F32, F64, I64, Builder, vector
from . import floats

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any
_HIGH_WORD = 0xFFFFFFFF00000000


def rounding_of(form: Form) -> str:
    """Return the rounding that a form asks for."""
    return next((word for word in form.modifiers if word in ("rz", "rm", "rp")), "rn")


def _finish(e: Emitter, i: Instruction, form: Form, result: Value) -> None:
    """Write a result, saturated on request."""
    if "sat" in form.words:
        e.write(i.operands[0], floats.saturate(e.b, result), form.type)
    else:
        e.write(i.operands[0], result, form.type, loose=form.type == "f32")


def _sources(e: Emitter, i: Instruction, form: Form) -> list[Value]:
    return e.b.operands(*(e.value(operand, form.type, loose=True) for operand in i.operands[1:]))


def binary(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``add``, ``sub``, ``mul``, ``fma`` and ``mad``."""
    name = {"sub": "subtract", "mul": "multiply", "mad": "fma"}.get(form.row.name, form.row.name)
    function = getattr(floats, name)
    result = function(e.b, *_sources(e, i, form), rounding_of(form), "ftz" in form.words)
    _finish(e, i, form, result)


def divide(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``div``: correctly rounded, full-range and approximate."""
    b, ftz = e.b, "ftz" in form.words
    x, y = _sources(e, i, form)
    if "approx" not in form.words and "full" not in form.words:
        _finish(e, i, form, floats.divide(b, x, y, rounding_of(form), ftz))
        return
    if ftz:
        x, y = b.flush_result(x), b.flush_result(y)
    result = b.fdiv(x, y)
    if "approx" in form.words:
        # By way of the reciprocal, which is lost for divisors above 2**126.
        size = floats.magnitude(b, y)
        lost = b.and_(b.floats("ogt", size, b.const(F32, 0x7E800000)), b.floats("olt", size, b.const(F32, 0x7F800000)))
        infinite = b.floats("oeq", floats.magnitude(b, x), b.const(F32, 0x7F800000))
        zero = b.select(infinite, b.const(F32, floats.NAN32), b.signed_zero(result))
        result = b.select(lost, zero, result)
    _finish(e, i, form, b.flush_result(result) if ftz else result)


def root(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``sqrt``: correctly rounded and approximate."""
    b, ftz = e.b, "ftz" in form.words
    (x,) = _sources(e, i, form)
    result = floats.root(b, x, rounding_of(form), ftz)
    _finish(e, i, form, result)


def reciprocal(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``rcp``."""
    b, ftz = e.b, "ftz" in form.words
    (x,) = _sources(e, i, form)
    one = b.const(x.type.element, floats.ONE[x.type.element])
    if form.type == "f64" and "approx" in form.words:
        e.write(i.operands[0], _only_high_word(b, b.fdiv(one, _high_word(b, x))), "f64")
        return
    if "approx" not in form.words:
        _finish(e, i, form, floats.divide(b, one, x, rounding_of(form), ftz))
        return
    result = b.fdiv(one, b.flush_result(x) if ftz else x)
    _finish(e, i, form, b.flush_result(result) if ftz else result)


def reciprocal_root(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``rsqrt.approx``."""
    b, ftz = e.b, "ftz" in form.words
    (x,) = _sources(e, i, form)
    one = b.const(F64, floats.ONE[F64])
    if form.type == "f64":
        if ftz:
            e.write(i.operands[0], _only_high_word(b, b.fdiv(one, b.intrinsic("sqrt", _high_word(b, x)))), "f64")
        else:
            result = b.fdiv(one, b.intrinsic("sqrt", x))
            e.write(i.operands[0], floats.canonical64(b, result, x), "f64")
        return
    wide = floats.wide(b, b.flush_result(x) if ftz else x)
    result = b.fptrunc(b.fdiv(one, b.intrinsic("sqrt", wide)), vector(F32))
    _finish(e, i, form, b.flush_result(result) if ftz else result)


def _high_word(b: Builder, x: Value) -> Value:
    """Clear the low 32 bits and flush subnormal numbers to zeros of their sign."""
    value = b.as_type(b.and_(b.as_integer(x), b.const(I64, _HIGH_WORD)), F64)
    return _flush64(b, value)


def _flush64(b: Builder, value: Value) -> Value:
    tiny = b.compare("==", b.and_(b.as_integer(value), b.const(I64, 0x7FF << 52)), 0)
    return b.select(tiny, b.signed_zero(value), value)


def _only_high_word(b: Builder, result: Value) -> Value:
    """Round to the 20 fraction bits of the high word, flush subnormal numbers, and give NaN its one pattern."""
    bits = b.as_integer(result)
    infinite = b.floats("oeq", floats.magnitude(b, result), b.const(F64, 0x7FF << 52))
    up = b.select(infinite, bits, b.add(bits, b.const(I64, 0x80000000)))
    high = _high_word(b, b.as_type(b.and_(up, b.const(I64, _HIGH_WORD)), F64))
    nan = b.floats("uno", result, result)
    return b.select(nan, b.const(F64, 0x7FFFFFFF00000000), high)


def approximate(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``sin``, ``cos``, ``ex2``, ``lg2`` and ``tanh`` by the C library's functions of double precision."""
    b, ftz = e.b, "ftz" in form.words
    (x,) = _sources(e, i, form)
    wide = floats.wide(b, b.flush_result(x) if ftz else x)
    name = {"ex2": "exp2", "lg2": "log2"}.get(form.row.name, form.row.name)
    result = b.fptrunc(e.call(f"math.{name}", vector(F64), wide), vector(F32))
    _finish(e, i, form, b.flush_result(result) if ftz else result)


def extreme(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``min`` and ``max``."""
    x, y = (e.value(operand, form.type) for operand in i.operands[1:])
    modifiers = {"ftz": "ftz" in form.words, "nan": "NaN" in form.words, "xorsign": "xorsign" in form.words}
    e.write(i.operands[0], floats.extreme(e.b, x, y, form.row.name == "min", **modifiers), form.type)


def copysign(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``copysign``: the second operand's magnitude with the first one's sign."""
    b = e.b
    x, y = (b.as_integer(e.value(operand, form.type)) for operand in i.operands[1:])
    # LLVM is not told which bit is the sign: where a selection takes a choice by known bits, it may make an instruction
    # of both that `defects` refuses.
    top = b.hidden(b.like(x, 1 << x.type.element.width - 1))
    joined = b.or_(b.and_(x, top), b.and_(y, b.not_(top)))
    e.write(i.operands[0], b.as_type(joined, F32 if form.type == "f32" else F64), form.type)


LOWERINGS: dict[str, Any] = {
    "add": binary, "sub": binary, "mul": binary, "mad": binary, "fma": binary, "div": divide, "sqrt": root,
    "rcp": reciprocal, "rsqrt": reciprocal_root, "sin": approximate, "cos": approximate, "lg2": approximate,
    "ex2": approximate, "tanh": approximate, "min": extreme, "max": extreme,
    "copysign": copysign,
}  # fmt: skip  # rows of a table

"""Conversions to and from floats (``cvt``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...compiling.forms import Form
from ...instructions.conversions import range_of
from ...syntax.instructions import Instruction
from ..errors import NotNative
from ..vectors import F32, F64, I32, I64, Builder, vector
from . import floats, halves

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any
_INTEGERS = {"u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"}
_HALVES = ("f16", "bf16")
_INTEGRAL = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def convert(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``cvt``."""
    to, source = form.types[0], form.types[1]
    if to in _INTEGERS:
        _to_integer(e, i, form, to, source)
    elif to in ("f16x2", "bf16x2") and source == "f32":
        _to_pair(e, i, form, to)
    elif {to, source} <= {"f32", "f64", *_HALVES, *_INTEGERS}:
        _to_float(e, i, form, to, source)
    else:
        raise NotNative(f"cvt to {to} from {source}")


def _number(b: Builder, value: Value, number: int) -> Value:
    return b.like(value, number & (1 << value.type.element.width) - 1)


def _float_source(e: Emitter, i: Instruction, form: Form, source: str) -> Value:
    """Return the operand in single or double precision, flushed on request."""
    value = e.value(i.operands[1], source)
    if source in _HALVES:
        return halves.widen(e.b, value, source)
    return e.b.flush(value) if source == "f32" and "ftz" in form.words else value


def _to_integer(e: Emitter, i: Instruction, form: Form, to: str, source: str) -> None:
    """Round to an integer and saturate; a NaN gives 0, or the highest bit alone (see `operations.conversions`)."""
    b = e.b
    x = _float_source(e, i, form, source)
    rounding = next(word for word in form.modifiers if word in _INTEGRAL)
    whole = b.intrinsic(_INTEGRAL[rounding], x)
    bits, signed = int(to[1:]), to[0] == "s"
    low, high = range_of(to)
    element = x.type.element
    floor, bound = _power(b, element, low), _power(b, element, high + 1)
    below, above = b.floats("olt", whole, floor), b.floats("oge", whole, bound)
    nan = b.floats("uno", whole, whole)
    inside = b.select(b.or_(b.or_(below, above), nan), b.const(element, 0), whole)
    wide = I64 if bits == 64 else I32
    result = (b.fptosi if signed else b.fptoui)(inside, vector(wide))
    result = b.resized(result, ir.IntType(bits), signed)
    result = b.select(above, _number(b, result, high), b.select(below, _number(b, result, low), result))
    special = source == "f64" or bits == 64
    result = b.select(nan, b.like(result, 1 << bits - 1 if special else 0), result)
    e.write(i.operands[0], result, to)


def _power(b: Builder, element: ir.Type, number: int) -> Value:
    """Return zero or a power of two with a sign as floats."""
    if number == 0:
        return b.const(element, 0)
    exponent = abs(number).bit_length() - 1
    if element == F32:
        return b.const(F32, (number < 0) << 31 | (127 + exponent) << 23)
    return b.const(F64, (number < 0) << 63 | (1023 + exponent) << 52)


def _rounding(form: Form) -> str:
    return next((word for word in form.modifiers if word in ("rn", "rz", "rm", "rp", "rna")), "rn")


def _to_float(e: Emitter, i: Instruction, form: Form, to: str, source: str) -> None:
    b, words = e.b, form.words
    rounding = _rounding(form)
    if source in _INTEGERS:
        x, exact = _of_integer(e, i, form, to, source, rounding)
        if exact:
            _finish_float(e, i, form, to, x)
            return
    else:
        x = _float_source(e, i, form, source)
        integral = next((word for word in words if word in _INTEGRAL), None)
        if integral is not None:
            x = b.intrinsic(_INTEGRAL[integral], x)
            rounding = "rn"
    single = x.type.element == F32
    if to in _HALVES:
        if rounding != "rn":
            raise NotNative("a directed rounding to halves")
        pattern = halves.narrow(b, x if single else halves.odd_f32(b, x), to)
        _finish_half(e, i, form, to, pattern)
    elif to == "f32":
        if not single:
            x = floats.rounded(b, x, None, rounding, "ftz" in words)
        elif "ftz" in words:
            x = b.flush(x)
        _finish_float(e, i, form, to, x)
    elif source == "f64":
        _finish_float(e, i, form, to, x)
    else:
        # Widening keeps a NaN's pattern, as NumPy and the processor do it.
        wide = floats.wide(b, x) if single else x
        e.write(i.operands[0], floats.saturate(b, wide) if "sat" in words else wide, "f64")


def _of_integer(e: Emitter, i: Instruction, form: Form, to: str, source: str, rounding: str) -> tuple[Value, bool]:
    """Return integers as floats, and whether they are rounded already."""
    b = e.b
    value = e.value(i.operands[1], source)
    convert_one = b.sitofp if source[0] == "s" else b.uitofp
    native = {"f32": F32, "f64": F64}.get(to)
    if native is not None and rounding == "rn":
        return convert_one(value, vector(native)), True
    if source in ("u64", "s64"):
        raise NotNative("a directed rounding of 64-bit integers")
    return convert_one(value, vector(F64)), False


def _finish_float(e: Emitter, i: Instruction, form: Form, to: str, x: Value) -> None:
    b = e.b
    if "sat" in form.words:
        e.write(i.operands[0], floats.saturate(b, x), to)
    elif to == "f32":
        e.write(i.operands[0], x, to, loose=True)
    else:
        e.write(i.operands[0], b.quiet(x, x), to)


def _finish_half(e: Emitter, i: Instruction, form: Form, kind: str, pattern: Value) -> None:
    if "satfinite" in form.words:
        raise NotNative("satfinite")
    e.write(i.operands[0], halves.finished(e.b, pattern, kind, form), "b16")


def _to_pair(e: Emitter, i: Instruction, form: Form, to: str) -> None:
    """Write the conversion of two single-precision numbers, of which the upper one stands first."""
    b, kind = e.b, to.removesuffix("x2")
    if _rounding(form) != "rn" or "satfinite" in form.words:
        raise NotNative("a pair of halves with a directed rounding")
    patterns = [halves.narrow(b, e.value(operand, "f32"), kind) for operand in (i.operands[2], i.operands[1])]
    if "relu" in form.words:
        patterns = [halves.rectified(b, pattern, kind) for pattern in patterns]
    e.write(i.operands[0], halves.joined(b, patterns), "b32")


LOWERINGS: dict[str, Any] = {"cvt": convert}

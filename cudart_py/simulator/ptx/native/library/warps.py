"""Permutations, reductions and matches across the lanes of a warp, and functions of the C library for all lanes.

``permute(values, lanes)`` returns, for each lane, the value of the lane whose index it passes.
``redux.OPERATION.TYPE(values, members)`` reduces, for each lane, the values of the lanes in its `members` mask.
``match.TYPE(values)`` returns, for each lane, the mask of the lanes with the same value. ``math.FUNCTION(values)``
calls a function of the C library, except for ``exp2``, whose results only agree with the C library's once they are
rounded to single precision or less.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from ...instructions import warps
from ...instructions.values import Value as Number
from ...instructions.values import value_type
from ...syntax.types import type_size
from ..layout import LANES
from ..vectors import F64, I32, I64, Builder, vector
from .frame import Spilled, begin, each_number

Value = Any

# The Taylor coefficients of 2**x. For x from -0.5 to 0.5, the terms after these are smaller than the rounding errors.
_EXP2 = [math.log(2) ** power / math.factorial(power) for power in range(14)]
_FRACTION_BITS = 52
# Beyond this exponent, 2**x or its reciprocal is infinite in single precision.
_LARGEST_EXPONENT = 512.0


def build_permute(module: ir.Module, name: str) -> None:
    """Build the permutation of 32-bit words."""
    kind = vector(I32)
    b, (values, lanes) = begin(module, name, kind, [kind, kind])
    kept = Spilled(b, values)
    result: Value = ir.Constant(kind, ir.Undefined)
    for lane in range(LANES):
        result = b.insert_element(result, kept.get(b.extract_element(lanes, I32(lane))), I32(lane))
    b.ret(result)


def build_redux(module: ir.Module, name: str) -> None:
    """Build a reduction."""
    _, operation, ptx_type = name.split(".")
    kind, type = vector(I32), value_type(ptx_type)
    b, (values, members) = begin(module, name, kind, [kind, kind])
    neutral = b.const(I32, warps.neutral(operation, type))
    kept, result = Spilled(b, values), Spilled(b, neutral)

    def join(lane: Value) -> None:
        value = b.splat(kept.get(lane))
        counts = b.compare("!=", b.and_(b.lshr(members, b.splat(lane)), b.const(I32, 1)), 0)
        words = (Number(b, type, word) for word in (result.whole, b.select(counts, value, neutral)))
        result.whole = warps.combine(operation, *words).raw

    each_number(b, LANES, join)
    b.ret(result.whole)


def build_match(module: ir.Module, name: str) -> None:
    """Build the search for equal values."""
    kind = ir.IntType(8 * type_size(name.split(".")[1]))
    words = vector(I32)
    b, (values,) = begin(module, name, words, [vector(kind)])
    kept, result = Spilled(b, values), Spilled(b, b.const(I32, 0))

    def look(lane: Value) -> None:
        same = b.zext(b.icmp_unsigned("==", values, b.splat(kept.get(lane))), words)
        result.whole = b.or_(result.whole, b.shl(same, b.splat(lane)))

    each_number(b, LANES, look)
    b.ret(result.whole)


def build_math(module: ir.Module, name: str) -> None:
    """Build the function that applies a double-precision function to all lanes."""
    kind, function = vector(F64), name.split(".")[1]
    b, (values,) = begin(module, name, kind, [kind])
    if function == "exp2":
        b.ret(_exp2(b, values))
        return
    kept = Spilled(b, values)
    each_number(b, LANES, lambda lane: kept.put(lane, b.invoke(function, F64, kept.get(lane))))
    b.ret(kept.whole)


def _exp2(b: Builder, values: Value) -> Value:
    """Return powers of 2. Rounded to single precision, they are those of the C library for all operands."""
    most, least = (b.splat(F64(bound)) for bound in (_LARGEST_EXPONENT, -_LARGEST_EXPONENT))
    exponents = b.select(b.fcmp_ordered(">", values, most), most, values)
    exponents = b.select(b.fcmp_ordered("<", exponents, least), least, exponents)
    whole = b.integral("rint", exponents)
    fraction = b.fsub(exponents, whole)
    power = b.splat(F64(_EXP2[-1]))
    for coefficient in reversed(_EXP2[:-1]):
        power = b.fadd(b.fmul(power, fraction), b.splat(F64(coefficient)))
    shift = b.shl(b.fptosi(whole, vector(I64)), b.const(I64, _FRACTION_BITS))
    return b.select(b.floats("uno", values, values), values, b.as_type(b.add(b.as_integer(power), shift), F64))

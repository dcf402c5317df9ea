"""Conversions between the types of PTX (``cvt``).

There are too many pairs of types for one function each: ``converter`` gives the function for an opcode, once,
when code is generated. Operands and results are viewed as in ``integers``; f16 and bf16 are uint16 patterns, pairs
of them uint32, tf32 uint32. A result has its own type's width; extending it to a wider register is the caller's.

Recorded outputs of an H200 agree bit for bit. They don't tell when ``cvt.ftz.f32.f64`` takes a number next
below 2**-126 for subnormal; it is done as the H200 does for products (``exact.flush_rounded_f32``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.floats import canonical_f32, canonical_f64, flush_f32, two_sum
from .floats.exact import direct, flush_rounded_f32, narrow_f32, saturate
from .floats.formats import (
    limit,
    narrow,
    narrow_bf16_f32,
    narrow_f16,
    narrow_fp8,
    narrow_tf32,
    rectify,
    widen,
    widen_fp8,
)

Array = NDArray[Any]
Conversion = Callable[..., Array]

INTEGERS: dict[str, type[np.integer[Any]]] = {
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
}  # fmt: skip  # rows of a table
HALVES = ("f16", "bf16")

_TO_INTEGRAL: dict[str, np.ufunc] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def converter(
    destination: str,
    source: str,
    *,
    rounding: str = "",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    satfinite: bool = False,
) -> Conversion:
    """Return the function that does ``cvt{.rounding}{.ftz}{.sat}{.relu}{.satfinite}.destination.source``.

    The function takes one array and returns one; for ``f16x2``, ``bf16x2``, ``e4m3x2`` and ``e5m2x2`` of f32 it takes
    two, the upper one first as the opcode does. Raise ``ValueError`` for types that ``cvt`` doesn't know.
    """
    if destination in INTEGERS:
        return _float_to_integer(destination, source, rounding, ftz)
    if destination.endswith("x2") or source.endswith("x2"):
        return _pairs(destination, source, rounding, relu, satfinite)
    if destination == "tf32" and source == "f32":
        return lambda a: _tf32(a, rounding or "rna", relu)
    finish = _Finish(destination, rounding, ftz, sat, relu, satfinite)
    if source in INTEGERS:
        return _integer_to_float(source, finish)
    return _float_to_float(source, finish)


# --- to integers --------------------------------------------------------------------------------------------------


def _float_to_integer(destination: str, source: str, rounding: str, ftz: bool) -> Conversion:
    """Round to an integer and saturate.

    A NaN gives 0; but where the source is f64 or the destination has 64 bits it gives the pattern whose highest
    bit alone is set.
    """
    target = INTEGERS[destination]
    info = np.iinfo(target)
    if rounding not in _TO_INTEGRAL or source not in ("f32", "f64", *HALVES):
        raise ValueError(f"cvt from {source!r} to {destination!r} with rounding {rounding!r}")
    integral = _TO_INTEGRAL[rounding]
    special = source == "f64" or info.bits == 64
    of_nan = np.array(1 << (info.bits - 1) if special else 0, f"u{info.bits // 8}").view(target)
    # The bounds are powers of two or zero, so they are exact in every format.
    floor, bound = float(info.min), float(info.max + 1)

    def convert(a: Array) -> Array:
        if source in HALVES:
            a = widen(a, source)
        elif ftz and source == "f32":
            a = flush_f32(a)
        whole = np.asarray(integral(a))
        fits = (whole >= floor) & (whole < bound)
        # NumPy's cast is defined inside the range only.
        inside = np.where(fits, whole, whole.dtype.type(0)).astype(target)
        if fits.all():
            return inside
        above, below = whole >= bound, whole < floor
        result = np.where(above, target(info.max), np.where(below, target(info.min), inside))
        return np.where(np.isnan(whole), of_nan, result)

    return convert


# --- to floating point --------------------------------------------------------------------------------------------


class _Finish:
    """Round float64 numbers or pairs into the destination, and apply the modifiers of its opcode."""

    def __init__(self, destination: str, rounding: str, ftz: bool, sat: bool, relu: bool, satfinite: bool) -> None:
        if destination not in ("f32", "f64", *HALVES):
            raise ValueError(f"cvt has no destination type {destination!r}")
        self.destination = destination
        self.rounding = rounding or "rn"
        self.ftz, self.sat, self.relu, self.satfinite = ftz, sat, relu, satfinite

    def __call__(self, high: Array, low: Array | None = None) -> Array:
        if self.destination in HALVES:
            result = narrow(high, low, self.destination, self.rounding)
            return self._of_half(result)
        if self.destination == "f32":
            result = narrow_f32(high, low, self.rounding)
            return self.of_f32(flush_rounded_f32(result, high, low, self.rounding) if self.ftz else result)
        result = high if low is None else direct(high, low, self.rounding)
        return saturate(result) if self.sat else result

    def of_f32(self, result: Array) -> Array:
        """Flush, saturate or canonicalise float32 results."""
        if self.ftz:
            result = flush_f32(result)
        return saturate(result) if self.sat else canonical_f32(np.array(result))

    def _of_half(self, result: Array) -> Array:
        if self.sat:
            one = np.uint16(0x3C00 if self.destination == "f16" else 0x3F80)
            # Patterns grow with the number; above infinity's they are NaNs, which saturate to zero like negatives.
            infinity = np.uint16(0x7C00 if self.destination == "f16" else 0x7F80)
            result = np.where(result > infinity, np.uint16(0), np.minimum(result, one))
        if self.relu:
            result = rectify(result, self.destination)
        return limit(result, self.destination) if self.satfinite else result


def _integer_to_float(source: str, finish: _Finish) -> Conversion:
    narrow_source = source not in ("u64", "s64")
    native = {"f32": np.float32, "f64": np.float64}.get(finish.destination)
    if native is not None and finish.rounding == "rn" and not finish.sat:
        return lambda a: a.astype(native)
    if narrow_source:
        return lambda a: finish(np.asarray(a).astype(np.float64))

    def convert(a: Array) -> Array:
        # Two halves of 32 bits are exact in float64, and their sum is a pair.
        high = (a >> 32).astype(np.float64) * 2.0**32
        low = (a & a.dtype.type(0xFFFFFFFF)).astype(np.float64)
        return finish(*two_sum(high, low))

    return convert


def _float_to_float(source: str, finish: _Finish) -> Conversion:
    if source not in ("f32", "f64", *HALVES):
        raise ValueError(f"cvt has no source type {source!r}")
    destination, rounding, ftz = finish.destination, finish.rounding, finish.ftz
    integral = _TO_INTEGRAL.get(rounding)
    is_double = source == "f64"

    def convert(a: Array) -> Array:
        if source in HALVES:
            a = widen(a, source)
        elif ftz and source == "f32":
            a = flush_f32(a)
        if integral is not None:
            a = integral(a)
        if destination == "f32" and not is_double:
            return finish.of_f32(a)
        if destination in HALVES and not is_double:
            # float32 needs no way through float64 to become narrower.
            return finish(a)
        if destination == "f64" and is_double:
            return saturate(a) if finish.sat else canonical_f64(np.array(a), a)
        return finish(a.astype(np.float64))

    if integral is not None:
        # A number that is integral in its own format rounds to nearest, and exactly, in the same or a wider one.
        finish.rounding = "rn"
    return convert


def _tf32(a: Array, rounding: str, relu: bool) -> Array:
    result = narrow_tf32(a, rounding)
    # The sign of a NaN is positive.
    return np.where(result >> 31 == 1, np.uint32(0), result) if relu else result


# --- pairs --------------------------------------------------------------------------------------------------------


def _pack_16(upper: Array, lower: Array) -> Array:
    return np.left_shift(upper, 16, dtype=np.uint32) | lower


def _pairs(destination: str, source: str, rounding: str, relu: bool, satfinite: bool) -> Conversion:
    one = destination.removesuffix("x2")
    if one in HALVES and source == "f32":
        return lambda a, b: _pack_16(*(_half_of_f32(x, one, rounding or "rn", relu, satfinite) for x in (a, b)))
    if one in ("e4m3", "e5m2") and source in ("f32", "f16x2"):

        def to_bytes(*operands: Array) -> Array:
            halves = operands
            if source == "f16x2":
                word = operands[0]
                halves = tuple(widen((word >> shift).astype(np.uint16), "f16") for shift in (16, 0))
            if relu:
                halves = tuple(np.where(x < 0, np.float32(0), x) for x in halves)
            upper, lower = (narrow_fp8(x, one).astype(np.uint16) for x in halves)
            packed: Array = upper << 8 | lower
            return packed

        return to_bytes
    if destination == "f16x2" and source in ("e4m3x2", "e5m2x2"):

        def from_bytes(a: Array) -> Array:
            values = (widen_fp8((a >> shift & np.uint16(0xFF)).astype(np.uint8), source[:4]) for shift in (8, 0))
            return _pack_16(*(rectify(narrow_f16(v), "f16") if relu else narrow_f16(v) for v in values))

        return from_bytes
    raise ValueError(f"cvt does not convert {source!r} to {destination!r}")


def _half_of_f32(a: Array, kind: str, rounding: str, relu: bool, satfinite: bool) -> Array:
    result = narrow_f16(a, None, rounding) if kind == "f16" else narrow_bf16_f32(a, rounding)
    if relu:
        result = rectify(result, kind)
    return limit(result, kind) if satfinite else result

"""Conversions between integers."""

from __future__ import annotations

from .values import Value, maximum, minimum


def cvt_integer(to: str, a: Value) -> Value:
    """``cvt`` between integers: cut or extend."""
    return a.to(to)


def cvt_integer_sat(to: str, a: Value) -> Value:
    """``cvt.sat`` between integers: saturate."""
    (low, high), (least, greatest) = range_of(to), range_of(a.type)
    return _clamp(a, max(low, least), min(high, greatest)).to(to)


def range_of(type: str) -> tuple[int, int]:
    """Return the least and the greatest integer of a type."""
    bits = int(type[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if type[0] == "s" else (0, (1 << bits) - 1)


def _clamp(a: Value, low: int, high: int) -> Value:
    return maximum(minimum(a, high), low)


def cvt_pack(to: str, a: Value, b: Value, *c: Value) -> Value:
    """``cvt.pack``: saturate two integers to a few bits, the first above the second, and shift `c` above both."""
    bits = int(to[1:])
    upper, lower = ((_clamp(x, *range_of(to)) & (1 << bits) - 1).read_as("u32") for x in (a, b))
    packed = upper << bits | lower
    return packed | c[0] << 2 * bits if c else packed

"""Half precision: patterns of f16 and bf16, and pairs of them."""

from __future__ import annotations

from .values import Value, where

_LEAST = {"f16": 0x0400, "bf16": 0x0080}


def halves_of(a: Value, kind: str) -> list[Value]:
    """Return the patterns of a register: one, or the lower and the upper one of a pair."""
    return [a.to("u16"), (a >> 16).to("u16")] if kind.endswith("x2") else [a]


def joined(patterns: list[Value]) -> Value:
    """Return patterns as a register keeps them: one, or two as a pair."""
    if len(patterns) == 1:
        return patterns[0]
    low, high = (pattern.to("u32") for pattern in patterns)
    return high << 16 | low


def _flush(a: Value, kind: str) -> Value:
    """Return patterns with subnormal numbers as zeros of their sign."""
    return where((a & 0x7FFF) < _LEAST[kind], a & 0x8000, a)


def _each(kind: str, word: int) -> int:
    """Return a number of 16 bits, for pairs in both halves."""
    return word * 0x10001 if kind.endswith("x2") else word


def _flushed(kind: str, a: Value, ftz: bool) -> Value:
    if not ftz:
        return a
    return joined([_flush(pattern, kind.removesuffix("x2")) for pattern in halves_of(a, kind)])


def abs_(kind: str, a: Value, *, ftz: bool = False) -> Value:
    """``abs``: clear the sign."""
    return _flushed(kind, a, ftz) & _each(kind, 0x7FFF)


def neg(kind: str, a: Value, *, ftz: bool = False) -> Value:
    """``neg``: flip the sign."""
    return _flushed(kind, a, ftz) ^ _each(kind, 0x8000)


def to_single(a: Value, kind: str, ftz: bool = False) -> Value:
    """Return patterns in single precision; ``ftz`` takes subnormal ones for zeros."""
    if ftz:
        a = _flush(a, kind)
    bits = a.to("u32")
    if kind == "bf16":
        return (bits << 16).read_as("f32")
    # Exponent and fraction, put where single precision has its own, stand for the number divided by 2**112.
    size = (bits & 0x7FFF) << 13
    scaled = (size.read_as("f32") * _power_112(a)).read_as("u32") | (bits & 0x8000) << 16
    special = where(size > 0x7C00 << 13, bits.like(0x7FFFFFFF), scaled | 0x7F800000)
    return where(size >= 0x7C00 << 13, special, scaled).read_as("f32")


def _power_112(a: Value) -> Value:
    return Value(a.builder, "f32", known=0x77800000)

"""Patterns of halves: f16 and bf16, and pairs of them."""

from __future__ import annotations

from .values import Value, where

_LEAST = {"f16": 0x0400, "bf16": 0x0080}


def halves_of(a: Value, kind: str) -> list[Value]:
    """Return the patterns of a register: one, or the lower and the upper one of a pair."""
    return [a.to("u16"), (a >> 16).to("u16")] if kind.endswith("x2") else [a]


def joined(patterns: list[Value]) -> Value:
    """Return two patterns as a pair."""
    low, high = (pattern.to("u32") for pattern in patterns)
    return high << 16 | low


def to_single(a: Value, kind: str, ftz: bool = False) -> Value:
    """Return patterns in single precision; ``ftz`` takes subnormal ones for zeros."""
    if ftz:
        a = where((a & 0x7FFF) < _LEAST[kind], a & 0x8000, a)
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

"""Floating point: signs and classes of single and double precision."""

from __future__ import annotations

from .values import Value


def _bits(a: Value) -> Value:
    return a.read_as(f"u{a.width}")


def _flushed(a: Value, ftz: bool) -> Value:
    return a.of(a.builder.flush(a.raw)) if ftz else a


def abs_(a: Value, *, ftz: bool = False) -> Value:
    """``abs``: clear the sign; a NaN keeps its pattern."""
    return _flushed((_bits(a) & (1 << a.width - 1) - 1).read_as(a.type), ftz)


def neg(a: Value, *, ftz: bool = False) -> Value:
    """``neg``: flip the sign; a NaN keeps its pattern."""
    return _flushed((_bits(a) ^ 1 << a.width - 1).read_as(a.type), ftz)


def testp(relation: str, a: Value) -> Value:
    """``testp``: return whether a number is of a class. Zero is neither normal nor subnormal."""
    size = _bits(a) & (1 << a.width - 1) - 1
    infinity, least = (0x7F800000, 1 << 23) if a.type == "f32" else (0x7FF << 52, 1 << 52)
    match relation:
        case "finite":
            return size < infinity
        case "infinite":
            return size.equals(infinity)
        case "number":
            return size <= infinity
        case "notanumber":
            return size > infinity
        case "normal":
            # Smaller numbers wrap to the greatest integers.
            return size - least < infinity - least
    return size - 1 < least - 1


CLASSES = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"}

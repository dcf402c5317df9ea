"""Directed roundings of double precision, for which no processor has a wider type.

A result is rounded to nearest, and moved to its neighbour if the exact result is on the other side. The sign of the
residual (the exact result minus the rounded one, named `rest`) determines the side; a fused multiply-add computes the
residual. If the residual might underflow, or an operand might overflow on the way, powers of two scale both.
"""

from __future__ import annotations

from ..values import Value, where
from .rounding import direct, fused, is_negative, root, two_sum, zero_of_sum

# The residuals of numbers of at least _SMALL don't underflow. Smaller ones are scaled by _UP, once or twice. No sum
# overflows because of an addend of at most _GREAT.
_SMALL, _UP, _GREAT = 1e-270, 2.0**600, 1e270


def _directed(nearest: Value, rest: Value, rounding: str) -> Value:
    return direct(nearest.bits, rest, rounding).read_as("f64")


def _is_zero(a: Value) -> Value:
    return a.equals(a.real(0))


def _scale(a: Value) -> Value:
    return where(abs(a) < a.real(_SMALL), a.real(_UP), a.real(1))


def _ordered(a: Value, b: Value) -> tuple[Value, Value]:
    """Return the operand with the smaller magnitude, and the operand with the larger one."""
    first = abs(a) < abs(b)
    return where(first, a, b), where(first, b, a)


def _pointing_back(nearest: Value, rest: Value, *operands: Value) -> Value:
    """Return residuals that point back from the infinity where finite operands have overflowed."""
    infinity = nearest.real(float("inf"))
    overflowed = abs(nearest).equals(infinity)
    for operand in operands:
        overflowed = overflowed & (abs(operand) < infinity)
    return where(overflowed, -nearest, rest)


def add(a: Value, b: Value, rounding: str) -> Value:
    """Add."""
    total = a + b
    # With the larger addend first, the residual is exact wherever the sum is finite.
    smaller, larger = _ordered(a, b)
    rest = _pointing_back(total, smaller - (total - larger), a, b)
    return zero_of_sum(_directed(total, rest, rounding), _is_zero(total), is_negative(a) | is_negative(b), rounding)


def mul(a: Value, b: Value, rounding: str) -> Value:
    """Multiply."""
    product = a * b
    # Scaling the smaller factor can't overflow if the product is small.
    smaller, larger = _ordered(a, b)
    scale = _scale(product)
    return _directed(product, fused(smaller * scale * scale, larger, -(product * scale * scale)), rounding)


def div(a: Value, b: Value, rounding: str) -> Value:
    """Divide."""
    quotient = a / b
    scale = _scale(a)
    rest = fused(-(quotient * scale), b, a * scale)
    return _directed(quotient, where(is_negative(b), -rest, rest), rounding)


def sqrt(a: Value, rounding: str) -> Value:
    """Take the square root."""
    nearest, scale = root(a), _scale(a)
    scaled = nearest * where(scale > a.real(1), a.real(_UP**0.5), a.real(1))
    return _directed(nearest, fused(-scaled, scaled, a * scale), rounding)


def fma(a: Value, b: Value, c: Value, rounding: str) -> Value:
    """Multiply and add."""
    result, product = fused(a, b, c), a * b
    signs = is_negative(a) ^ is_negative(b)
    # If the product is too small to change the addend, only its sign matters. An infinite addend has no residual.
    alone = abs(product) < abs(c) * c.real(1e-60)
    rest = where(alone, (c - result) + _sign(a, b, signs), _rest_of_fma(a, b, c, product, result))
    rest = _pointing_back(result, rest, a, b, c)
    exact_zero = _is_zero(result) & _is_zero(rest)
    return zero_of_sum(_directed(result, rest, rounding), exact_zero, signs | is_negative(c), rounding)


def _sign(a: Value, b: Value, negative: Value) -> Value:
    """Return 1 with the sign of a product, or 0 if a factor is zero."""
    sign = where(negative, a.real(-1), a.real(1))
    return where(_is_zero(a) | _is_zero(b), a.real(0), sign)


def _rest_of_fma(a: Value, b: Value, c: Value, product: Value, result: Value) -> Value:
    """Return a number with the residual's sign, if the product isn't much smaller than the addend.

    The product's magnitude determines the scale, because the addend is at most 1e60 times as large.
    """
    small, great = abs(product) < c.real(_SMALL), abs(product) > c.real(_GREAT)
    scale = where(small, c.real(_UP), where(great, c.real(2.0**-100), c.real(1)))
    smaller, larger = _ordered(a, b)
    x, y = where(small, smaller, larger) * scale * scale, where(small, larger, smaller)
    # Scaling down could lose a small addend. It stays as it is: compared with a great product, it is so small that only
    # its sign matters.
    z = where(great & (abs(c) < c.real(1)), c, c * scale * scale)
    scaled = x * y
    error = fused(x, y, -scaled)
    high, rest = two_sum(scaled, z)
    middle, low = two_sum(rest, error)
    total, rest = two_sum(high, middle)
    rest = (total - result * scale * scale) + rest
    return where(_is_zero(rest), low, rest)

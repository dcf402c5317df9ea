"""Extended-precision integer arithmetic of PTX: sums, differences and products with a carry per lane.

A function whose opcode writes the carry flag (``.cc``) returns ``(value, carry)``; one that only reads it returns
the value. Carries are boolean arrays over the lanes, and a borrow is a true carry. Signed and unsigned opcodes do
the same to the bits; the value has the type of the first operand. 32 and 64 bits share each function.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .integers import mul_hi

Array = NDArray[Any]


def _unsigned(a: Array) -> Array:
    return a.view(np.uint64 if a.dtype.itemsize == 8 else np.uint32)


def add_cc(a: Array, b: Array) -> tuple[Array, Array]:
    """Add and give the carry (``add.cc``)."""
    total: Array = _unsigned(a) + _unsigned(b)
    return total.view(a.dtype), total < _unsigned(a)


def addc(a: Array, b: Array, carry: Array) -> Array:
    """Add two operands and the carry (``addc``)."""
    result: Array = a + b + np.asarray(carry).astype(a.dtype)
    return result


def addc_cc(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    """Add two operands and the carry, and give the new carry (``addc.cc``)."""
    partial: Array = _unsigned(a) + _unsigned(b)
    total: Array = partial + np.asarray(carry).astype(partial.dtype)
    return total.view(a.dtype), np.logical_or(partial < _unsigned(a), total < partial)


def sub_cc(a: Array, b: Array) -> tuple[Array, Array]:
    """Subtract and give the borrow (``sub.cc``)."""
    result: Array = a - b
    return result, _unsigned(a) < _unsigned(b)


def subc(a: Array, b: Array, borrow: Array) -> Array:
    """Subtract an operand and the borrow (``subc``)."""
    result: Array = a - b - np.asarray(borrow).astype(a.dtype)
    return result


def subc_cc(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    """Subtract an operand and the borrow, and give the new borrow (``subc.cc``)."""
    left, right = _unsigned(a), _unsigned(b)
    return subc(a, b, borrow), np.where(left == right, borrow, left < right)


def mad_lo_cc(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Add to the low half of a product and give the carry (``mad.lo.cc``)."""
    return add_cc(a * b, c)


def madc_lo(a: Array, b: Array, c: Array, carry: Array) -> Array:
    """Add an operand and the carry to the low half of a product (``madc.lo``)."""
    return addc(a * b, c, carry)


def madc_lo_cc(a: Array, b: Array, c: Array, carry: Array) -> tuple[Array, Array]:
    """Add an operand and the carry to the low half of a product, and give the new carry (``madc.lo.cc``)."""
    return addc_cc(a * b, c, carry)


def mad_hi_cc(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Add to the upper half of a product and give the carry (``mad.hi.cc``)."""
    return add_cc(mul_hi(a, b), c)


def madc_hi(a: Array, b: Array, c: Array, carry: Array) -> Array:
    """Add an operand and the carry to the upper half of a product (``madc.hi``)."""
    return addc(mul_hi(a, b), c, carry)


def madc_hi_cc(a: Array, b: Array, c: Array, carry: Array) -> tuple[Array, Array]:
    """Add an operand and the carry to the upper half of a product, and give the new carry (``madc.hi.cc``)."""
    return addc_cc(mul_hi(a, b), c, carry)

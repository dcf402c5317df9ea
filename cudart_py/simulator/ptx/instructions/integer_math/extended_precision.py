"""Extended-precision integer arithmetic: sums and differences of several words with the carry flag.

A lowering whose opcode reads the flag takes it last, and one whose opcode writes it returns it last. A subtraction sets
the flag to the carry of ``a + ~b + 1``, which is 1 if there was no borrow. The code that NVVM generates for 128-bit
division relies on this when it reads the flag with ``addc``.
"""

from __future__ import annotations

from ..values import Value
from .integers import mul_hi


def add_cc(a: Value, b: Value) -> tuple[Value, Value]:
    """``add.cc``: add and set the flag."""
    total = a + b
    return total, _below(total, a)


def addc(a: Value, b: Value, carry: Value) -> Value:
    """``addc``: add with the flag."""
    return a + b + carry.to(a.type)


def addc_cc(a: Value, b: Value, carry: Value) -> tuple[Value, Value]:
    """``addc.cc``: add with the flag and set it."""
    partial = a + b
    total = partial + carry.to(a.type)
    return total, _below(partial, a) | _below(total, partial)


def sub_cc(a: Value, b: Value) -> tuple[Value, Value]:
    """``sub.cc``: subtract and set the flag."""
    return a - b, ~_below(a, b)


def subc(a: Value, b: Value, carry: Value) -> Value:
    """``subc``: subtract with the flag."""
    return addc(a, ~b, carry)


def subc_cc(a: Value, b: Value, carry: Value) -> tuple[Value, Value]:
    """``subc.cc``: subtract with the flag and set it."""
    return addc_cc(a, ~b, carry)


def mad_lo_cc(a: Value, b: Value, c: Value) -> tuple[Value, Value]:
    """``mad.lo.cc``: add to the low half of the product and set the flag."""
    return add_cc(a * b, c)


def madc_lo(a: Value, b: Value, c: Value, carry: Value) -> Value:
    """``madc.lo``: add to the low half of the product with the flag."""
    return addc(a * b, c, carry)


def madc_lo_cc(a: Value, b: Value, c: Value, carry: Value) -> tuple[Value, Value]:
    """``madc.lo.cc``: add to the low half of the product with the flag and set it."""
    return addc_cc(a * b, c, carry)


def mad_hi_cc(a: Value, b: Value, c: Value) -> tuple[Value, Value]:
    """``mad.hi.cc``: add to the upper half of the product and set the flag."""
    return add_cc(mul_hi(a, b), c)


def madc_hi(a: Value, b: Value, c: Value, carry: Value) -> Value:
    """``madc.hi``: add to the upper half of the product with the flag."""
    return addc(mul_hi(a, b), c, carry)


def madc_hi_cc(a: Value, b: Value, c: Value, carry: Value) -> tuple[Value, Value]:
    """``madc.hi.cc``: add to the upper half of the product with the flag and set it."""
    return addc_cc(mul_hi(a, b), c, carry)


def _below(a: Value, b: Value) -> Value:
    unsigned = f"u{a.width}"
    return a.read_as(unsigned) < b.read_as(unsigned)

"""Extended-precision integer arithmetic: sums and differences of several words with the carry flag.

A lowering takes the flag last if its opcode reads it, and returns it last for the opcodes that write it. A subtraction
sets the flag to the carry of ``a + ~b + 1``, which is 1 if there was no borrow. The code that NVVM generates for
128-bit division relies on this when it reads the flag with ``addc``.
"""

from __future__ import annotations

from ..values import Value
from .integers import mul_hi


def add(a: Value, b: Value, *carry: Value) -> tuple[Value, Value]:
    """``add.cc``, ``addc``: add, with the flag if the opcode reads it."""
    partial = a + b
    if not carry:
        return partial, _below(partial, a)
    total = partial + carry[0].to(a.type)
    return total, _below(partial, a) | _below(total, partial)


def sub(a: Value, b: Value, *carry: Value) -> tuple[Value, Value]:
    """``sub.cc``, ``subc``: subtract, with the flag if the opcode reads it."""
    return add(a, ~b, *carry) if carry else (a - b, ~_below(a, b))


def mad_lo(a: Value, b: Value, c: Value, *carry: Value) -> tuple[Value, Value]:
    """``mad.lo.cc``, ``madc.lo``: add to the low half of the product."""
    return add(a * b, c, *carry)


def mad_hi(a: Value, b: Value, c: Value, *carry: Value) -> tuple[Value, Value]:
    """``mad.hi.cc``, ``madc.hi``: add to the upper half of the product."""
    return add(mul_hi(a, b), c, *carry)


def _below(a: Value, b: Value) -> Value:
    unsigned = f"u{a.width}"
    return a.read_as(unsigned) < b.read_as(unsigned)

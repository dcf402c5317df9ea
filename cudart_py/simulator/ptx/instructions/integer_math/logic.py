"""Logic and shifts, except for the opcodes that need only an operator."""

from __future__ import annotations

from ..values import Value, minimum


def cnot(a: Value) -> Value:
    """``cnot``: return 1 for zero and 0 for all other values."""
    return a.equals(0).to(a.type)


def lop3(a: Value, b: Value, c: Value, table: int) -> Value:
    """``lop3``: apply any function of three bits; bit ``4 * a + 2 * b + c`` of the table is its value."""
    one, zero = divmod(table, 16)
    if one == zero:
        return _two_inputs(zero, b, c)
    if zero == 0:
        return a & _two_inputs(one, b, c)
    if one + zero == 15:
        return a ^ _two_inputs(zero, b, c)
    where_zero = _two_inputs(zero, b, c)
    return where_zero ^ (a & (where_zero ^ _two_inputs(one, b, c)))


def lop3_joined(a: Value, b: Value, c: Value, table: int, truth: Value, *, join: str) -> tuple[Value, Value]:
    """``lop3.or`` and ``lop3.and``: also return whether the result isn't 0, joined with a predicate."""
    result = lop3(a, b, c, table)
    nonzero = ~result.equals(0)
    return result, nonzero | truth if join == "or" else nonzero & truth


def _two_inputs(table: int, b: Value, c: Value) -> Value:
    """Apply one of the 16 functions of two bits; bit ``2 * b + c`` of the table is its value."""
    if table >= 8:
        # The upper eight are the complements of the lower eight.
        return ~_two_inputs(15 - table, b, c)
    match table:
        case 0:
            return b.like(0)
        case 1:
            return ~(b | c)
        case 2:
            return ~b & c
        case 3:
            return ~b
        case 4:
            return b & ~c
        case 5:
            return ~c
        case 6:
            return b ^ c
        case _:
            return ~(b & c)


def shf(part: str, low: Value, high: Value, amount: Value, *, mode: str) -> Value:
    """``shf``: shift the pair left and return the upper word (``l``), or right and return the lower word (``r``)."""
    by = limited(amount, mode)
    return (high << by) | (low >> 32 - by) if part == "l" else (low >> by) | (high << 32 - by)


def limited(amount: Value, mode: str) -> Value:
    """Return an amount that is at most 32, or modulo 32 if `mode` is "wrap"."""
    return amount & 31 if mode == "wrap" else minimum(amount, 32)

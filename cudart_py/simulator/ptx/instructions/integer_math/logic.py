"""Logic and shifts."""

from __future__ import annotations

from ..values import Value, minimum


def and_(a: Value, b: Value) -> Value:
    """``and``: return the bits that are set in both."""
    return a & b


def or_(a: Value, b: Value) -> Value:
    """``or``: return the bits that are set in either."""
    return a | b


def xor(a: Value, b: Value) -> Value:
    """``xor``: return the bits that are set in exactly one."""
    return a ^ b


def not_(a: Value) -> Value:
    """``not``: return the complement."""
    return ~a


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


def shl(a: Value, amount: Value) -> Value:
    """``shl``: shift left; an amount of at least the width gives zero."""
    return a << amount


def shr(a: Value, amount: Value) -> Value:
    """``shr``: shift right; an amount of at least the width gives zero, or copies of the sign."""
    return a >> amount


def shf_l_wrap(low: Value, high: Value, amount: Value) -> Value:
    """``shf.l.wrap``: shift the pair left by the amount modulo 32 and return the upper word."""
    return _upper(low, high, amount & 31)


def shf_l_clamp(low: Value, high: Value, amount: Value) -> Value:
    """``shf.l.clamp``: shift the pair left by at most 32 and return the upper word."""
    return _upper(low, high, minimum(amount, 32))


def shf_r_wrap(low: Value, high: Value, amount: Value) -> Value:
    """``shf.r.wrap``: shift the pair right by the amount modulo 32 and return the lower word."""
    return _lower(low, high, amount & 31)


def shf_r_clamp(low: Value, high: Value, amount: Value) -> Value:
    """``shf.r.clamp``: shift the pair right by at most 32 and return the lower word."""
    return _lower(low, high, minimum(amount, 32))


def _upper(low: Value, high: Value, by: Value) -> Value:
    return (high << by) | (low >> 32 - by)


def _lower(low: Value, high: Value, by: Value) -> Value:
    return (low >> by) | (high << 32 - by)

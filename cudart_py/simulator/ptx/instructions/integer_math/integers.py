"""Integer arithmetic: sums, products, division, minima and maxima, bit fields, and bit counts.

One lowering serves all integer types of its opcode, because operators follow the types of the operands. Some opcodes
need only an operator. The modifiers ``sat``, ``relu`` and ``shiftamt``, and the modes of bit fields, are keyword
arguments.
"""

from __future__ import annotations

import operator

from ..conversions import cvt_integer_sat
from ..values import Value, maximum, minimum, where, wide_product
from .logic import limited

_ALL = 0xFFFFFFFF


# --- sums and products --------------------------------------------------------------------------------------------


def saturated(name: str, a: Value, b: Value) -> Value:
    """``add.sat.s32``, ``sub.sat.s32``: saturate."""
    a, b = a.to("s64"), b.to("s64")
    return cvt_integer_sat("s32", a + b if name == "add" else a - b)


def add_16x2(a: Value, b: Value) -> Value:
    """``add.u16x2``, ``add.s16x2``: add both halves separately."""
    high = 0xFFFF0000
    return ((a & high) + (b & high)) | ((a + b) & 0xFFFF)


def mul_hi(a: Value, b: Value) -> Value:
    """``mul.hi``: return the upper half of the product."""
    if a.width == 64:
        return a.of(a.builder.high_product(a.raw, b.raw, a.signed))
    return (wide_product(a, b) >> a.width).to(a.type)


def _product_24(a: Value, b: Value) -> Value:
    """Return the 48-bit products of the low 24 bits, signed or unsigned as the type is."""
    a, b = ((x.to(x.type[0] + "64") << 40) >> 40 for x in (a, b))
    return a * b


def mul24(part: str, a: Value, b: Value) -> Value:
    """``mul24``: return bits 0 to 31 of the product (``lo``), or bits 16 to 47 (``hi``)."""
    return (_product_24(a, b) >> (16 if part == "hi" else 0)).to(a.type)


def mad(name: str, part: str, a: Value, b: Value, c: Value, *, sat: bool = False) -> Value:
    """``mad`` of integers, ``mad24``: add to a part of the product (``lo``, ``hi``), or to the whole one (``wide``)."""
    if sat:
        product = _product_24(a, b) >> 16 if name == "mad24" else wide_product(a, b) >> 32
        return cvt_integer_sat("s32", product + c.to("s64"))
    return (mul24(part, a, b) if name == "mad24" else _PRODUCTS[part](a, b)) + c


_PRODUCTS = {"lo": operator.mul, "hi": mul_hi, "wide": wide_product}


def sad(a: Value, b: Value, c: Value) -> Value:
    """``sad``: add the absolute difference of the first two operands to the third."""
    return maximum(a, b) - minimum(a, b) + c


# --- other arithmetic ---------------------------------------------------------------------------------------------


def div(a: Value, b: Value) -> Value:
    """``div``: round toward zero.

    PTX leaves division by zero undefined. Machine code from NVIDIA's compiler returns all ones for 32 and 64 bits, so
    this does for every width. The smallest integer divided by -1 wraps to itself.
    """
    return where(b.equals(0), b.like(-1), _quotient(a, b))


def rem(a: Value, b: Value) -> Value:
    """``rem``: return the remainder with the dividend's sign; for a division by zero, all ones."""
    return where(b.equals(0), b.like(-1), a - _quotient(a, b) * b)


def _quotient(a: Value, b: Value) -> Value:
    return a.of(a.builder.quotient(a.raw, b.raw, a.signed))


def abs_(a: Value) -> Value:
    """``abs``: return the magnitude; the smallest integer stays as it is."""
    return maximum(a, -a)


def extreme(name: str, a: Value, b: Value, *, relu: bool = False) -> Value:
    """``min``, ``max``: return the smaller or the larger operand, with ``relu`` at least 0."""
    chosen = minimum(a, b) if name == "min" else maximum(a, b)
    return maximum(chosen, 0) if relu else chosen


def extreme_16x2(name: str, a: Value, b: Value, *, relu: bool = False) -> Value:
    """``min.u16x2``, ``max.s16x2`` and so on: return the smaller or the larger of each pair of halves."""
    low, high = (extreme(name, piece(a, i, 16), piece(b, i, 16), relu=relu) for i in range(2))
    return high << 16 | (low & 0xFFFF)


def piece(a: Value, index: int, bits: int) -> Value:
    """Return one byte or half of a word in 32 bits, extended with zeros or the sign as the type says."""
    return (a << 32 - bits * (index + 1)) >> 32 - bits


def _dot(pieces: list[tuple[Value, Value]], c: Value) -> Value:
    # The pieces fit a signed and an unsigned type, and the sum wraps.
    for left, right in pieces:
        c = c + left.read_as(c.type) * right.read_as(c.type)
    return c


def dp4a(a: Value, b: Value, c: Value) -> Value:
    """``dp4a``: add the products of four byte pairs, each operand's bytes with the sign of its own type."""
    return _dot([(piece(a, i, 8), piece(b, i, 8)) for i in range(4)], c)


def dp2a(part: str, a: Value, b: Value, c: Value) -> Value:
    """``dp2a``: add the products of both halves of `a` and the two low (``lo``) or high (``hi``) bytes of `b`."""
    first = 2 if part == "hi" else 0
    return _dot([(piece(a, i, 16), piece(b, first + i, 8)) for i in range(2)], c)


# --- several words ------------------------------------------------------------------------------------------------

# A lowering takes the carry flag last if its opcode reads it, and returns it last for the opcodes that write it. A
# subtraction sets the flag to the carry of ``a + ~b + 1``, which is 1 if there was no borrow. The code that NVVM
# generates for 128-bit division relies on this when it reads the flag with ``addc``.


def add_with_carry(a: Value, b: Value, *carry: Value) -> tuple[Value, Value]:
    """``add.cc``, ``addc``: add, with the flag if the opcode reads it."""
    partial = a + b
    if not carry:
        return partial, _below(partial, a)
    total = partial + carry[0].to(a.type)
    return total, _below(partial, a) | _below(total, partial)


def sub_with_carry(a: Value, b: Value, *carry: Value) -> tuple[Value, Value]:
    """``sub.cc``, ``subc``: subtract, with the flag if the opcode reads it."""
    return add_with_carry(a, ~b, *carry) if carry else (a - b, ~_below(a, b))


def _below(a: Value, b: Value) -> Value:
    unsigned = f"u{a.width}"
    return a.read_as(unsigned) < b.read_as(unsigned)


def mad_with_carry(part: str, a: Value, b: Value, c: Value, *carry: Value) -> tuple[Value, Value]:
    """``mad.cc``, ``madc``: add to the low half of the product (``lo``), or to the upper half (``hi``)."""
    return add_with_carry(_PRODUCTS[part](a, b), c, *carry)


# --- bit fields ---------------------------------------------------------------------------------------------------


def _counted(a: Value, number: Value) -> Value:
    """Return the bits of a position or a length that have an effect: the manual says the low eight.

    An H200 uses all bits if the operand has 64 bits, as recorded outputs of bfe and bfi show.
    """
    return number.to("u64") if a.width == 64 else number & 0xFF


def _low_mask(count: Value) -> Value:
    return (count.like(1) << count) - 1


def bfe(a: Value, position: Value, length: Value) -> Value:
    """``bfe``: extract a field; bits beyond the top are zero, or copies of a signed operand's sign."""
    position, length = _counted(a, position), _counted(a, length)
    field = a >> position
    if not a.signed:
        return field & _low_mask(length)
    # The shift has already filled the bits beyond the top with the sign.
    spare = a.width - minimum(length, a.width)
    return (field << spare) >> spare


def bfi(a: Value, b: Value, position: Value, length: Value) -> Value:
    """``bfi``: insert the low bits of `a` into `b`; bits beyond the top are lost."""
    position, length = _counted(a, position), _counted(a, length)
    mask = _low_mask(length) << position
    return (b & ~mask) | ((a << position) & mask)


def bmsk(position: Value, count: Value, *, mode: str) -> Value:
    """``bmsk``: return a mask of `count` ones from `position`, both modulo 32 if `mode` is "wrap".

    Bits beyond the top are lost.
    """
    if mode == "wrap":
        position, count = position & 31, count & 31
    return _low_mask(count) << position


def szext(a: Value, count: Value, *, mode: str) -> Value:
    """``szext``: extend the low `count` bits, at most 32, or modulo 32 if `mode` is "wrap", with zeros or the sign."""
    spare = 32 - limited(count, mode)
    return (a << spare) >> spare


# --- counts and searches ------------------------------------------------------------------------------------------


def popc(a: Value) -> Value:
    """``popc``: count the set bits."""
    return a.of(a.builder.count_ones(a.raw), "u32")


def clz(a: Value) -> Value:
    """``clz``: count the leading zeros."""
    return a.of(a.builder.count_leading_zeros(a.raw), "u32")


def bfind(a: Value, *, shiftamt: bool = False) -> Value:
    """``bfind``: return the position of the highest set bit, or all ones if there is none.

    In a negative number, the highest zero bit counts instead. With ``shiftamt``, the result is the left shift that
    brings the bit to the top.
    """
    if a.signed:
        a = where(a < 0, ~a, a)
    zeros = clz(a)
    return where(a.equals(0), zeros.like(_ALL), zeros if shiftamt else a.width - 1 - zeros)


def brev(a: Value) -> Value:
    """``brev``: reverse the order of the bits."""
    return a.of(a.builder.reverse_bits(a.raw))


def fns(mask: Value, base: Value, offset: Value) -> Value:
    """``fns``: find the n-th set bit from a base position, upward or downward by the sign of `offset`.

    Offset 0 asks whether the base bit itself is set. The result is all ones if there is no such bit.
    """
    wanted = maximum(maximum(offset, -offset).read_as("u32"), 1)
    step = where(offset < 0, offset.like(-1), 1).read_as("u32")
    position, result = base, base.like(_ALL)
    for _ in range(32):
        # No bit is set beyond either end: an unsigned position below 0 is a large one.
        wanted = wanted - (mask >> position & 1)
        result = where(wanted.equals(0) & result.equals(_ALL), position, result)
        position = where(offset.equals(0), position.like(_ALL), position + step)
    return result

"""Bit fields, bit counts, byte permutation and three-input logic of PTX over arrays of lanes.

The conventions are those of ``integers``: a function is named after its opcode, operands are arrays over the lanes
or NumPy scalars viewed as the operand's type, and the result is a new array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_ALL_32 = np.uint32(0xFFFFFFFF)


def _low_mask(count: Array, dtype: np.dtype[Any]) -> Array:
    """Make masks of ``count`` low ones; NumPy's left shift by the width or more is zero, so those are all ones."""
    one = np.ones((), dtype)
    result: Array = np.left_shift(one, count.astype(dtype)) - one
    return result


# --- fields -------------------------------------------------------------------------------------------------------


def _counted(a: Array, value: Array) -> Array:
    """Give what counts of a position or a length: the manual says the low eight bits.

    An H200 takes them whole where the field has 64 bits, as recorded outputs of bfe and bfi show.
    """
    return value if a.dtype.itemsize == 8 else value & np.uint32(0xFF)


def bfe_unsigned(a: Array, position: Array, length: Array) -> Array:
    """Extract a bit field; bits beyond the top are zero (``bfe.u32``, ``bfe.u64``)."""
    position, length = _counted(a, position), _counted(a, length)
    result: Array = np.right_shift(a, position.astype(a.dtype)) & _low_mask(length, a.dtype)
    return result


def bfe_signed(a: Array, position: Array, length: Array) -> Array:
    """Extract a bit field and extend its sign; bits beyond the top repeat the sign (``bfe.s32``, ``bfe.s64``)."""
    width = a.dtype.itemsize * 8
    position, length = _counted(a, position), _counted(a, length)
    spare = np.maximum(width - length.astype(a.dtype), 0)
    # An arithmetic shift already repeats the sign beyond the top; two more shifts cut the field and extend it.
    field = np.right_shift(a, position.astype(a.dtype))
    result: Array = np.right_shift(np.left_shift(field, spare), spare)
    # With length 0 the first of those shifts is by the whole width, which leaves the wanted zero.
    return result


def _insert(a: Array, b: Array, position: Array, length: Array) -> Array:
    shift = position.astype(a.dtype)
    mask = np.left_shift(_low_mask(length, a.dtype), shift)
    result: Array = (b & ~mask) | (np.left_shift(a, shift) & mask)
    return result


def bfi(a: Array, b: Array, position: Array, length: Array) -> Array:
    """Insert the low bits of ``a`` into ``b``; what would pass the top is lost (``bfi.b32``, ``bfi.b64``)."""
    return _insert(a, b, _counted(a, position), _counted(a, length))


def _bmsk(position: Array, width: Array, outside: Array | bool, whole: Array | bool) -> Array:
    first = position & np.uint32(31)
    count = width & np.uint32(31)
    stop = first + count
    above = np.left_shift(_ALL_32, stop)
    mask = np.left_shift(_ALL_32, first) & ~np.where(whole, np.uint32(0), above)
    return np.where(outside, np.uint32(0), mask).astype(np.uint32)


def bmsk_clamp_b32(position: Array, width: Array) -> Array:
    """Make a mask of ``width`` ones from ``position``, both clamped to 32 (``bmsk.clamp.b32``)."""
    return _bmsk(position, width, position >= 32, width >= 32)


def bmsk_wrap_b32(position: Array, width: Array) -> Array:
    """Make a mask of ``width`` ones from ``position``, both modulo 32 (``bmsk.wrap.b32``)."""
    return _bmsk(position, width, False, False)


def _szext(a: Array, width: Array) -> Array:
    spare = (np.uint32(32) - width).astype(a.dtype)
    result: Array = np.right_shift(np.left_shift(a, spare), spare)
    return result


def szext_clamp(a: Array, width: Array) -> Array:
    """Extend the low ``width`` bits, at most 32, by sign or zero after the type (``szext.clamp``)."""
    return _szext(a, np.minimum(width, np.uint32(32)))


def szext_wrap(a: Array, width: Array) -> Array:
    """Extend the low ``width`` modulo 32 bits by sign or zero after the type (``szext.wrap``)."""
    return _szext(a, width & np.uint32(31))


# --- counts and searches ------------------------------------------------------------------------------------------


def popc(a: Array) -> Array:
    """Count the ones, as u32 (``popc.b32``, ``popc.b64``)."""
    return np.bitwise_count(a).astype(np.uint32)


def clz_b32(a: Array) -> Array:
    """Count the leading zeros; zero has 32 (``clz.b32``)."""
    # A 32-bit integer is exact in float64, so its exponent is the position of its highest one.
    exponent = np.asarray(a.astype(np.float64)).view(np.int64) >> 52
    return np.where(np.equal(a, 0), 32, 1023 + 31 - exponent).astype(np.uint32)


def clz_b64(a: Array) -> Array:
    """Count the leading zeros, as u32; zero has 64 (``clz.b64``)."""
    high = (a >> 32).astype(np.uint32)
    low = a.astype(np.uint32)
    return np.where(np.equal(high, 0), clz_b32(low) + np.uint32(32), clz_b32(high))


def _bfind(a: Array, shiftamt: bool) -> Array:
    wide = a.dtype.itemsize == 8
    if a.dtype.kind == "i":
        # For a negative number the highest zero counts; the shift makes all ones of a sign.
        a = a ^ (a >> (63 if wide else 31))
    bits = a.view(np.uint64 if wide else np.uint32)
    zeros = clz_b64(bits) if wide else clz_b32(bits)
    top = np.uint32(63 if wide else 31)
    return np.where(np.equal(bits, 0), _ALL_32, zeros if shiftamt else top - zeros)


def bfind(a: Array) -> Array:
    """Give the position of the highest one (of a negative number: zero), or all ones, as u32 (``bfind``)."""
    return _bfind(a, shiftamt=False)


def bfind_shiftamt(a: Array) -> Array:
    """Give the left shift that brings what ``bfind`` finds to the top, or all ones (``bfind.shiftamt``)."""
    return _bfind(a, shiftamt=True)


def brev_b32(a: Array) -> Array:
    """Reverse the order of the 32 bits (``brev.b32``)."""
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F)):
        a = ((a >> shift) & np.uint32(mask)) | ((a & np.uint32(mask)) << shift)
    return np.asarray(a).byteswap()


def brev_b64(a: Array) -> Array:
    """Reverse the order of the 64 bits (``brev.b64``)."""
    for shift, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F)):
        a = ((a >> shift) & np.uint64(mask)) | ((a & np.uint64(mask)) << shift)
    return np.asarray(a).byteswap()


def fns_b32(mask: Array, base: Array, offset: Array) -> Array:
    """Find the n-th one from a base position, upward or downward by the sign of ``offset`` (``fns.b32``).

    ``base`` is u32 below 32, ``offset`` s32; offset 0 asks whether the base bit itself is set. Nothing found gives
    all ones.
    """
    mask, base, offset = np.broadcast_arrays(mask, base, offset)
    result = np.full(mask.shape, _ALL_32)
    wanted = np.maximum(np.abs(offset.astype(np.int64)), 1)
    step = np.sign(offset.astype(np.int64))
    position = base.astype(np.int64)
    for _ in range(32):
        inside = (position >= 0) & (position < 32)
        place = np.where(inside, position, 0).astype(np.uint32)
        wanted = wanted - (inside & ((mask >> place) & np.uint32(1) == 1))
        result = np.where((wanted == 0) & (result == _ALL_32), place, result)
        # Offset 0 looks at the base only: leave the word after the first round.
        position = np.where(step == 0, 32, position + step)
    return result


# --- permutation and logic ----------------------------------------------------------------------------------------


def prmt_b32(a: Array, b: Array, selectors: Array) -> Array:
    """Pick four bytes of the pair by nibbles, whose top bit asks for the byte's sign instead (``prmt.b32``)."""
    if selectors.ndim == 0:
        return _permuted(a, b, int(selectors))
    joined = np.left_shift(b, 32, dtype=np.uint64) | a
    result: Array = np.zeros((), np.uint32)
    for index in range(4):
        selector = selectors >> (4 * index)
        byte = np.right_shift(joined, (selector & np.uint32(7)) << 3).astype(np.uint32) & np.uint32(0xFF)
        sign = np.where(selector & np.uint32(8), np.uint32(1), np.uint32(0))
        # The sign of a byte, spread over eight bits, is its top bit times 255.
        byte = np.where(sign, (byte >> 7) * np.uint32(0xFF), byte)
        result = result | byte << (8 * index)
    return result


def _permuted(a: Array, b: Array, selectors: int) -> Array:
    """Pick bytes by one selector for all lanes, as compilers write it."""
    result: Array = np.zeros((), np.uint32)
    for index in range(4):
        selector = selectors >> (4 * index) & 15
        byte = (b if selector & 4 else a) >> np.uint32(8 * (selector & 3)) & np.uint32(0xFF)
        if selector & 8:
            byte = (byte >> np.uint32(7)) * np.uint32(0xFF)
        result = result | byte << np.uint32(8 * index)
    shape = np.broadcast(a, b).shape
    # The word with the lanes may be one that no byte was taken from.
    return result if result.shape == shape else np.full(shape, result)


def _prmt_mode(a: Array, b: Array, bytes_: list[Array]) -> Array:
    selectors = bytes_[0] | bytes_[1] << 4 | bytes_[2] << 8 | bytes_[3] << 12
    return prmt_b32(a, b, selectors)


def prmt_b32_f4e(a: Array, b: Array, selector: Array) -> Array:
    """Extract four bytes upward from the selected one (``prmt.b32.f4e``)."""
    first = selector & np.uint32(3)
    return _prmt_mode(a, b, [first + np.uint32(i) for i in range(4)])


def prmt_b32_b4e(a: Array, b: Array, selector: Array) -> Array:
    """Extract four bytes downward from the selected one, around the pair (``prmt.b32.b4e``)."""
    first = selector & np.uint32(3)
    return _prmt_mode(a, b, [(first - np.uint32(i)) & np.uint32(7) for i in range(4)])


def prmt_b32_rc8(a: Array, b: Array, selector: Array) -> Array:
    """Replicate the selected byte four times (``prmt.b32.rc8``)."""
    return _prmt_mode(a, b, [selector & np.uint32(3)] * 4)


def prmt_b32_ecl(a: Array, b: Array, selector: Array) -> Array:
    """Clamp byte positions from below to the selected one (``prmt.b32.ecl``)."""
    return _prmt_mode(a, b, [np.maximum(selector & np.uint32(3), np.uint32(i)) for i in range(4)])


def prmt_b32_ecr(a: Array, b: Array, selector: Array) -> Array:
    """Clamp byte positions from above to the selected one (``prmt.b32.ecr``)."""
    return _prmt_mode(a, b, [np.minimum(selector & np.uint32(3), np.uint32(i)) for i in range(4)])


def prmt_b32_rc16(a: Array, b: Array, selector: Array) -> Array:
    """Replicate the selected half twice (``prmt.b32.rc16``)."""
    first = (selector & np.uint32(1)) << 1
    return _prmt_mode(a, b, [first + np.uint32(i & 1) for i in range(4)])


def _two_inputs(table: int, b: Array, c: Array) -> Array:
    """Apply one of the 16 functions of two inputs; bit ``2 * b + c`` of the table is its value."""
    if table >= 8:
        # The upper eight are the complements of the lower eight.
        return ~_two_inputs(15 - table, b, c)
    result: Array
    match table:
        case 0:
            result = np.zeros((), np.uint32)
        case 1:
            result = ~(b | c)
        case 2:
            result = ~b & c
        case 3:
            result = ~b
        case 4:
            result = b & ~c
        case 5:
            result = ~c
        case 6:
            result = b ^ c
        case _:
            result = ~(b & c)
    return result


def lop3_b32(a: Array, b: Array, c: Array, table: int) -> Array:
    """Apply any function of three inputs, bit by bit (``lop3.b32``).

    ``table`` is the opcode's immediate: bit ``4 * a + 2 * b + c`` is the value for those input bits.
    """
    where_zero = _two_inputs(table & 15, b, c)
    where_one = _two_inputs(table >> 4 & 15, b, c)
    if table & 15 == table >> 4 & 15:
        result: Array = where_zero | (a & np.uint32(0))
    elif (table & 15) == 0:
        result = a & where_one
    elif (table & 15) ^ (table >> 4 & 15) == 15:
        result = a ^ where_zero
    else:
        result = where_zero ^ (a & (where_zero ^ where_one))
    return result


# --- one name for each opcode -------------------------------------------------------------------------------------

bfi_b32 = bfi_b64 = bfi
bfe_u32 = bfe_u64 = bfe_unsigned
bfe_s32 = bfe_s64 = bfe_signed
szext_clamp_u32 = szext_clamp_s32 = szext_clamp
szext_wrap_u32 = szext_wrap_s32 = szext_wrap
popc_b32 = popc_b64 = popc
bfind_u32 = bfind_s32 = bfind_u64 = bfind_s64 = bfind
bfind_shiftamt_u32 = bfind_shiftamt_s32 = bfind_shiftamt_u64 = bfind_shiftamt_s64 = bfind_shiftamt

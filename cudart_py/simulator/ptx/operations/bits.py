"""Bit fields, bit counts, byte permutation and three-input logic of PTX over arrays of lanes.

The conventions are those of ``integers``: operands are arrays over the lanes or NumPy scalars viewed as the operand's
type, and the result is a new array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_ALL_32 = np.uint32(0xFFFFFFFF)


def _low_mask(count: Array, dtype: np.dtype[Any]) -> Array:
    """Return masks of ``count`` low ones; NumPy's left shift by the width or more is zero, so those are all ones."""
    one = np.ones((), dtype)
    result: Array = np.left_shift(one, count.astype(dtype)) - one
    return result


# --- fields -------------------------------------------------------------------------------------------------------


def _counted(a: Array, value: Array) -> Array:
    """Return what counts of a position or a length: the manual says the low eight bits.

    An H200 takes them whole where the field has 64 bits, as recorded outputs of bfe and bfi show.
    """
    return value if a.dtype.itemsize == 8 else value & np.uint32(0xFF)


def bfe(a: Array, position: Array, length: Array) -> Array:
    """Extract a bit field (``bfe``); bits beyond the top are zero, or the sign of a signed operand."""
    return _signed_field(a, position, length) if a.dtype.kind == "i" else _unsigned_field(a, position, length)


def _unsigned_field(a: Array, position: Array, length: Array) -> Array:
    position, length = _counted(a, position), _counted(a, length)
    result: Array = np.right_shift(a, position.astype(a.dtype)) & _low_mask(length, a.dtype)
    return result


def _signed_field(a: Array, position: Array, length: Array) -> Array:
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


def bmsk_clamp(position: Array, width: Array) -> Array:
    """Return a mask of ``width`` ones from ``position``, both clamped to 32 (``bmsk.clamp.b32``)."""
    return _bmsk(position, width, position >= 32, width >= 32)


def bmsk_wrap(position: Array, width: Array) -> Array:
    """Return a mask of ``width`` ones from ``position``, both modulo 32 (``bmsk.wrap.b32``)."""
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


def clz(a: Array) -> Array:
    """Count the leading zeros of words of 32 or 64 bits, as u32 (``clz``); zero has them all."""
    if a.dtype.itemsize == 8:
        high, low = (a >> 32).astype(np.uint32), a.astype(np.uint32)
        return np.where(np.equal(high, 0), clz(low) + np.uint32(32), clz(high))
    # A 32-bit integer is exact in float64, so its exponent is the position of its highest one.
    exponent = np.asarray(a.astype(np.float64)).view(np.int64) >> 52
    return np.where(np.equal(a, 0), 32, 1023 + 31 - exponent).astype(np.uint32)


def bfind(a: Array, *, shiftamt: bool = False) -> Array:
    """Return the position of the highest one (of a negative number: zero), or all ones, as u32 (``bfind``).

    With ``shiftamt`` it is the left shift that brings that bit to the top.
    """
    wide = a.dtype.itemsize == 8
    if a.dtype.kind == "i":
        # For a negative number the highest zero counts.
        a = np.where(a < 0, ~a, a)
    bits = a.view(np.uint64 if wide else np.uint32)
    zeros = clz(bits)
    top = np.uint32(63 if wide else 31)
    return np.where(np.equal(bits, 0), _ALL_32, zeros if shiftamt else top - zeros)


def brev(a: Array) -> Array:
    """Reverse the order of the bits (``brev``)."""
    for shift, byte in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        mask = a.dtype.type(int.from_bytes(bytes([byte] * a.dtype.itemsize)))
        a = ((a >> shift) & mask) | ((a & mask) << shift)
    return np.asarray(a).byteswap()


def fns(mask: Array, base: Array, offset: Array) -> Array:
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


def prmt(a: Array, b: Array, selectors: Array, *, mode: str = "") -> Array:
    """Pick four bytes of the pair by nibbles, whose top bit asks for the byte's sign instead (``prmt.b32``).

    A `mode` makes the nibbles of the selector's low bits: "f4e" and "b4e" extract four bytes upward and downward from
    the selected one, "rc8" and "rc16" replicate a byte and a half, and "ecl" and "ecr" clamp the positions of bytes
    to the selected one from below and from above.
    """
    if mode:
        selectors = _nibbles(selectors, mode)
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


def _nibbles(selectors: Array, mode: str) -> Array:
    """Return the selectors of four bytes that a mode of `prmt` stands for."""
    result: Array = np.zeros((), np.uint32)
    for index in range(4):
        place, chosen = np.uint32(index), selectors & np.uint32(3)
        if mode == "f4e":
            byte = chosen + place
        elif mode == "b4e":
            byte = (chosen - place) & np.uint32(7)
        elif mode == "rc8":
            byte = chosen
        elif mode == "rc16":
            byte = (selectors & np.uint32(1)) << np.uint32(1) | place & np.uint32(1)
        elif mode == "ecl":
            byte = np.maximum(chosen, place)
        else:
            byte = np.minimum(chosen, place)
        result = result | byte << np.uint32(4 * index)
    return result


def _two_inputs(table: int, b: Any, c: Any) -> Any:
    """Apply one of the 16 functions of two inputs; bit ``2 * b + c`` of the table is its value."""
    if table >= 8:
        # The upper eight are the complements of the lower eight.
        return ~_two_inputs(15 - table, b, c)
    match table:
        case 0:
            result = np.uint32(0)
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


def lop3(a: Array, b: Array, c: Array, table: int) -> Array:
    """Apply any function of three inputs, bit by bit (``lop3.b32``).

    ``table`` is the opcode's immediate: bit ``4 * a + 2 * b + c`` is the value for those input bits.
    """
    one, zero = divmod(table, 16)
    where_zero = _two_inputs(zero, b, c)
    where_one = _two_inputs(one, b, c)
    if one == zero:
        result = where_zero
    elif zero == 0:
        result = a & where_one
    elif one + zero == 15:
        result = a ^ where_zero
    else:
        result = where_zero ^ (a & (where_zero ^ where_one))
    # The table may leave out inputs, but the result has the shape of all three.
    shape = np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(c))
    return result if np.shape(result) == shape else np.broadcast_to(result, shape).copy()

"""The layout in shared memory of the matrices that ``wgmma`` descriptors describe.

A descriptor has 64 bits. The start address has 14 bits from bit 0, the leading dimension byte offset 14 bits from bit
16, and the stride dimension byte offset 14 bits from bit 32, all in units of 16 bytes. The base offset has 3 bits from
bit 49, and the two highest bits are the swizzling mode.

The elements of a row are contiguous, or the elements of a column if the matrix is turned. A piece consists of
consecutive units of 16 bytes, as many as the mode says; eight consecutive pieces form an atom. Swizzling XORs bits 4 to
6 of an address with its bits 7 to 9; narrower modes use fewer of them. The PTX manual describes the layouts in "Shared
Memory Matrix Layout".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# The number of bytes that the asynchronous proxy reads and writes at once. Addresses and sizes are multiples of it.
UNIT = 16
_ROWS = 8
# The units of a piece for each swizzling mode: none, 128 bytes, 64 bytes, and 32 bytes.
_WIDTHS = np.array([1, 8, 4, 2], np.int64)


def unit_addresses(descriptors: Array, units: int, lines: int, *, turned: bool) -> Array:
    """Return the addresses in shared memory of the matrices' units, of the shape (matrices, lines, units).

    A matrix has `lines` rows of `units` units each. A turned matrix has `lines` columns instead; `lines` is then the
    depth K. Raises ValueError for a descriptor with a base offset.
    """
    fields = descriptors.astype(np.uint64)

    def field(low: int, bits: int) -> Array:
        values: Array = (fields >> np.uint64(low) & np.uint64((1 << bits) - 1)).astype(np.int64)
        return values[:, None, None]

    if field(49, 3).any():
        raise ValueError("a base offset")
    start, leading, stride = (field(low, 14) * UNIT for low in (0, 16, 32))
    width = _WIDTHS[field(62, 2)]
    unit, line = np.arange(units), np.arange(lines)[:, None]
    # Within an atom, lines are one piece apart.
    inside = line % _ROWS * width * UNIT
    beside = unit % width * UNIT
    plain = width == 1
    if turned:
        # Along a column, atoms are the leading offset apart, and along K the stride offset. Without swizzling, the two
        # offsets are swapped.
        across, along = np.where(plain, stride, leading), np.where(plain, leading, stride)
        places = start + inside + beside + line // _ROWS * along + unit // width * across
    else:
        # Without swizzling, a row's units are the leading offset apart; otherwise they are contiguous.
        places = start + inside + line // _ROWS * stride + np.where(plain, unit * leading, unit * UNIT)
    return swizzled(places, width)


def swizzled(places: Array, width: Any) -> Array:
    """Return addresses in shared memory after swizzling pieces of `width` units, a power of two."""
    found: Array = places ^ ((places >> 7 & (width - 1)) << 4)
    return found

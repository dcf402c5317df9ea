"""The places of matrices in shared memory that a descriptor of ``wgmma`` names.

A descriptor has 64 bits. From bit 0 it has 14 bits of the first address, from bit 16 as many of the leading distance,
and from bit 32 of the stride distance, all in units of 16 bytes; from bit 49 the base offset; and in the two highest
bits the mode of swizzling. The elements of a row lie together, or those of a column where the matrix is turned. Units
of 16 bytes, as many as the mode says, follow one another in a piece; eight pieces, one behind the other, are an atom.
Swizzling changes the bits 4 to 6 of an address by its bits 7 to 9, and a narrower mode takes fewer of them. The layouts
are those of the PTX manual, "Shared Memory Matrix Layout".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# What the asynchronous proxy reads and writes at once: addresses and sizes are multiples of it.
UNIT = 16
_ROWS = 8
# The units of a piece by the mode of swizzling: none, 128 bytes, 64, and 32.
_WIDTHS = np.array([1, 8, 4, 2], np.int64)


def unit_addresses(descriptors: Array, units: int, lines: int, *, turned: bool) -> Array:
    """Return the addresses in shared memory of a matrix's units, of the shape (matrices, lines, units).

    `units` are those of a row, of `lines` rows; of a turned matrix those of a column, where `lines` is the depth. A
    descriptor with a base offset is a ValueError.
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
    # Within an atom, lines lie one piece apart.
    inside = line % _ROWS * width * UNIT
    beside = unit % width * UNIT
    plain = width == 1
    if turned:
        # Along the columns atoms lie the leading distance apart, along the depth the stride; without swizzling the
        # two have changed places.
        across, along = np.where(plain, stride, leading), np.where(plain, leading, stride)
        places = start + inside + beside + line // _ROWS * along + unit // width * across
    else:
        # Without swizzling, a row's units lie the leading distance apart; else a row goes on in its piece.
        places = start + inside + line // _ROWS * stride + np.where(plain, unit * leading, unit * UNIT)
    swizzled: Array = places ^ ((places >> 7 & (width - 1)) << 4)
    return swizzled

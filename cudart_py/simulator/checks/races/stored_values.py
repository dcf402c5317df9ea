"""The values that lanes store: which of them memory already contains, and which differ between lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accesses import Footprint

Array = NDArray[Any]
ndarray = np.ndarray

_WORD_BYTES = 4


def unchanged_pieces(footprint: Footprint) -> Array | None:
    """Return a mask of the pieces whose values a store leaves unchanged, or None if that can't be determined.

    The pieces of a word count together, because machine code compares no smaller parts of a value.
    """
    access, lanes, each = footprint.access, footprint.lanes, footprint.each
    places = access.address.places
    if places.__class__ is not ndarray:
        places = np.full(lanes, places)
    parts, offset = [], access.offset
    for value in access.values:
        if value.dtype.itemsize > 8 or (value.__class__ is ndarray and len(value) != lanes):
            return None
        size = min(value.dtype.itemsize, max(access.size // each, _WORD_BYTES))
        stored = value if value.__class__ is ndarray else np.full(lanes, value)
        for part in stored.view(f"u{size}").reshape(lanes, -1).T:
            index = (places + offset) >> (size.bit_length() - 1)
            parts.append(access.address.space.views[f"u{size}"][index] == part)
            offset += size
    if len(parts) == each == 1:
        return np.asarray(parts[0])
    found = np.repeat(np.stack(parts, axis=1), max(each // len(parts), 1), axis=1)
    return np.asarray(found.reshape(lanes * each, -1).all(axis=1))


def collisions(footprint: Footprint, values: tuple[Any, ...]) -> tuple[Array, Array]:
    """Return pairs of lanes that store different values to one piece, by the subscripts in `index` of their pieces."""
    nothing = np.zeros(0, np.int64)
    index = footprint.index
    arrays = [value for value in values if value.__class__ is ndarray]
    if not arrays or len(arrays[0]) != footprint.lanes:
        return nothing, nothing
    # Sort by piece, so that lanes that share their pieces are adjacent.
    order = np.argsort(index[:: footprint.each], kind="stable")
    arranged = index[:: footprint.each][order]
    differs = np.zeros(len(order) - 1, np.bool_)
    for value in arrays:
        bits = (value.view(f"u{value.dtype.itemsize}") if value.dtype.itemsize <= 8 else value)[order]
        differs |= bits[1:] != bits[:-1]
    places = np.flatnonzero((arranged[1:] == arranged[:-1]) & differs)
    return order[places] * footprint.each, order[places + 1] * footprint.each

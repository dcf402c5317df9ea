"""Address the shared memory of the other blocks of a cluster.

An address of another block's shared memory is that of the own one with the other's rank, counted from 1, above it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..groups import Group

RANK_SHIFT = 24
_OFFSET = (1 << RANK_SHIFT) - 1


def map_address(address: Any, rank: Any) -> Any:
    """Return the address that a place in the own shared memory has in the block of a rank (``mapa``)."""
    kind = address.dtype.type
    above = (np.asarray(rank).astype(kind) + kind(1)) << kind(RANK_SHIFT)
    # Above it lie the window of generic addresses, and the rank of an address that was mapped before.
    window = address & ~kind((1 << 48) - 1 if address.dtype.itemsize == 8 else (1 << 32) - 1)
    return window | above | (address & kind(_OFFSET))


def rank_of(group: Group, address: Any) -> Any:
    """Return the rank of the block in whose shared memory an address lies (``getctarank``)."""
    kind = address.dtype.type
    rank = (address & kind((1 << 32) - 1)) >> kind(RANK_SHIFT)
    own = group.chunk.special("%cluster_ctarank")
    if own.__class__ is np.ndarray:
        own = own.take(group.lane_numbers)
    return np.where(rank > 0, rank.astype(np.uint32) - np.uint32(1), own)

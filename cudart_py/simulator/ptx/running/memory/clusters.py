"""Address the shared memory of the other blocks of a cluster (distributed shared memory).

An address in another block's shared memory contains the offset in its low 24 bits, and that block's rank plus 1 above
them. In an address in the block's own shared memory, the upper bits may be 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..groups import Group

RANK_SHIFT = 24
_OFFSET = (1 << RANK_SHIFT) - 1


def map_address(address: Any, rank: Any) -> Any:
    """Map an address in shared memory to the corresponding address in the block with the given rank (``mapa``)."""
    kind = address.dtype.type
    above = (np.asarray(rank).astype(kind) + kind(1)) << kind(RANK_SHIFT)
    # The window of a generic address is kept; the rank of an address that was mapped before is dropped.
    window = address & ~kind((1 << 48) - 1 if address.dtype.itemsize == 8 else (1 << 32) - 1)
    return window | above | (address & kind(_OFFSET))


def rank_of(group: Group, address: Any) -> Any:
    """Return the rank of the block whose shared memory contains an address (``getctarank``)."""
    kind = address.dtype.type
    rank = (address & kind((1 << 32) - 1)) >> kind(RANK_SHIFT)
    own = group.chunk.special("%cluster_ctarank")
    if own.__class__ is np.ndarray:
        own = own.take(group.lane_numbers)
    return np.where(rank > 0, rank.astype(np.uint32) - np.uint32(1), own)

"""Address the shared memory of the other blocks of a cluster; `instructions.clusters` defines the addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays.functions import array_function
from ...instructions import clusters

if TYPE_CHECKING:
    from ..groups import Group

RANK_SHIFT, OFFSET = clusters.RANK_SHIFT, clusters.OFFSET
_map = {size: array_function(clusters.map_address, f"u{8 * size}", "u32") for size in (4, 8)}
_rank = {size: array_function(clusters.rank_of, f"u{8 * size}", "u32") for size in (4, 8)}


def map_address(address: Any, rank: Any) -> Any:
    """Map an address in shared memory to the corresponding address in the block with the given rank (``mapa``)."""
    return _map[address.dtype.itemsize](address, rank)


def rank_of(group: Group, address: Any) -> Any:
    """Return the rank of the block whose shared memory contains an address (``getctarank``)."""
    own = group.chunk.special("%cluster_ctarank")
    if own.__class__ is np.ndarray:
        own = own.take(group.lane_numbers)
    return _rank[address.dtype.itemsize](address, own)

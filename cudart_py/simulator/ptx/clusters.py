"""Clusters: neighbouring blocks that wait for one another and reach one another's shared memory.

An address of another block's shared memory is that of the own one with the other's rank, counted from 1, above it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .instructions import Instruction
from .operands import Writer, dtype_of

if TYPE_CHECKING:
    from .groups import Group
    from .launch import Launch

__all__ = ["EMITTERS", "RANK_SHIFT", "are_neighbours", "map_address", "rank_of"]

Array = NDArray[Any]

RANK_SHIFT = 24
_OFFSET = (1 << RANK_SHIFT) - 1


def are_neighbours(launch: Launch) -> bool:
    """Tell whether the blocks of each cluster have consecutive numbers, so that one chunk can hold them."""
    (x, y, z), (width, height, _) = launch.cluster, launch.grid
    return y * z == 1 or (x == width and (z == 1 or y == height))


def map_address(group: Group, address: Any, rank: Any) -> Any:
    """Give the address that a place in the own shared memory has in the block of a rank (``mapa``)."""
    if prod(group.chunk.launched.launch.cluster) == 1:
        return address
    kind = address.dtype.type
    above = (np.asarray(rank).astype(kind) + kind(1)) << kind(RANK_SHIFT)
    # What lies above is the window of generic addresses, and the rank of an address that was mapped before.
    window = address & ~kind((1 << 48) - 1 if address.dtype.itemsize == 8 else (1 << 32) - 1)
    return window | above | (address & kind(_OFFSET))


def rank_of(group: Group, address: Any) -> Any:
    """Give the rank of the block in whose shared memory an address lies (``getctarank``)."""
    kind = address.dtype.type
    rank = (address & kind((1 << 32) - 1)) >> kind(RANK_SHIFT)
    own = group.chunk.special("%cluster_ctarank")
    if own.__class__ is np.ndarray:
        own = own.take(group.lane_numbers)
    return np.where(rank > 0, rank.astype(np.uint32) - np.uint32(1), own)


def _mapa(w: Writer, i: Instruction) -> None:
    """Write ``mapa{.shared::cluster}.type d, a, rank``."""
    ptx_type = i.parts[-1]
    address, same = w.value(i.operands[1], ptx_type)
    rank, rank_same = w.value(i.operands[2], "u32")
    expression = f"{w.bind('map_address', map_address)}(g, {address}, {rank})"
    w.write(i.operands[0], expression, dtype_of(ptx_type), same and rank_same)


def _getctarank(w: Writer, i: Instruction) -> None:
    """Write ``getctarank{.shared::cluster}.type d, a``."""
    address, _ = w.value(i.operands[1], i.parts[-1])
    w.write(i.operands[0], f"np.broadcast_to({w.bind('rank_of', rank_of)}(g, {address}), g.n)", "u4", False)


EMITTERS: dict[str, Callable[[Writer, Instruction], None]] = {"mapa": _mapa, "getctarank": _getctarank}

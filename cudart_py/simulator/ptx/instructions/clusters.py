"""Addresses in the shared memory of the blocks of a cluster (distributed shared memory).

An address in another block's shared memory contains the offset in its low 24 bits, and that block's rank plus 1 above
them. In an address in the block's own shared memory, the upper bits may be 0.
"""

from __future__ import annotations

from .values import Value, where

RANK_SHIFT = 24
OFFSET = (1 << RANK_SHIFT) - 1


def map_address(address: Value, rank: Value, blocks: Value) -> Value:
    """``mapa``: map an address in shared memory to the corresponding address in the block with the given rank.

    In a cluster of one block, all addresses stay as they are.
    """
    above = (rank.to(address.type) + 1) << RANK_SHIFT
    # The window of a generic address is kept; the rank of an address that was mapped before is dropped.
    window = (address >> 48) << 48 if address.width == 64 else address.like(0)
    return where(blocks > 1, window | above | (address & OFFSET), address)


def rank_of(address: Value, own: Value) -> Value:
    """``getctarank``: return the rank of the block whose shared memory contains an address; `own` is the lane's own."""
    rank = address.to("u32") >> RANK_SHIFT
    return where(rank.equals(0), own, rank - 1)

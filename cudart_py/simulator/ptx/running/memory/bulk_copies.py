"""Bulk copies by one instruction of one thread (``cp.async.bulk`` and ``cp.reduce.async.bulk``).

The bytes are copied immediately, in lane order. A copy that completes at an mbarrier subtracts its bytes from the bytes
that the barrier's phase still waits for.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...operations import atomics, mbarriers
from ...operations.matrix_descriptors import UNIT
from ...syntax.types import dtype_of
from .addresses import Address, Mixed

if TYPE_CHECKING:
    from ...syntax.instructions import Instruction
    from ..groups import Group
    from ..observer import Observer
    from .spaces import Space

Array = NDArray[Any]
# An address operand of an instruction: the address in a register, and an offset from it.
Named = tuple[Address, int]

_MOST_RANKS = 16


class Places(NamedTuple):
    """The places in one space at which copies begin.

    `places` contains the place of each copy, and `base` the difference between this place and the address that the
    kernel sees. `address` is the Address that the places were computed from.
    """

    address: Address
    places: Array
    base: Array

    def choose(self, copies: Array) -> Places:
        """Return the places of some of the copies."""
        return Places(self.address, self.places[copies], self.base[copies])

    def pieces(self, sizes: Array) -> tuple[Array, Address]:
        """Return the index of the copy that each unit belongs to, and the Address of all units."""
        counts = sizes // UNIT
        copies = np.repeat(np.arange(len(counts)), counts)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        return copies, self._at(copies, UNIT * (np.arange(len(copies)) - before))

    def ends(self, sizes: Array) -> tuple[Array, Address]:
        """Return the same as `pieces`, but only for the first and the last unit of each copy."""
        copies = np.repeat(np.flatnonzero(sizes), 2)
        last = np.where(np.arange(len(copies)) % 2, sizes[copies] - UNIT, 0)
        return copies, self._at(copies, last)

    def in_blocks(self, blocks: Array) -> Places:
        """Return the same places in the shared memory of other blocks of the cluster."""
        base = blocks * self.address.group.chunk.shared_stride
        return self._replace(places=self.places - self.base + base, base=base)

    def _at(self, copies: Array, behind: Array) -> Address:
        address, base = self.address, self.base[copies]
        return Address(address.space, address.group, self.places[copies] + behind - base, base)


class BulkCopies:
    """The bulk copies of a chunk's groups."""

    def copy(
        self,
        group: Group,
        to: Named,
        source: Named,
        size: Any,
        site: Instruction,
        *,
        barrier: Named | None = None,
        ranks: Any = None,
        operation: tuple[str, str] | None = None,
        observer: Observer | None = None,
    ) -> None:
        """Make one copy of `size` bytes per lane; all copies are checked before the first byte moves.

        `barrier` counts the bytes. `ranks` has one bit for each block of the cluster that receives the bytes; each
        block uses the destination and the barrier at the given offsets in its own shared memory. `operation` is an
        operation of `atomics` and its type: with it, the source's elements are combined with the destination's elements
        instead of replacing them.
        """
        sizes = np.broadcast_to(np.asarray(size, np.int64), group.n)
        wrong = np.flatnonzero(sizes % UNIT)
        if len(wrong):
            what = f"a bulk copy of {sizes[wrong[0]]} bytes, which is not a multiple of {UNIT}"
            raise group.fault("CUDA_ERROR_ILLEGAL_INSTRUCTION", what, site, int(wrong[0]))
        memory = group.chunk.memory
        lanes, written, counters = receiving(group, places_of(group, *to), barrier, ranks, site)
        ends, sizes = [written, places_of(group, *source).choose(lanes)], sizes[lanes]
        # The side in shared memory is checked first: a size that fits there is small enough for a list of all units.
        for side in sorted(ends, key=lambda end: end.address.space.size is None):
            for units_of in (side.ends, side.pieces):
                copies, units = units_of(sizes)
                if len(copies):
                    memory.check(units, 0, UNIT, site, lanes[copies])
        if observer is not None and sizes.any():
            for kind, side in zip(("ld", "st"), reversed(ends), strict=True):
                copies, units = side.pieces(sizes)
                barriers = None if kind == "ld" or counters is None else counters.places[copies]
                observer.bulk(group, kind, Mixed(group, [(lanes[copies], units)]), UNIT, barriers, site)
        written_space, read_space = (end.address.space for end in ends)
        for start, first, count in zip(ends[0].places, ends[1].places, sizes, strict=True):
            read_bytes = read_space.bytes[first : first + count]
            if operation is None:
                written_space.bytes[start : start + count] = read_bytes
            else:
                _reduce(written_space, int(start), read_bytes, *operation)
        if counters is not None:
            complete(counters, sizes)


def places_of(group: Group, address: Address, offset: int) -> Places:
    """Return the place of each lane's address."""
    return Places(address, np.broadcast_to(address.places, group.n) + offset, np.broadcast_to(address.base, group.n))


def complete(counters: Places, sizes: Array) -> None:
    """Let barriers count the bytes of copies."""
    mbarriers.apply("complete_tx", counters.address.space.views["u8"], counters.places >> 3, [sizes], False)


def receiving(
    group: Group, to: Places, barrier: Named | None, ranks: Any, site: Instruction
) -> tuple[Array, Places, Places | None]:
    """Return the lane of each copy, the places that it writes, and the places of the barriers that count its bytes.

    There is one copy per lane, or for each bit that is set in the lanes' `ranks`.
    """
    lanes, counters = np.arange(group.n), None
    if barrier is not None:
        group.chunk.memory.check(*barrier, 8, site)
        counters = places_of(group, *barrier)
    if ranks is not None:
        lanes, blocks = _receivers(group, ranks, site)
        to = to.choose(lanes).in_blocks(blocks)
        counters = None if counters is None else counters.choose(lanes).in_blocks(blocks)
    return lanes, to, counters


def _receivers(group: Group, ranks: Any, site: Instruction) -> tuple[Array, Array]:
    """Return, for each bit that is set in the lanes' `ranks`, the lane and the block's index in the chunk."""
    chunk = group.chunk
    cluster = prod(chunk.state.launch.cluster)
    masks = np.broadcast_to(np.asarray(ranks, np.int64), group.n)
    lanes, found = np.nonzero(masks[:, None] >> np.arange(_MOST_RANKS) & 1)
    outside = np.flatnonzero(found >= cluster)
    if len(outside):
        what = f"a bulk copy to the block of rank {found[outside[0]]}, in a cluster of {cluster}"
        place = int(lanes[outside[0]])
        raise group.fault("CUDA_ERROR_LAUNCH_FAILED", what, site, place)
    blocks = chunk.block_of_lane[group.lane_numbers[lanes]]
    return lanes, blocks - blocks % cluster + found


def _reduce(space: Space, start: int, operands: Array, operation: str, ptx_type: str) -> None:
    """Combine the elements that start at `start` with the elements in the operands' bytes."""
    dtype = dtype_of(ptx_type)
    elements = space.bytes[start : start + len(operands)].view(dtype)
    # Additions in global memory flush subnormal numbers.
    ftz = ptx_type == "f32" and space.size is None
    places = np.arange(len(elements))
    atomics.reduce_only(operation, elements, places, operands.view(dtype), type_=ptx_type, ftz=ftz)

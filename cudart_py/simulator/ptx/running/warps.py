"""Bring the lanes of warps together: wait for the lanes that an instruction names, and pass rows of 32 to `warp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..operations import warp
from ..syntax.instructions import Immediate, Register
from .groups import Group, Lazy

if TYPE_CHECKING:
    from ..compiling.control_flow import Block

__all__ = ["Warps", "incomplete", "warp_table"]

Array = NDArray[Any]


def warp_table(group: Group) -> tuple[Array, Array, int]:
    """Return each lane's warp, numbered through the chunk, its place in the warp, and the number of warps."""
    chunk = group.chunk
    per_block = -(-chunk.threads // 32)
    lanes = group.lane_numbers
    if chunk.threads % 32 == 0:
        return lanes >> 5, lanes & 31, chunk.blocks * per_block
    threads = lanes % chunk.threads
    return lanes // chunk.threads * per_block + (threads >> 5), threads & 31, chunk.blocks * per_block


def incomplete(group: Group, block: Block) -> list[Array] | None:
    """Part positions into lanes whose warp is complete and lanes that must wait, or give None when all are."""
    warps, places, count = warp_table(group)
    present = np.zeros((count, 32), np.bool_)
    present[warps, places] = True
    chunk = group.chunk
    if chunk.live != chunk.lanes:
        everyone = Group(chunk, group.code, None, chunk.lanes)
        all_warps, all_places, _ = warp_table(everyone)
        gone = chunk.exited
        present[all_warps[gone], all_places[gone]] = True
    if chunk.threads % 32:
        present.reshape(chunk.blocks, -1)[:, chunk.threads :] = True
    here = np.packbits(present, axis=1, bitorder="little").view(np.uint32)[:, 0]
    missing = _mask(group, block) & ~here[warps]
    if not missing.any():
        return None
    # All lanes of a warp wait with the one that misses a partner.
    waits = np.zeros(count, np.bool_)
    waits[warps[missing != 0]] = True
    waiting = waits[warps]
    return [np.flatnonzero(~waiting), np.flatnonzero(waiting)]


def _mask(group: Group, block: Block) -> Any:
    operand = block.mask
    if isinstance(operand, Immediate):
        return np.uint32(operand.value & 0xFFFFFFFF)
    if isinstance(operand, Register):
        slot = group.code.slot(operand.name)
        value = group.registers[slot]
        if value.__class__ is Lazy:
            value = group.resolve(slot)
        if value is not None:
            return value.view(np.uint32)
    return np.uint32(0xFFFFFFFF)


class _Rows:
    """Converts arrays over a group into rows of 32 lanes and back.

    `active` is None when the rows are full; then a reshape does.
    """

    def __init__(self, group: Group) -> None:
        n = group.n
        warps, self._columns, _ = warp_table(group)
        changes = np.empty(n, np.bool_)
        changes[0] = False
        np.not_equal(warps[1:], warps[:-1], out=changes[1:])
        self._rows = np.cumsum(changes)
        self._count = int(self._rows[-1]) + 1
        self.active: Array | None = None
        if self._count * 32 != n:
            self.active = np.zeros((self._count, 32), np.bool_)
            self.active[self._rows, self._columns] = True

    def out(self, values: Array) -> Array:
        """Return rows of an array over the group."""
        if self.active is None:
            return values.reshape(-1, 32)
        rows = np.zeros((self._count, 32), values.dtype)
        rows[self._rows, self._columns] = values
        return rows

    def back(self, rows: Array) -> Array:
        """Return an array over the group from rows."""
        if self.active is None:
            return np.ascontiguousarray(rows).reshape(-1)
        return rows[self._rows, self._columns]


class Warps:
    """The operations of warps for groups of lanes."""

    def _rows(self, group: Group) -> _Rows:
        rows: _Rows | None = group.rows
        if rows is None:
            rows = group.rows = _Rows(group)
        return rows

    def partial(self, group: Group) -> int:
        """Return the position of the first lane of a warp of which not all lanes take part, -1 where all do."""
        rows = self._rows(group)
        if rows.active is None:
            return -1
        lacking = ~rows.active.all(axis=1, keepdims=True)
        return int(np.argmax(rows.back(np.broadcast_to(lacking, rows.active.shape))))

    def shuffle(self, group: Group, mode: str, value: Array, lane: Any, control: Any) -> tuple[Array, Array]:
        """Exchange values within warps; give them and whether each source was in range."""
        rows = self._rows(group)
        function = {"up": warp.shfl_up, "down": warp.shfl_down, "bfly": warp.shfl_bfly, "idx": warp.shfl_idx}[mode]
        operands = [rows.out(x) if isinstance(x, np.ndarray) else x for x in (lane, control)]
        result, within = function(rows.out(value), operands[0], operands[1], rows.active)
        return rows.back(result), rows.back(within)

    def absent(self, group: Group, mode: str, lane: Any, control: Any) -> tuple[Array, Array] | None:
        """Return the positions that read from lanes which take no part, and those lanes; None where all take part."""
        rows = self._rows(group)
        if rows.active is None:
            return None
        operands = [rows.out(x) if isinstance(x, np.ndarray) else x for x in (lane, control)]
        source, within = (np.broadcast_to(x, rows.active.shape) for x in warp.shfl_source(mode, *operands))
        taking_part = np.take_along_axis(rows.active, np.where(within, source, warp.LANES), axis=1)
        positions = np.flatnonzero(~rows.back(taking_part))
        return (positions, rows.back(source)[positions]) if len(positions) else None

    def vote(self, group: Group, mode: str, truth: Array, members: Any) -> Array:
        """Vote among the members: any, all, uni or ballot."""
        rows = self._rows(group)
        function = {"any": warp.vote_any, "all": warp.vote_all, "uni": warp.vote_uni, "ballot": warp.vote_ballot}[mode]
        return rows.back(function(rows.out(truth), self._members(rows, members), rows.active))

    def match(self, group: Group, mode: str, value: Array, members: Any) -> tuple[Array, Array]:
        """Find the members with the same value; the truths are meant for `all` alone."""
        rows = self._rows(group)
        if mode == "any":
            found = rows.back(warp.match_any(rows.out(value), self._members(rows, members), rows.active))
            return found, found != 0
        bits, alike = warp.match_all(rows.out(value), self._members(rows, members), rows.active)
        return rows.back(bits), rows.back(np.broadcast_to(alike, bits.shape))

    def reduce(self, group: Group, operation: str, value: Array, members: Any) -> Array:
        """Reduce the members' values."""
        rows = self._rows(group)
        return rows.back(warp.redux(operation, rows.out(value), self._members(rows, members), rows.active))

    def active(self, group: Group) -> Array:
        """Return the lanes that run together now."""
        rows = self._rows(group)
        active = np.ones((group.n // 32, 32), np.bool_) if rows.active is None else rows.active
        return rows.back(warp.activemask(active))

    def elect(self, group: Group, members: Any) -> tuple[Array, Array]:
        """Elect one member of each warp."""
        rows = self._rows(group)
        active = np.ones((group.n // 32, 32), np.bool_) if rows.active is None else rows.active
        leader, elected = warp.elect(self._members(rows, members), active)
        return rows.back(leader.astype(np.uint32)), rows.back(elected)

    @staticmethod
    def _members(rows: _Rows, members: Any) -> Any:
        return rows.out(members) if isinstance(members, np.ndarray) else members

"""Converge the lanes of warps: wait for the lanes in an instruction's member mask, and pass rows of 32 lanes to `warp`.

Compilers duplicate an instruction with a member mask on both sides of a branch. Lanes of a warp that wait at different
instructions with the same qualifiers and the same mask execute these together ("meet"), as the PTX manual specifies for
each such instruction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiling.opcode_table.opcodes import form_of
from ..operations import warp
from ..syntax.instructions import Immediate, Register
from ..syntax.types import dtype_of
from .groups import Group, split

if TYPE_CHECKING:
    from ..compiling.analysis.control_flow import Block

Array = NDArray[Any]


def warp_table(group: Group) -> tuple[Array, Array, int]:
    """Return the index of each lane's warp in the chunk, the lane's index in the warp, and the number of warps."""
    chunk = group.chunk
    per_block = -(-chunk.threads // 32)
    lanes = group.lane_numbers
    if chunk.threads % 32 == 0:
        return lanes >> 5, lanes & 31, chunk.blocks * per_block
    threads = lanes % chunk.threads
    return lanes // chunk.threads * per_block + (threads >> 5), threads & 31, chunk.blocks * per_block


def incomplete(group: Group, block: Block) -> list[Array] | None:
    """Return the positions of lanes whose warp is complete and of lanes that must wait; None if no lane must wait."""
    missing = _missing(group, _mask(group, block))
    if not missing.any():
        return None
    # If one lane must wait for another, all lanes of its warp wait.
    warps, _, count = warp_table(group)
    waits = np.zeros(count, np.bool_)
    waits[warps[missing != 0]] = True
    waiting = waits[warps]
    return [np.flatnonzero(~waiting), np.flatnonzero(waiting)]


def _missing(group: Group, masks: Any) -> Array:
    """Return, for each lane, the bits of its member mask whose lanes are not in the group and have not exited."""
    chunk = group.chunk
    warps, _, count = warp_table(group)
    here = chunk.exited.copy()
    here[group.lane_numbers] = True
    # The last warp of a block may have fewer than 32 lanes.
    present = np.ones((chunk.blocks, 32 * count // chunk.blocks), np.bool_)
    present[:, : chunk.threads] = here.reshape(chunk.blocks, -1)
    missing: Array = masks & ~np.packbits(present, bitorder="little").view(np.uint32)[warps]
    return missing


class Meeting(NamedTuple):
    """The lanes that meet at different instructions, in ascending order, with the value and the mask of each.

    `values` is None if the instruction takes no value.
    """

    everyone: Group
    values: Array | None
    masks: Array


def meet(groups: Iterable[Group]) -> tuple[list[Group], list[Group]]:
    """Split waiting groups into parts whose lanes meet, with `Group.meeting` set, and parts that must still wait."""
    by_qualifiers: dict[str, list[Group]] = {}
    waiting: list[Group] = []
    for group in groups:
        qualifiers = _block_of(group).meets
        if qualifiers:
            by_qualifiers.setdefault(qualifiers, []).append(group)
        else:
            waiting.append(group)
    met: list[Group] = []
    for alike in by_qualifiers.values():
        ready, rest = _meet_alike(alike)
        met += ready
        waiting += rest
    return met, waiting


def _meet_alike(groups: list[Group]) -> tuple[list[Group], list[Group]]:
    """Do what `meet` does, for groups that wait at instructions with the same qualifiers."""
    lanes = np.concatenate([group.lane_numbers for group in groups])
    order = np.argsort(lanes)
    masks = np.concatenate([np.broadcast_to(_mask(group, _block_of(group)), group.n) for group in groups])[order]
    brought = [_brought(group) for group in groups]
    values = None
    if brought[0] is not None:
        values = np.concatenate([np.broadcast_to(value, group.n) for value, group in zip(brought, groups, strict=True)])
        values = values[order]
    together = lanes[order]
    # Lanes with different masks don't meet, even if all of them are there.
    complete = np.zeros(len(together), np.bool_)
    for mask in np.unique(masks):
        same = np.flatnonzero(masks == mask)
        chosen = Group(groups[0].chunk, groups[0].code, together[same], len(same))
        complete[same] = _missing(chosen, mask) == 0
    if not complete.any():
        return [], groups
    kept = np.flatnonzero(complete)
    everyone = Group(groups[0].chunk, groups[0].code, together[kept], len(kept))
    meeting = Meeting(everyone, None if values is None else values[kept], masks[kept])
    met: list[Group] = []
    waiting: list[Group] = []
    for group in groups:
        inside = np.isin(group.lane_numbers, everyone.lane_numbers)
        met += _part(group, inside, meeting)
        waiting += _part(group, ~inside, None)
    return met, waiting


def _part(group: Group, chosen: Array, meeting: Meeting | None) -> list[Group]:
    """Return a list with the group of the chosen lanes, or an empty one if there are none."""
    if not chosen.any():
        return []
    part = split(group, [np.flatnonzero(chosen)], [group.pc])[0]
    part.meeting = meeting
    return [part]


def _block_of(group: Group) -> Block:
    return group.code.blocks[group.pc]


def _brought(group: Group) -> Any:
    """Return the value that each lane contributes, or one for all lanes; None if the instruction takes no value."""
    instruction = _block_of(group).instructions[0]
    if len(instruction.operands) < 3:
        return None
    form, operand = form_of(instruction), instruction.operands[1]
    dtype = np.dtype({"shfl": "u4", "vote": "?"}.get(form.row.name) or dtype_of(form.type))
    if isinstance(operand, Immediate):
        return np.array(operand.value & (1 << 8 * dtype.itemsize) - 1, f"u{dtype.itemsize}").view(dtype)
    assert isinstance(operand, Register)
    value = group.value(group.code.slot(operand.name)).view(dtype)
    return ~value if operand.negated else value


def _mask(group: Group, block: Block) -> Any:
    operand = block.mask
    if isinstance(operand, Immediate):
        return np.uint32(operand.value & 0xFFFFFFFF)
    # A register that was never written, like a special register, means all lanes.
    value = group.resolve(group.code.slot(operand.name)) if isinstance(operand, Register) else None
    return np.uint32(0xFFFFFFFF) if value is None else value.view(np.uint32)


class _Rows:
    """The conversion of arrays over a group into rows of 32 lanes and back.

    `active` is None when the group fills the rows; a reshape is then enough. At a meeting, the rows also include the
    lanes that wait elsewhere.
    """

    def __init__(self, group: Group) -> None:
        self._meeting: Meeting | None = group.meeting
        taking_part = group if self._meeting is None else self._meeting.everyone
        warps, columns, _ = warp_table(taking_part)
        changes = np.empty(taking_part.n, np.bool_)
        changes[0] = False
        np.not_equal(warps[1:], warps[:-1], out=changes[1:])
        rows = np.cumsum(changes)
        self._count = int(rows[-1]) + 1
        self.active: Array | None = None
        if self._count * 32 != group.n:
            self.active = np.zeros((self._count, 32), np.bool_)
            self.active[rows, columns] = True
        self._all = self._own = rows, columns
        if self._meeting is not None:
            mine = np.searchsorted(taking_part.lane_numbers, group.lane_numbers)
            self._own = rows[mine], columns[mine]

    def out(self, values: Array) -> Array:
        """Return an array over the group as rows."""
        if self.active is None:
            return values.reshape(-1, 32)
        rows = np.zeros((self._count, 32), values.dtype)
        rows[self._own] = values
        return rows

    def brought(self, values: Array) -> Array:
        """Return the contributed values as rows, including the values of lanes that wait elsewhere."""
        if self._meeting is None:
            return self.out(values)
        assert self._meeting.values is not None
        rows = np.zeros((self._count, 32), values.dtype)
        rows[self._all] = self._meeting.values
        return rows

    def members(self, masks: Any) -> Any:
        """Return the member masks as rows, or one mask for all lanes."""
        if not isinstance(masks, np.ndarray):
            return masks
        if self._meeting is None:
            return self.out(masks)
        rows = np.zeros((self._count, 32), np.uint32)
        rows[self._all] = self._meeting.masks
        return rows

    def back(self, rows: Any) -> Array:
        """Return rows, or one value for each row, as an array over the group."""
        rows = np.broadcast_to(rows, (self._count, 32))
        if self.active is None:
            return np.ascontiguousarray(rows).reshape(-1)
        own: Array = rows[self._own]
        return own


class Warps:
    """The warp-level operations of groups of lanes."""

    def _rows(self, group: Group) -> _Rows:
        rows: _Rows | None = group.rows
        if rows is None:
            rows = group.rows = _Rows(group)
        return rows

    def partial(self, group: Group) -> int:
        """Return the position of the first lane whose warp is not complete, or -1 if all warps are complete."""
        rows = self._rows(group)
        if rows.active is None:
            return -1
        lacking = ~rows.active.all(axis=1, keepdims=True)
        return int(np.argmax(rows.back(lacking)))

    def shuffle(self, group: Group, mode: str, value: Array, lane: Any, control: Any) -> tuple[Array, Array]:
        """Exchange values within warps; return them and whether each source lane was in range."""
        rows = self._rows(group)
        operands = [rows.out(x) if isinstance(x, np.ndarray) else x for x in (lane, control)]
        result, within = warp.shuffle(mode, rows.brought(value), operands[0], operands[1], rows.active)
        return rows.back(result), rows.back(within)

    def absent(self, group: Group, mode: str, lane: Any, control: Any) -> tuple[Array, Array] | None:
        """Return the positions of lanes that would read from inactive lanes, and the latter; None if there are none."""
        rows = self._rows(group)
        if rows.active is None:
            return None
        operands = [rows.out(x) if isinstance(x, np.ndarray) else x for x in (lane, control)]
        source = np.broadcast_to(warp.shuffle_source(mode, *operands)[0], rows.active.shape)
        taking_part = np.take_along_axis(rows.active, source.astype(np.int64), axis=1)
        positions = np.flatnonzero(~rows.back(taking_part))
        return (positions, rows.back(source)[positions]) if len(positions) else None

    def collective(self, group: Group, name: str, mode: str, value: Array | None, members: Any) -> list[Array]:
        """Perform one of `operations.warp.COLLECTIVES` among the members; without a value, on the lanes' indices."""
        rows = self._rows(group)
        brought = warp.LANES if value is None else rows.brought(value)
        found = warp.COLLECTIVES[name](mode, brought, rows.members(members), rows.active)
        return [rows.back(result) for result in (found if isinstance(found, tuple) else (found,))]

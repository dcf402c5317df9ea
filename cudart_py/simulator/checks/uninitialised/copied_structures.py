"""Structures that one source line copies with several stores, and the padding in them, which is never written.

A store of nothing but padding is not a mistake, although no byte that it stores is defined. PTX does not say which
bytes are padding. But a compiler copies a structure with loads and stores of its members, relative to one base address.
Padding follows a member, is smaller than the largest member's alignment, and ends at a multiple of a power of two that
is greater than its own size.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...ptx.compiling.analysis.control_flow import Code
from ...ptx.compiling.opcode_table.opcodes import form_of
from ...ptx.running.groups import Group
from ...ptx.syntax.instructions import Access, Instruction, Register, items_of
from ...ptx.syntax.types import TYPE_SIZES
from .memory_marks import Origin

Array = NDArray[Any]


class Stored(NamedTuple):
    """A mask of the bytes of a store to global memory without a defined value, with one row per lane.

    These are undefined bytes, and constant bytes of the same registers. `some` marks the lanes that store undefined
    bytes.
    """

    instruction: Instruction
    undefined: Array
    some: Array
    origin: Origin


class CopiedStructure(NamedTuple):
    """The (offset, size) pairs of the stores of a copy, keyed by the index of the instruction in its basic block."""

    stores: dict[int, tuple[int, int]]

    @property
    def last(self) -> int:
        """The index of the last store."""
        return max(self.stores)

    def padding(self, undefined: dict[int, Array], number: int) -> Array:
        """Return a mask of the lanes in which the store with index `number` stores nothing but padding.

        `undefined` has a mask of the undefined bytes of each store, with one row per lane. Stores that are missing in
        it store only defined bytes.
        """
        start = min(offset for offset, _ in self.stores.values())
        end = max(offset + size for offset, size in self.stores.values())
        lanes = len(undefined[number])
        whole = np.zeros((lanes, end - start), np.bool_)
        for each, bytes_ in undefined.items():
            offset, size = self.stores[each]
            whole[:, offset - start : offset - start + size] = bytes_
        rows, inverse = np.unique(whole, axis=0, return_inverse=True)
        answers = np.array([self._is_padding(row, start, number) for row in rows])
        return np.asarray(answers[inverse.reshape(-1)])

    def _is_padding(self, undefined: Array, start: int, number: int) -> bool:
        """Return whether the bytes of a store are padding; `undefined` begins with the byte at offset `start`."""
        offset, size = self.stores[number]
        first, end = offset - start, offset - start + size
        while first > 0 and undefined[first - 1]:
            first -= 1
        while end < len(undefined) and undefined[end]:
            end += 1
        largest_at, largest = max(self.stores.values(), key=lambda store: store[1])
        alignment = 1 << (end - first).bit_length()
        return first > 0 and alignment <= largest and (end + start - largest_at) % alignment == 0


def copied_structures(code: Code, instructions: Sequence[Instruction]) -> list[CopiedStructure]:
    """Return the copies in a basic block: groups of stores of values that the block has loaded."""
    # The last write of each register: the index of the instruction, and whether it is a load.
    writers: dict[int, tuple[int, bool]] = {}
    found: dict[tuple[int, int, int, int], dict[int, tuple[int, int]]] = {}
    for number, instruction in enumerate(instructions):
        form = form_of(instruction)
        if form.row.access == "st" and not form.row.converges and form.space in ("global", "generic"):
            access, value = instruction.operands[:2]
            items = items_of(value)
            loaded = all(
                isinstance(item, Register) and writers.get(code.slot(item.name), (-1, False))[1] for item in items
            )
            if loaded and isinstance(access, Access) and isinstance(access.base, Register):
                base = code.slot(access.base.name)
                key = base, writers.get(base, (-1, False))[0], instruction.file, instruction.line
                found.setdefault(key, {})[number] = access.offset, TYPE_SIZES[form.type] * len(items)
        for slot in code.touched(instruction)[1]:
            writers[slot] = number, form.row.access == "ld"
    return [CopiedStructure(stores) for stores in found.values() if len(stores) > 1]


@lru_cache(maxsize=256)
def copies_of(code: Code) -> dict[int, tuple[int, CopiedStructure]]:
    """Return the copies in code in which each block has one instruction.

    They are keyed by the identity of each store, with the index that the store has in its copy.
    """
    whole = Code(code.function, code.base, code.is_entry)
    return {
        id(block.instructions[number]): (number, copy)
        for block in whole.blocks
        for copy in copied_structures(whole, block.instructions)
        for number in copy.stores
    }


class SteppedCopies:
    """The stores of copies that lanes have made so far, for code in which each block has one instruction.

    Between two stores of a copy, the lanes may become part of another group.
    """

    def __init__(self) -> None:
        # Keyed by the copy and the number of calls that the lanes are in; each row is a lane of the chunk.
        self._made: dict[tuple[int, int], dict[int, Stored]] = {}

    def add(self, group: Group, copy: CopiedStructure, number: int, new: dict[int, Stored]) -> dict[int, Stored]:
        """Add a group's store to its earlier stores of a copy; return all of them if it is the last one, else {}."""
        made = self._made.setdefault((id(copy), len(group.frames)), {})
        lanes = group.lane_numbers
        for each, stored in new.items():
            if each not in made:
                size = stored.undefined.shape[1]
                undefined = np.zeros((group.chunk.lanes, size), np.bool_)
                made[each] = stored._replace(undefined=undefined, some=np.zeros(group.chunk.lanes, np.bool_))
            made[each].undefined[lanes], made[each].some[lanes] = stored.undefined, stored.some
        if number != copy.last:
            return {}
        found = {}
        for each, stored in made.items():
            found[each] = stored._replace(undefined=stored.undefined[lanes], some=stored.some[lanes])
            stored.undefined[lanes], stored.some[lanes] = False, False
        return {each: stored for each, stored in found.items() if stored.some.any()}

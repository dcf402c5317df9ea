"""Structures that kernels store member by member, and the padding between their members and after the last one.

PTX has no structures. But a kernel stores the members of one at constant offsets from the same address, and so shows
where members are missing: padding precedes a member with a larger alignment, or fills the structure's size up to a
multiple of its largest alignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ...ptx.compiling.opcode_table.opcodes import form_of
from ...ptx.syntax.instructions import Access, Function, Register, items_of
from ...ptx.syntax.parser import Entry
from ...ptx.syntax.types import TYPE_SIZES

# Padding is smaller than the largest alignment.
LARGEST_ALIGNMENT = 16
_known: WeakKeyDictionary[Entry, frozenset[Padding]] = WeakKeyDictionary()


class Padding(NamedTuple):
    """The padding between two members, or after the last one: its size, and the number of written bytes before it."""

    before: int
    size: int


def paddings_of(entry: Entry) -> frozenset[Padding]:
    """Return the padding of all structures that a kernel, or a function that it calls, stores in global memory."""
    if entry not in _known:
        bodies = (entry.body, *entry.called)
        found = (padding for body in bodies for members in _structures(body) for padding in _paddings(members))
        _known[entry] = frozenset(found)
    return _known[entry]


def _structures(function: Function) -> Iterator[list[tuple[int, int]]]:
    """Yield the (offset, size) pairs of the stores relative to each address, in the order of the offsets."""
    writes: Counter[str] = Counter()
    found: dict[str, set[tuple[int, int]]] = {}
    for instruction in function.instructions:
        form = form_of(instruction)
        if form.writes_first:
            items = items_of(instruction.operands[0])
            writes.update(item.name for item in items if isinstance(item, Register))
        elif form.row.name == "st" and form.space in ("global", "generic"):
            access, value = instruction.operands[:2]
            if isinstance(access, Access) and isinstance(access.base, Register):
                size = TYPE_SIZES[form.type] * len(items_of(value))
                found.setdefault(access.base.name, set()).add((access.offset, size))
    # A register that several instructions write may hold different addresses.
    return (sorted(members) for name, members in found.items() if writes[name] <= 1)


def _paddings(members: list[tuple[int, int]]) -> Iterator[Padding]:
    largest = max(size for _, size in members)
    runs: list[tuple[int, int]] = []
    for offset, size in members:
        start, end = runs.pop() if runs and offset <= runs[-1][1] else (offset, offset)
        runs.append((start, max(end, offset + size)))
    first, last = (end - start for start, end in (runs[0], runs[-1]))
    after = -(runs[-1][1] - runs[0][0]) % largest
    for number, ((start, end), (following, _)) in enumerate(pairwise(runs)):
        if following - end < largest:
            yield Padding(end - start, following - end)
            if number == 0 and not after:
                # In an array, the members before the padding follow the last members of the structure before.
                yield Padding(last + first, following - end)
    if after:
        yield Padding(last, after)

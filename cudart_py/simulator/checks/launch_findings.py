"""The findings of one launch, each with the access and its place, reported once per source line.

Launches that wait to be reported together share the report of the same mistake.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..ptx.compiling.opcode_table.opcodes import form_of
from ..state import memory
from .findings import Finding, put_finding

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ptx.running.groups import Group
    from ..ptx.running.launch import LaunchState
    from ..ptx.syntax.instructions import Instruction
    from .accesses import Footprint

ndarray = np.ndarray

# A function that hears of each finding: the group, the position of the lane in it, and the report.
Heard: TypeAlias = "Callable[[Group, int, str], None]"
# A file and a line in the text of a finding.
_PLACE = re.compile(r"[^\s()]+:\d+")


class LaunchFindings:
    """The findings of one launch: each kind of mistake is reported once per source line and opcode.

    An unrolled loop has several instructions for each of its lines. Loads and stores of a line are reported separately.
    The object holds no reference to the machine's state of the launch, because that state refers to its observer.
    """

    def __init__(self, state: LaunchState, heard: Heard) -> None:
        self._heard = heard
        self._launch = state.launch
        self._memory = state.memory
        self._found: set[tuple[str, int]] = set()
        self._reported: dict[tuple[object, ...], Finding] = {}

    @property
    def some(self) -> bool:
        """Whether there is any finding."""
        return bool(self._found)

    def known(self, kind: str, site: Instruction) -> bool:
        """Return whether a kind of mistake has been reported for an instruction."""
        return (kind, id(site)) in self._found

    def put(self, kind: str, site: Instruction, group: Group, position: int, what: str) -> None:
        """Report a mistake at an instruction, or count it if the same mistake of its line has already been reported."""
        if self.known(kind, site):
            return
        like = kind, form_of(site).row.name, site.file, site.line, site.user
        if like in self._reported:
            self._found.add((kind, id(site)))
            self._reported[like].again()
        else:
            entry = self._launch.entry
            # The other places are those of the other access and of the allocation.
            others = tuple(_PLACE.findall(what))
            key = entry.name, entry.module.places.origin, like, others
            report = self._launch.located(what, site, group, position)
            # First, because a debugger that has not recorded the block makes it run again, and then receives this
            # finding again.
            self._heard(group, position, report)
            self._found.add((kind, id(site)))
            self._reported[like] = put_finding(kind, report, key)

    def where(self, site: Instruction) -> str:
        """Return an instruction's file and line."""
        return self._launch.entry.module.places.of(site)

    def access(self, footprint: Footprint, piece: int) -> str:
        """Return a phrase that describes the access of the lane that touches a piece, and its place."""
        access = footprint.access
        verb = {"ld": "reads", "st": "writes"}.get(access.kind, "updates")
        amount = "1 byte" if access.size == 1 else f"{access.size} bytes"
        return f"{verb} {amount} of {self.place(footprint, piece)}"

    def place(self, footprint: Footprint, piece: int, distance: int = 0) -> str:
        """Return a phrase for the place of a byte, at a distance from the first byte that the piece's lane accesses."""
        chunk, space = footprint.group.chunk, footprint.access.address.space
        place = _place(footprint, piece, distance)
        if space.size is None:
            seen = place + self._memory.base
            where = f"{seen:#x} ({self._memory.describe(seen)})"
        elif space.name == "shared":
            where = self._launch.shared_place(place % chunk.shared_stride)
        else:
            where = f"{place % max(chunk.local_stride, 1):#x}"
        return f"{space.name} memory at {where}"

    def remedy(self, footprint: Footprint, piece: int, other: int, *, on_one_line: bool) -> str:
        """Return a clause that says what would order an access and an earlier one of another thread, `other`."""
        group, threads = footprint.group, prod(self._launch.block)
        number = int(group.lane_numbers[footprint.position(piece)]) + group.chunk.first * threads
        if number // threads == other // threads:
            if on_one_line:
                return ": use atomics or, between iterations of a loop, a barrier such as __syncthreads()"
            return ": put a barrier such as __syncthreads() between them"
        if footprint.access.address.space.name == "shared":
            return ": put a barrier for the cluster, such as cluster.sync(), between them"
        return ", which are in different blocks: use atomics, grid.sync() or separate launches"

    def unordered_writer(self, footprint: Footprint, piece: int, distance: int) -> str:
        """Return a clause about work of another stream that may still write that place; "" for none."""
        is_global = footprint.access.address.space.size is None
        return memory.unordered_writer(_place(footprint, piece, distance) + self._memory.base) if is_global else ""


def _place(footprint: Footprint, piece: int, distance: int) -> int:
    """Return the place, in its space, of a byte at a distance from the first byte that the piece's lane accesses."""
    access = footprint.access
    places = access.address.places
    first = int(places[piece // footprint.each] if places.__class__ is ndarray else places)
    return first + access.offset + distance

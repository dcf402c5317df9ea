"""Reports of the checks: what an access did and where, told once for each place in the code of a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .findings import put_finding

if TYPE_CHECKING:
    from .ptx.groups import Group
    from .ptx.instructions import Instruction
    from .ptx.launch import Launched
    from .touched import Touched

__all__ = ["Reports"]

ndarray = np.ndarray


class Reports:
    """Put findings of one launch into words.

    It doesn't hold the machine's state of the launch, which holds who watches it.
    """

    def __init__(self, launched: Launched) -> None:
        self._launch = launched.launch
        self._memory = launched.memory
        self._found: set[tuple[str, int]] = set()

    def known(self, kind: str, site: Instruction) -> bool:
        """Tell whether a kind of mistake has been reported for an instruction."""
        return (kind, id(site)) in self._found

    def put(self, kind: str, site: Instruction, group: Group, position: int, what: str) -> None:
        """Report a mistake at an instruction, unless that was done before."""
        if not self.known(kind, site):
            self._found.add((kind, id(site)))
            put_finding(self._launch.located(what, site, group, position))

    def where(self, site: Instruction) -> str:
        """Give an instruction's file and line."""
        return self._launch.entry.module.place(site)

    def access(self, touched: Touched, piece: int) -> str:
        """Say what the access of a piece's lane does, and where."""
        access = touched.access
        verb = {"ld": "reads", "st": "writes"}.get(access.kind, "updates")
        amount = "1 byte" if access.size == 1 else f"{access.size} bytes"
        return f"{verb} {amount} of {self.place(touched, piece)}"

    def place(self, touched: Touched, piece: int) -> str:
        """Say where the access of a piece's lane begins."""
        address, chunk = touched.access.address, touched.group.chunk
        places, lane = address.places, piece // touched.each
        place = int(places[lane] if places.__class__ is ndarray else places) + touched.access.offset
        space = address.space
        if space.size is None:
            memory = self._memory
            seen = place + memory.base
            where = f"{seen:#x} ({memory.describe(seen)})"
        elif space.name == "shared":
            where = self._launch.shared_place(place % chunk.shared_stride)
        else:
            where = f"{place % max(chunk.local_stride, 1):#x}"
        return f"{space.name} memory at {where}"

"""Undo what a launch has written to global memory, so that it can run again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ptx.running.launch import Launch
from ..ptx.syntax.instructions import Call, Symbol

Array = NDArray[Any]
# Memory is saved in aligned pieces of 256 bytes, each of which belongs to one allocation.
_SHIFT = 8
# The functions of the device's runtime that change nothing but the output of the launch.
_HARMLESS = frozenset({"vprintf", "__assertfail"})


class SavedMemory:
    """The contents that pieces of global memory had before the first write."""

    def __init__(self) -> None:
        self._pieces: dict[int, Array] = {}

    def save(self, memory: Array, places: Array, size: int) -> None:
        """Save the pieces that are about to be written: `size` bytes at each place."""
        for number in np.unique(np.concatenate([places, places + (size - 1)]) >> _SHIFT).tolist():
            if number not in self._pieces:
                self._pieces[number] = memory[number << _SHIFT : number + 1 << _SHIFT].copy()

    def restore(self, memory: Array) -> None:
        """Write the saved contents back, and forget them."""
        for number, contents in self._pieces.items():
            memory[number << _SHIFT : number + 1 << _SHIFT] = contents
        self._pieces.clear()


def can_be_undone(launch: Launch) -> bool:
    """Return whether a launch can be undone.

    It cannot if the kernel allocates memory, launches other kernels, sets conditions of graphs, or writes surfaces.
    """
    entry = launch.entry
    for body in (entry.body, *entry.called):
        for site in body.instructions:
            if site.opcode.startswith(("sust", "sured")):
                return False
            target = site.operands[0].target if site.operands and isinstance(site.operands[0], Call) else None
            if isinstance(target, Symbol) and target.name not in _HARMLESS and not entry.module.function(target.name):
                return False
    return True

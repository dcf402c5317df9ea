"""Marks of uninitialised values that have been stored to the shared and local memory of a chunk.

Copying an uninitialised value is not a mistake: programs move padding, and the unused elements of a partial tile,
through shared and local memory. A store there therefore propagates the marks, byte by byte, and a load propagates them
back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...ptx.compiling.opcode_table.opcodes import form_of
from ...ptx.syntax.instructions import Instruction, Operand, Register, items_of
from ...ptx.syntax.types import TYPE_SIZES

if TYPE_CHECKING:
    from ...ptx.compiling.analysis.control_flow import Code
    from ...ptx.running.memory.spaces import Space
    from ..accesses import MemoryAccess

Array = NDArray[Any]
# Returns a phrase that says where a marked value came from.
Origin = Callable[[], str]


class Touched(NamedTuple):
    """Bytes of shared or local memory that an instruction is about to load into registers, or to store from them.

    The lane at each of `positions` in the group touches `size` bytes, from the byte offset in `places` on. If a load
    writes only one register, `register` is a pair: the index of the register, and the index of the first byte written
    in it. None means all registers.
    """

    site: Instruction
    space: Space
    positions: Array
    places: Array
    size: int
    register: tuple[int, int] | None

    @classmethod
    def by(cls, access: MemoryAccess) -> Touched:
        """Return the bytes that an access touches."""
        positions = np.arange(access.group.n) if access.positions is None else access.positions
        places = np.broadcast_to(access.address.places + access.offset, positions.shape)
        return cls(access.site, access.address.space, positions, places, access.size, access.register)

    def elements(self, code: Code, operand: int) -> list[tuple[int, int, int, int]]:
        """Return a tuple per register of an operand: slot, first byte, number of bytes, and their distance in memory.

        `operand` is the operand's index. The distance is from the byte offset in `places`. A value that is not in a
        register has the slot -1.
        """
        slots = slots_of(code, self.site.operands[operand])
        if self.register is not None:
            number, first = self.register
            return [(slots[number], first, self.size, 0)]
        size = TYPE_SIZES[form_of(self.site).type]
        return [(slot, 0, size, number * size) for number, slot in enumerate(slots)]


def slots_of(code: Code, operand: Operand) -> list[int]:
    """Return the slot of each element of an operand, -1 for an element that is not in a register.

    A vector load may discard elements (`_`), and a vector store may have constants.
    """
    items = items_of(operand)
    return [code.slot(item.name) if isinstance(item, Register) else -1 for item in items]


def moves_registers(site: Instruction) -> bool:
    """Return whether an instruction loads registers from memory, or stores registers to memory, unchanged."""
    row = form_of(site).row
    return row.access == "ld" or (row.access == "st" and not row.converges)


class MemoryMarks:
    """The marked bytes of a chunk's shared and local memory, keyed by the name of the space.

    Each byte has the number of the store that wrote an uninitialised value there, or 0 if the value is defined.
    """

    def __init__(self) -> None:
        self._bytes: dict[str, Array] = {}
        self._numbers: dict[int, int] = {}
        # For each store, the origin of the uninitialised value that it wrote last.
        self._origins: dict[int, Origin] = {}

    def __bool__(self) -> bool:
        return bool(self._bytes)

    def store(self, touched: Touched, distance: int, undefined: Array, origin: Origin | None) -> None:
        """Set the marks of the bytes that are stored; `undefined` has one row per lane and one column per byte."""
        marked, number = self._bytes.get(touched.space.name), 0
        if origin is not None and undefined.any():
            marked, number = self._of(touched.space), self._number(touched.site, origin)
        if marked is not None:
            places = _bytes_at(touched.places + distance, undefined.shape[1])
            marked[places] = undefined * np.uint32(number)

    def combine(self, touched: Touched, distance: int, undefined: Array, origin: Origin) -> None:
        """Mark the undefined bytes of an atomic's operand in the word, whose other bytes keep their marks."""
        if undefined.any():
            places = _bytes_at(touched.places + distance, undefined.shape[1])
            self._of(touched.space)[places[undefined]] = self._number(touched.site, origin)

    def _of(self, space: Space) -> Array:
        """Return the marks of a space."""
        if space.name not in self._bytes:
            self._bytes[space.name] = np.zeros(len(space.bytes), np.uint32)
        return self._bytes[space.name]

    def _number(self, site: Instruction, origin: Origin) -> int:
        """Return the number of an instruction that stores an undefined value, and remember the value's origin."""
        number = self._numbers.setdefault(id(site), len(self._numbers) + 1)
        self._origins[number] = origin
        return number

    def define(self, touched: Touched) -> None:
        """Clear the marks of bytes whose new values do not come from registers."""
        marked = self._bytes.get(touched.space.name)
        if marked is not None:
            marked[_bytes_at(touched.places, touched.size)] = 0

    def load(self, touched: Touched, distance: int, size: int) -> tuple[Array, Origin] | None:
        """Return a mask of each lane's undefined bytes, and the origin of one such value; None if all are defined."""
        marked = self._bytes.get(touched.space.name)
        if marked is None:
            return None
        numbers = marked[_bytes_at(touched.places + distance, size)]
        return (numbers != 0, self._origins[int(numbers.max())]) if numbers.any() else None


def _bytes_at(places: Array, size: int) -> Array:
    return np.asarray(places)[:, None] + np.arange(size)

"""Multiply small matrices held by whole warps (``wmma``).

Which element a lane's register holds is opaque to programs. Here element number ``lane * per_lane + i`` of the matrix
in rows lies in place i of a lane, counted round again where the fragments hold every element twice. Products are
summed in double precision and rounded once; the hardware rounds in between, in ways that NVIDIA doesn't document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..operations.floats.formats import narrow, widen
from ..operations.floats.half import halves, pair
from ..syntax.instructions import Instruction

if TYPE_CHECKING:
    from .groups import Group

__all__ = ["Matrices"]

Array = NDArray[Any]
Extent = tuple[int, int]
# The extent of a matrix, how many of its elements a lane has, whether columns lie together, and their distance.
Layout = tuple[Extent, int, bool, Any]

_HALVES = ("f16", "bf16")


class Matrices:
    """Load, multiply and store matrices for the groups of a chunk."""

    def load(self, group: Group, space: str, base: Any, layout: Layout, kind: str, site: Instruction) -> list[Array]:
        """Return the registers of a fragment: packed halves, or one register for each f32."""
        memory = group.chunk.memory
        size, name = (2, "u2") if kind in _HALVES else (4, "f4")
        values = []
        for place in _places(group, *layout):
            address = memory.place(group, space, _moved(base, place * size))
            values.append(memory.load(address, 0, name, size >> 1, site))
        return _packed(values) if kind in _HALVES else values

    def store(
        self, group: Group, space: str, base: Any, layout: Layout, kind: str, registers: list[Array], site: Instruction
    ) -> None:
        """Store the elements of a fragment."""
        memory = group.chunk.memory
        size, name = (2, "u2") if kind in _HALVES else (4, "f4")
        values = _unpacked(registers) if kind in _HALVES else registers
        for place, value in zip(_places(group, *layout), values, strict=True):
            address = memory.place(group, space, _moved(base, place * size))
            memory.store(address, 0, name, size >> 1, value, site)

    def multiply(
        self, group: Group, extents: tuple[Extent, ...], kinds: tuple[str, ...], fragments: list[list[Array]]
    ) -> list[Array]:
        """Return the registers of ``a * b + c`` for each warp.

        `extents` are those of a, b and c, and `kinds` the types of d, a, b and c.
        """
        a, b, c = (
            _matrix(registers, kind, extent, group.n)
            for registers, kind, extent in zip(fragments, kinds[1:], extents, strict=True)
        )
        product = np.matmul(a, b) + c
        count = product.shape[1] * product.shape[2] // 32
        lanes = product.reshape(-1, count)
        if kinds[0] == "f32":
            return [lanes[:, item].astype(np.float32) for item in range(count)]
        return _packed([narrow(np.ascontiguousarray(lanes[:, item]), None, kinds[0]) for item in range(count)])


def _places(group: Group, extent: Extent, count: int, column_major: bool, stride: Any) -> list[Array]:
    """Return the distance of each of a lane's `count` elements from the matrix's start, in elements."""
    lane = group.special("%laneid").astype(np.int64)
    steps = np.asarray(stride).astype(np.int64)
    found = []
    for item in range(count):
        row, column = np.divmod((lane * count + item) % (extent[0] * extent[1]), extent[1])
        found.append(column * steps + row if column_major else row * steps + column)
    return found


def _moved(base: Any, distance: Array) -> Array:
    return np.asarray(base + distance.astype(base.dtype))


def _packed(values: list[Array]) -> list[Array]:
    """Return halves packed two by two."""
    return [pair(low, high) for low, high in zip(values[::2], values[1::2], strict=True)]


def _unpacked(registers: list[Array]) -> list[Array]:
    """Return the halves of packed registers."""
    return [half for register in registers for half in halves(register)]


def _matrix(registers: list[Array], kind: str, extent: Extent, lanes: int) -> Array:
    """Return the matrix of each warp in double precision."""
    values = [widen(value, kind) for value in _unpacked(registers)] if kind in _HALVES else registers
    table = np.stack([np.broadcast_to(value, lanes).astype(np.float64) for value in values], axis=1)
    size = extent[0] * extent[1]
    return table.reshape(lanes // 32, -1)[:, :size].reshape(-1, *extent)

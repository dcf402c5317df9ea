"""Surfaces: the bytes that an access by coordinates reads or writes."""

from __future__ import annotations

from ..values import Value, maximum, minimum, where
from .textures import AXES


def operand_types(geometry: str) -> list[str]:
    """Return the types of the operands of `located` that follow the size."""
    return [*["u32"] * (geometry[0] == "a"), *["s32"] * AXES[geometry], *["s64"] * 5]


def located(geometry: str, size: int, *operands: Value) -> tuple[Value, Value]:
    """Return the byte offsets of accesses of `size` bytes, and which of the accesses are outside.

    The operands are the layer's index if there are layers, the coordinates, the size of a row in bytes, the number of
    rows and of planes or layers, and the bytes from row to row and from plane to plane. The first coordinate counts
    bytes, the others rows and planes. An access outside gets the offset of the nearest access inside that begins at a
    multiple of its size.
    """
    *coordinates, row, height, depth, pitch, slice_pitch = operands
    layer = [(coordinates.pop(0), depth, slice_pitch)] if geometry[0] == "a" else []
    x, *others = coordinates
    place, outside = _inside(x, row - size, size)
    for index, extent, step in [*zip(others, (height, depth), (pitch, slice_pitch), strict=False), *layer]:
        nearest, beyond = _inside(index, extent - 1, 1)
        place, outside = place + nearest * step, outside | beyond
    return place, outside


def _inside(coordinate: Value, last: Value, unit: int) -> tuple[Value, Value]:
    """Return coordinates, clamped to multiples of a unit if they are outside, and which of them were outside."""
    wide = coordinate.to("s64")
    outside = (wide < 0) | (wide > last)
    return where(outside, minimum(maximum(wide, 0), maximum(last & -unit, 0)), wide), outside

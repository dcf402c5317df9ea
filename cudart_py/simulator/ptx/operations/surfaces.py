"""Surfaces: the locations of the bytes that a kernel reads or writes by coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .geometries import geometry_of

Array = NDArray[Any]


@dataclass(frozen=True)
class Surface:
    """A surface object over memory that starts at a device address.

    `row` is the size of a row in bytes. `height` and `depth` count rows and planes, 0 for a missing dimension; with
    `layered`, the depth counts layers. `pitch` and `slice_pitch` are the bytes from row to row and from plane to plane.
    """

    address: int
    row: int
    height: int
    depth: int
    pitch: int
    slice_pitch: int
    layered: bool

    @property
    def geometry(self) -> str:
        """Return the dimensions as the instructions name them."""
        return geometry_of(self.height, self.depth, self.layered)

    @property
    def size(self) -> int:
        """Return the size of the memory in bytes, from the first plane to the end of the last."""
        return self.slice_pitch * max(self.depth, 1)


def located(surface: Surface, coordinates: Sequence[Array], size: int) -> tuple[Array, Array]:
    """Return the byte offsets of accesses of `size` bytes, and which of the accesses are outside.

    The first coordinate counts bytes, the others rows and planes; in a layered surface, the layer comes before them.
    An access outside gets the offset of the nearest access inside that begins at a multiple of its size.
    """
    # Layers follow the last axis, as planes do.
    x, *others = (*coordinates[1:], coordinates[0]) if surface.layered else coordinates
    steps = [(surface.pitch, surface.height), (surface.slice_pitch, surface.depth)]
    place, outside = _inside(x, surface.row - size, size)
    for axis, (pitch, extent) in zip(others, (step for step in steps if step[1]), strict=True):
        index, beyond = _inside(axis, extent - 1, 1)
        place = place + index * pitch
        outside |= beyond
    return place, outside


def _inside(coordinate: Array, last: int, unit: int) -> tuple[Array, Array]:
    """Return coordinates, clamped to multiples of a unit if they are outside, and which of them were outside."""
    wide = coordinate.astype(np.int64)
    outside = (wide < 0) | (wide > last)
    return np.where(outside, np.clip(wide, 0, max(last // unit, 0) * unit), wide), outside

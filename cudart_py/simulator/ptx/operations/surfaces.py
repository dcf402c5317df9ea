"""Surfaces: the locations of the bytes that a kernel reads or writes by coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.expressions import array_function
from ..instructions.images.surfaces import located, operand_types
from .textures import geometry_of

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


def locate(surface: Surface, coordinates: Sequence[Array], size: int) -> tuple[Array, Array]:
    """Return the byte offsets of accesses of `size` bytes, and which are outside; see `instructions.surfaces`.

    In a layered surface, the layer comes before the other coordinates.
    """
    extents = (surface.row, surface.height, surface.depth, surface.pitch, surface.slice_pitch)
    types, told = operand_types(surface.geometry), (surface.geometry, size)
    place, outside = array_function(located, *types, told=told)(*coordinates, *map(np.int64, extents))
    return place, outside

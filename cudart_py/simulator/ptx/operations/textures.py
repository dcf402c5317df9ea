"""Texture objects, and fetches from them for arrays of lanes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.expressions import array_function
from ..instructions.images.textures import CHANNELS, Sampling, filtered, gathered, located

Array = NDArray[Any]

# The PTX types of the results of fetches by their NumPy types.
_RESULTS = {"f4": "f32", "u4": "u32", "i4": "s32"}
# The description of each geometry in error messages.
# The bytes of one row in a tile.
_TILE_BYTES = 16
GEOMETRIES = {
    "1d": "one dimension",
    "2d": "two dimensions",
    "3d": "three dimensions",
    "a1d": "layers of one dimension",
    "a2d": "layers of two dimensions",
    "cube": "a cube map",
    "acube": "layers of cube maps",
}


@dataclass(frozen=True)
class Texture:
    """A texture object over memory that starts at a device address.

    `width`, `height` and `depth` count texels, 0 for a missing dimension; with `layered`, the depth counts layers.
    `pitch` is the bytes from row to row, `slice_pitch` is the bytes from plane to plane or from layer to layer, and
    `dtype` is a channel's NumPy type. `address_modes` holds wrap, clamp, mirror or border for each axis.
    `normalized_read` converts integers to numbers in [0, 1] or [-1, 1]. A `cube` has six layers for the faces, or six
    per layer if it is `layered`. `levels` are the levels of a mipmap, the first of which is this texture itself; a
    fetch takes the nearest level, or with `blends_levels` two of them, after adding `level_bias` and clamping. In
    hardware, the memory of a `tiled` texture consists of tiles of two rows.
    """

    address: int
    width: int
    height: int
    pitch: int
    channels: int
    dtype: str
    address_modes: tuple[str, str, str] = ("clamp", "clamp", "clamp")
    linear: bool = False
    normalized_coordinates: bool = False
    normalized_read: bool = False
    border: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    depth: int = 0
    slice_pitch: int = 0
    layered: bool = False
    cube: bool = False
    levels: tuple[Texture, ...] = ()
    blends_levels: bool = False
    level_bias: float = 0.0
    level_limits: tuple[float, float] = (0.0, 0.0)
    tiled: bool = False

    @property
    def geometry(self) -> str:
        """Return the dimensions as the instructions name them."""
        return geometry_of(self.height, self.depth, self.layered, self.cube)

    @property
    def extents(self) -> tuple[int, ...]:
        """Return the extents in texels along x, y and z, for the dimensions that the texture has."""
        extents = (self.width, self.height, 0 if self.layered else self.depth)
        return tuple(extent for extent in extents if extent)

    @property
    def texel(self) -> int:
        """Return the size of a texel in bytes."""
        return self.channels * np.dtype(self.dtype).itemsize

    @property
    def size(self) -> int:
        """Return the size of the memory in bytes, from the first texel to the end of the last."""
        above = self.slice_pitch * (max(self.depth, 1) - 1) + self.pitch * (max(self.height, 1) - 1)
        return above + self.width * self.texel

    def sampling(self, integers: bool, result: str) -> Sampling:
        """Return how a fetch by float or integer coordinates works whose results have a PTX type."""
        filter_ = "index" if integers else "linear" if self.linear else "point"
        axes = 1 if self.geometry == "a1d" else max(len(self.extents), 1 + (filter_ == "linear"))
        return Sampling(
            self.geometry,
            self.dtype,
            str(self.channels),
            "-".join(self._mode(axis) for axis in range(axes)),
            filter_,
            "normalized" if self.normalized_coordinates else "texels",
            "fraction" if self.normalized_read else "element",
            result,
        )

    def _mode(self, axis: int) -> str:
        """Return the address mode that is in effect along an axis."""
        mode = self.address_modes[axis]
        # Wrapping and mirroring exist for normalized coordinates only; otherwise, coordinates are clamped.
        return mode if self.normalized_coordinates or mode == "border" else "clamp"

    def border_color(self, how: Sampling) -> list[float]:
        """Return the border's color as the numbers that the texels of a fetch can have."""
        color = np.array(self.border)
        if how.is_sum:
            return [float(number) for number in color]
        kind = np.dtype("f4" if how.read == "fraction" else self.dtype)
        with np.errstate(all="ignore"):
            return [float(number) for number in color.astype(kind)]

    @property
    def measures(self) -> tuple[list[float], list[int]]:
        """Return the width, the height and the depth, and the bytes from row to row and from plane to plane."""
        return [float(extent) for extent in (self.width, self.height, self.depth)], [self.pitch, self.slice_pitch]


def sample(
    levels: Sequence[Texture],
    data: Sequence[NDArray[np.uint8]],
    weights: Sequence[Array],
    coordinates: Sequence[Array],
    dtype: str,
) -> list[Array]:
    """Return four channel arrays of `dtype` ("f4", "u4" or "i4") at the coordinates of each lane.

    The fetch is from one texture, or filtered between two levels of a mipmap, whose weights add up to 256. `data` views
    the bytes of each. In a layered texture, the layer comes before the coordinates. Integer coordinates fetch texels by
    index.
    """
    how = levels[0].sampling(coordinates[-1].dtype.kind in "iu", _RESULTS[dtype])
    if weights:
        how = how._replace(levels="two")
    texels: list[Array] = []
    beyond: list[Array] = []
    parts: list[Array] = []
    for number, (level, bytes_) in enumerate(zip(levels, data, strict=True)):
        share = [weights[number].astype(np.float64)] if weights else []
        offsets, rest = _places(level, how, coordinates, *share)
        texels += _texels(level, bytes_, offsets, range(level.channels))
        beyond += rest[: how.corners] if how.has_border else ()
        parts += rest[how.corners * how.has_border :]
    combine = array_function(filtered, *how.texel_types, told=(how,))
    channels = combine(*texels, *beyond, *parts, *map(np.float64, levels[0].border_color(how)))
    return [np.broadcast_to(channel, offsets[0].shape) for channel in channels]


def _texels(
    texture: Texture, data: NDArray[np.uint8], offsets: Sequence[Array], channels: Iterable[int]
) -> list[Array]:
    """Return some channels of the texels at some offsets, one texel after another."""
    itemsize = np.dtype(texture.dtype).itemsize
    # Halves are fetched as bit patterns.
    kind = "u2" if texture.dtype == "f2" else texture.dtype
    elements = data[: len(data) // itemsize * itemsize].view(kind)
    return [elements.take((place // itemsize) + channel) for place in offsets for channel in channels]


def gather(
    texture: Texture, data: NDArray[np.uint8], coordinates: Sequence[Array], dtype: str, component: int
) -> list[Array]:
    """Return a channel of the four texels that a filtered fetch would read, as arrays of `dtype` (``tld4``)."""
    how = texture.sampling(False, _RESULTS[dtype])._replace(filter="point")
    offsets, rest = _places(texture, how._replace(filter="linear"), coordinates)
    if component >= texture.channels:
        return [np.zeros(offsets[0].shape, dtype)] * 4
    texels = _texels(texture, data, offsets, [component])
    beyond = rest[:4] if how.has_border else ()
    types = [CHANNELS[how.channel]] * 4 + ["pred"] * 4 * how.has_border + ["f64"]
    found = array_function(gathered, *types, told=(how,))(
        *texels, *beyond, np.float64(texture.border_color(how)[component])
    )
    return [np.broadcast_to(value, offsets[0].shape) for value in found]


def touched(texture: Texture, coordinates: Sequence[Array], *, gathers: bool = False) -> Array:
    """Return the byte offsets in the texture of the texels that each lane's fetch, or gather, reads.

    The shape is (lanes, 1), or with linear filtering (lanes, n), where n is 2, 4 or 8. An offset is -1 if the border is
    read instead.
    """
    how = texture.sampling(coordinates[-1].dtype.kind in "iu", "f32")
    if gathers:
        how = how._replace(filter="linear")
    offsets, rest = _places(texture, how, coordinates)
    beyond = rest[: how.corners] if how.has_border else (False,) * how.corners
    return np.stack([np.where(truth, -1, place) for truth, place in zip(beyond, offsets, strict=True)], 1)


def offsets_in_tiles(texture: Texture, offsets: Array) -> Array:
    """Return where hardware stores the bytes at some offsets in a texture; a negative offset stays as it is.

    A 2-D CUDA array consists of sectors of 16 bytes of two rows, as measured on an H200.
    """
    if not texture.tiled:
        return offsets
    row, column = np.divmod(offsets, texture.pitch)
    piece, byte = np.divmod(column, _TILE_BYTES)
    pair = -(-texture.pitch // _TILE_BYTES) * (row // 2) + piece
    return np.where(offsets < 0, offsets, (2 * pair + row % 2) * _TILE_BYTES + byte)


def _places(
    texture: Texture, how: Sampling, coordinates: Sequence[Array], *share: Array
) -> tuple[tuple[Array, ...], Any]:
    """Return the offsets of the texels of each corner, and the other results of `located`."""
    extents, pitches = texture.measures
    locate = array_function(located, *how.operand_types, told=(how,))
    found = locate(*coordinates, *map(np.float64, extents), *map(np.int64, pitches), *share)
    found = found if isinstance(found, tuple) else (found,)
    return found[: how.corners], found[how.corners :]


def geometry_of(height: int, depth: int, layered: bool, cube: bool = False) -> str:
    """Return the geometry for a height and a depth, 0 for a missing one; if `layered`, the depth counts layers.

    In a cube map, the depth counts faces.
    """
    if cube:
        return "acube" if layered else "cube"
    if layered:
        return "a2d" if height else "a1d"
    return "3d" if depth else "2d" if height else "1d"

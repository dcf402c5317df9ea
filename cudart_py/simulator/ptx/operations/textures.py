"""Sample textures as the hardware does: addressing modes, nearest points, and linear filtering with 8-bit weights.

How coordinates and weights are rounded is what recorded outputs of an H200 show, of textures of two dimensions. The
weights of three dimensions are assumed: those of two for each plane, times the weight of the plane.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .geometries import geometry_of

__all__ = ["Texture", "sample", "touched"]

Array = NDArray[Any]

# The bits behind the point that count of a normalized coordinate; recordings agree with any number from 15 to 21.
_COORDINATE_BITS = 21
# The unit of a filter's weights.
_WEIGHT = 256
_FRACTION = 65535


@dataclass(frozen=True)
class Texture:
    """A texture object over memory that starts at a device address.

    `width`, `height` and `depth` count texels, 0 for dimensions that there are not; with `layered` the depth counts
    layers. `pitch` is the bytes of a row, `slice_pitch` those of a plane or layer, `dtype` a channel's NumPy type.
    `address_modes` holds wrap, clamp, mirror or border for each axis. `normalized_read` turns integers into numbers of
    [0, 1] or [-1, 1].
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

    @property
    def geometry(self) -> str:
        """Return the dimensions as the instructions name them."""
        return geometry_of(self.height, self.depth, self.layered)

    @property
    def extents(self) -> tuple[int, ...]:
        """Return the texels along x, y and z, as far as it has them."""
        extents = (self.width, self.height, 0 if self.layered else self.depth)
        return tuple(extent for extent in extents if extent)

    @property
    def texel(self) -> int:
        """Return the bytes of a texel."""
        return self.channels * np.dtype(self.dtype).itemsize

    @property
    def size(self) -> int:
        """Return the bytes from the first texel to the end of the last."""
        above = self.slice_pitch * (max(self.depth, 1) - 1) + self.pitch * (max(self.height, 1) - 1)
        return above + self.width * self.texel


def _texels(texture: Texture, data: NDArray[np.uint8]) -> Array:
    """View the texture's bytes as planes of rows of texels of channels."""
    dtype = np.dtype(texture.dtype)
    shape = (max(texture.depth, 1), max(texture.height, 1), texture.width, texture.channels)
    return np.ndarray(shape, dtype, data, 0, (texture.slice_pitch, texture.pitch, texture.texel, dtype.itemsize))


def _place(index: Array, extent: int, mode: str) -> tuple[Array, Array]:
    """Return texel numbers brought into range, and where the border is read instead."""
    inside = (index >= 0) & (index < extent)
    if mode == "wrap":
        return index % extent, np.zeros(index.shape, np.bool_)
    if mode == "mirror":
        period = index % (2 * extent)
        return np.where(period < extent, period, 2 * extent - 1 - period), np.zeros(index.shape, np.bool_)
    return np.clip(index, 0, extent - 1), ~inside if mode == "border" else np.zeros(index.shape, np.bool_)


def _found(texture: Texture, place: Sequence[Array], layer: Any) -> tuple[tuple[Any, Any, Any], Array]:
    """Return the planes, rows and columns of texels, brought into range, and where the border is read instead."""
    beyond = np.zeros(place[0].shape, np.bool_)
    found: list[Any] = []
    for index, extent, mode in zip(place, texture.extents, texture.address_modes, strict=False):
        # Wrapping and mirroring exist for normalized coordinates only; else they clamp.
        used = mode if texture.normalized_coordinates or mode == "border" else "clamp"
        inside, outside = _place(index, extent, used)
        found.append(inside)
        beyond |= outside
    column, row, plane = (*found, 0, 0)[:3]
    return (layer if texture.layered else plane, row, column), beyond


def _fetch(texture: Texture, texels: Array, place: Sequence[Array], layer: Any) -> Array:
    """Return channels of texels, shape (lanes, channels), with the border where it applies."""
    found, beyond = _found(texture, place, layer)
    values: Array = texels[found]
    if texture.normalized_read:
        limit = np.iinfo(texture.dtype).max
        values = np.maximum(values.astype(np.float32) / np.float32(limit), np.float32(-1))
    if beyond.any():
        values[beyond] = np.array(texture.border[: texture.channels]).astype(values.dtype)
    return values


def sample(texture: Texture, data: NDArray[np.uint8], coordinates: Sequence[Array], dtype: str) -> list[Array]:
    """Return four channel arrays of `dtype` ("f4", "u4" or "i4") at coordinates of each lane.

    `data` views the texture's bytes. Of a layered texture the layer comes before the coordinates. Integer coordinates
    fetch texels by number; missing channels are 0, the fourth 1.
    """
    texels = _texels(texture, data)
    layer, place = _split(texture, coordinates)
    if place[0].dtype.kind in "iu":
        values = _fetch(texture, texels, [axis.astype(np.int64) for axis in place], layer)
    elif texture.linear:
        values = _linear(texture, texels, _in_texels(texture, place), layer)
    else:
        values = _fetch(texture, texels, _nearest(texture, place), layer)
    channels: list[Array] = []
    for channel in range(4):
        if channel < texture.channels:
            column = values[:, channel]
            if dtype == "f4":
                channels.append(column.astype(np.float32))
            else:
                channels.append(column.astype("i8").astype(dtype))
        else:
            channels.append(np.full(len(values), 1 if channel == 3 else 0, dtype))
    return channels


def touched(texture: Texture, coordinates: Sequence[Array]) -> Array:
    """Return the bytes' places of the texels that each lane's fetch reads, counted from the texture's first.

    The shape is (lanes, 1), or (lanes, 2, 4 or 8) where the texture filters; a place is -1 where the border is read
    instead.
    """
    layer, place = _split(texture, coordinates)
    if place[0].dtype.kind in "iu":
        corners = [[axis.astype(np.int64) for axis in place]]
    elif texture.linear:
        before = [_weighted(axis)[0] for axis in _in_texels(texture, place)]
        steps = itertools.product((0, 1), repeat=len(place))
        corners = [[axis + step for axis, step in zip(before, corner, strict=True)] for corner in steps]
    else:
        corners = [_nearest(texture, place)]
    places = []
    for corner in corners:
        (plane, row, column), beyond = _found(texture, corner, layer)
        start = plane * texture.slice_pitch + row * texture.pitch + column * texture.texel
        places.append(np.where(beyond, -1, start))
    return np.stack(places, 1)


def _split(texture: Texture, coordinates: Sequence[Array]) -> tuple[Any, Sequence[Array]]:
    """Return the number of each lane's layer, 0 without layers, and its coordinates."""
    if not texture.layered:
        return 0, coordinates
    return np.minimum(coordinates[0], texture.depth - 1).astype(np.int64), coordinates[1:]


def _in_texels(texture: Texture, place: Sequence[Array]) -> list[Array]:
    """Return coordinates of floats in units of texels."""
    wide = [axis.astype(np.float64) for axis in place]
    if texture.normalized_coordinates:
        return [_scale(axis, extent) for axis, extent in zip(wide, texture.extents, strict=True)]
    return wide


def _nearest(texture: Texture, place: Sequence[Array]) -> list[Array]:
    """Return the numbers of the texels that coordinates of floats lie in."""
    return [np.floor(axis).astype(np.int64) for axis in _in_texels(texture, place)]


def _scale(coordinate: Array, extent: int) -> Array:
    """Return normalized coordinates as texels."""
    unit = 1 << _COORDINATE_BITS
    texels: Array = np.floor(coordinate * unit) / unit * extent
    return texels


def _linear(texture: Texture, texels: Array, place: Sequence[Array], layer: Any) -> Array:
    """Filter between the nearest texels, two along each axis."""
    weighted = [_weighted(axis) for axis in place]
    weights, unit = _weights([weight for _, weight in weighted])
    total = np.zeros((len(place[0]), texture.channels))
    for corner, weight in weights.items():
        found = [before + step for (before, _), step in zip(weighted, corner, strict=True)]
        total += _fetch(texture, texels, found, layer).astype(np.float64) * weight[:, None]
    filtered: Array = total / unit
    if texture.normalized_read and texture.dtype[0] == "u":
        # Integers are filtered as fractions of 16 bits.
        # Their weighted sums are whole numbers of those divided by the unit of the weights.
        steps = np.rint(filtered * _FRACTION * unit)
        filtered = np.floor(steps / unit + 0.5) / _FRACTION
    return filtered


def _weights(behind: Sequence[Array]) -> tuple[dict[tuple[int, ...], Array], int]:
    """Return the weight of each corner, which is 0 or 1 along x, y and z, and the sum of all weights.

    `behind` are the weights of the farther texels along each axis. They have 8 bits, and so has the product of two.
    """
    across = behind[0]
    if len(behind) == 1:
        return {(0,): _WEIGHT - across, (1,): across}, _WEIGHT
    down = behind[1]
    both = np.floor(across * down / _WEIGHT + 0.5)
    flat: dict[tuple[int, ...], Array] = {
        (0, 0): _WEIGHT - across - down + both,
        (1, 0): across - both,
        (0, 1): down - both,
        (1, 1): both,
    }
    if len(behind) == 2:
        return flat, _WEIGHT
    deep = {0: _WEIGHT - behind[2], 1: behind[2]}
    return {(*corner, z): weight * deep[z] for z in (0, 1) for corner, weight in flat.items()}, _WEIGHT * _WEIGHT


def _weighted(coordinate: Array) -> tuple[Array, Array]:
    """Return the texel before each coordinate, counted from texels' middles, and the weight of the one behind it."""
    steps = np.floor((coordinate - 0.5) * _WEIGHT + 0.5).astype(np.int64)
    return steps >> 8, (steps & (_WEIGHT - 1)).astype(np.float64)

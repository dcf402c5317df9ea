"""Sample textures as the hardware does: addressing modes, nearest points, and linear filtering with 8-bit weights.

Coordinates, weights and sums are rounded as recorded outputs of an H200 show, for one to three dimensions and for
layers. The filtering of negative floats, of halves, and of the border's color among integers is an assumption: the
recordings contain none of these.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .geometries import geometry_of

Array = NDArray[Any]

# The fraction bits of a normalized coordinate that have an effect; recordings agree only with this number.
_COORDINATE_BITS = 21
# The filter weight that represents 1.
_WEIGHT = 256
# The bits of the largest texel when floats are filtered, and the bits of the result.
_TEXEL_BITS, _FLOAT_BITS = 28, 24


@dataclass(frozen=True)
class Texture:
    """A texture object over memory that starts at a device address.

    `width`, `height` and `depth` count texels, 0 for a missing dimension; with `layered`, the depth counts layers.
    `pitch` is the bytes from row to row, `slice_pitch` is the bytes from plane to plane or from layer to layer, and
    `dtype` is a channel's NumPy type. `address_modes` holds wrap, clamp, mirror or border for each axis.
    `normalized_read` converts integers to numbers in [0, 1] or [-1, 1].
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


def _texels(texture: Texture, data: NDArray[np.uint8]) -> Array:
    """View the texture's bytes as planes of rows of texels of channels."""
    dtype = np.dtype(texture.dtype)
    shape = (max(texture.depth, 1), max(texture.height, 1), texture.width, texture.channels)
    return np.ndarray(shape, dtype, data, 0, (texture.slice_pitch, texture.pitch, texture.texel, dtype.itemsize))


def _place(index: Array, extent: int, mode: str) -> tuple[Array, Array]:
    """Return texel indices brought into range, and which lanes read the border instead."""
    inside = (index >= 0) & (index < extent)
    if mode == "wrap":
        return index % extent, np.zeros(index.shape, np.bool_)
    if mode == "mirror":
        period = index % (2 * extent)
        return np.where(period < extent, period, 2 * extent - 1 - period), np.zeros(index.shape, np.bool_)
    return np.clip(index, 0, extent - 1), ~inside if mode == "border" else np.zeros(index.shape, np.bool_)


def _mode(texture: Texture, axis: int) -> str:
    """Return the address mode that is in effect along an axis."""
    mode = texture.address_modes[axis]
    # Wrapping and mirroring exist for normalized coordinates only; otherwise, coordinates are clamped.
    return mode if texture.normalized_coordinates or mode == "border" else "clamp"


def _found(texture: Texture, place: Sequence[Array], layer: Any) -> tuple[tuple[Any, Any, Any], Array]:
    """Return the planes, rows and columns of texels, brought into range, and which lanes read the border instead."""
    beyond = np.zeros(place[0].shape, np.bool_)
    found: list[Any] = []
    for axis, (index, extent) in enumerate(zip(place, texture.extents, strict=True)):
        inside, outside = _place(index, extent, _mode(texture, axis))
        found.append(inside)
        beyond |= outside
    column, row, plane = (*found, 0, 0)[:3]
    return (layer if texture.layered else plane, row, column), beyond


def _fetch(texture: Texture, texels: Array, place: Sequence[Array], layer: Any) -> Array:
    """Return the channels of texels, of the shape (lanes, channels), with the border where it applies."""
    found, beyond = _found(texture, place, layer)
    values: Array = texels[found]
    if texture.normalized_read:
        limit = np.iinfo(texture.dtype).max
        values = np.maximum(values.astype(np.float32) / np.float32(limit), np.float32(-1))
    if beyond.any():
        values[beyond] = np.array(texture.border[: texture.channels]).astype(values.dtype)
    return values


def sample(texture: Texture, data: NDArray[np.uint8], coordinates: Sequence[Array], dtype: str) -> list[Array]:
    """Return four channel arrays of `dtype` ("f4", "u4" or "i4") at the coordinates of each lane.

    `data` views the texture's bytes. In a layered texture, the layer comes before the coordinates. Integer coordinates
    fetch texels by index. Missing channels are 0, but a missing fourth one is 1.
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
    """Return the byte offsets in the texture of the texels that each lane's fetch reads.

    The shape is (lanes, 1), or with linear filtering (lanes, n), where n is 2, 4 or 8 for 1, 2 or 3 dimensions. An
    offset is -1 if the border is read instead.
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
    """Return the index of each lane's layer, 0 without layers, and its coordinates."""
    if not texture.layered:
        return 0, coordinates
    return np.minimum(coordinates[0], texture.depth - 1).astype(np.int64), coordinates[1:]


def _in_texels(texture: Texture, place: Sequence[Array]) -> list[Array]:
    """Return float coordinates in units of texels."""
    wide = [axis.astype(np.float64) for axis in place]
    if texture.normalized_coordinates:
        return [_scale(axis, extent) for axis, extent in zip(wide, texture.extents, strict=True)]
    return wide


def _nearest(texture: Texture, place: Sequence[Array]) -> list[Array]:
    """Return the indices of the texels that contain float coordinates."""
    return [np.floor(axis).astype(np.int64) for axis in _in_texels(texture, place)]


def _scale(coordinate: Array, extent: int) -> Array:
    """Return normalized coordinates in units of texels."""
    unit = 1 << _COORDINATE_BITS
    texels: Array = np.floor(coordinate * unit) / unit * extent
    return texels


def _linear(texture: Texture, texels: Array, place: Sequence[Array], layer: Any) -> Array:
    """Filter between the nearest texels, two along each axis."""
    if texture.geometry == "1d":
        # The hardware also filters along y, at y = 0. That is halfway between the only row and the texels before it,
        # which are the row itself, or the border if y has that mode.
        texture, place = replace(texture, height=1), (*place, np.zeros_like(place[0]))
    before, behind = zip(*(_weighted(axis) for axis in place), strict=True)
    weights = _weights([_kept(texture, axis, place[axis], weight) for axis, weight in enumerate(behind)])
    values, shares = [], []
    for corner, share in weights.items():
        found, beyond = _found(texture, [axis + step for axis, step in zip(before, corner, strict=True)], layer)
        value = texels[found].astype(np.float64)
        value[beyond] = np.array(texture.border[: texture.channels]) * _one(texture)
        values.append(value)
        shares.append(share[:, None])
    if texture.normalized_read:
        return _sum_of_integers(np.stack(values), np.stack(shares), texture.dtype)
    return _sum_of_floats(np.stack(values), np.stack(shares))


def _one(texture: Texture) -> int:
    """Return the texel value that is read as 1."""
    return int(np.iinfo(texture.dtype).max) if texture.normalized_read else 1


def _weighted(coordinate: Array) -> tuple[Array, Array]:
    """Round coordinates to 256ths; return the last texel whose center isn't after each, and the next texel's weight."""
    steps = np.floor((coordinate - 0.5) * _WEIGHT + 0.5).astype(np.int64)
    return steps >> 8, steps & (_WEIGHT - 1)


def _kept(texture: Texture, axis: int, coordinate: Array, weight: Array) -> Array:
    """Return the weights of the texels after each coordinate, 0 if it is clamped to the center of the edge texel.

    Both texels are the edge texel there, but the rounding of the other axes' weights depends on this one.
    """
    if _mode(texture, axis) != "clamp":
        return weight
    return np.where((coordinate < 0.5) | (coordinate >= texture.extents[axis] - 0.5), 0, weight)


def _weights(behind: Sequence[Array]) -> dict[tuple[int, ...], Array]:
    """Return the weight of each corner, whose coordinates are 0 or 1; the weights add up to 256.

    `behind` contains the weights of the farther texels along each axis. The whole is divided along z, then each part
    along x and then along y. Each time, one part is rounded and the other is the remainder.
    """
    axes = len(behind)
    zeros = np.zeros_like(behind[0])
    across, down, deep = (*behind, zeros, zeros)[:3]
    weights: dict[tuple[int, ...], Array] = {}
    for z, plane in enumerate((_WEIGHT - deep, deep)):
        right = _share(plane, across)
        left = plane - right
        above, below = _share(left, _WEIGHT - down), _share(right, down)
        weights |= {(0, 0, z): above, (0, 1, z): left - above, (1, 0, z): right - below, (1, 1, z): below}
    return {corner[:axes]: weight for corner, weight in weights.items() if not any(corner[axes:])}


def _share(whole: Array, weight: Array) -> Array:
    """Return the product of two weights as a weight, rounded half up."""
    part: Array = (whole * weight + _WEIGHT // 2) // _WEIGHT
    return part


def _sum_of_floats(values: Array, weights: Array) -> Array:
    """Return the weighted sums of floats over the first axis.

    The hardware aligns the texels to the exponent of the largest texel, truncates them to its 28 bits, adds them as
    integers, and rounds the sum to the nearest float, ties away from zero.
    """
    _, exponent = np.frexp(np.abs(values).max(0))
    unit = np.ldexp(1.0, exponent - _TEXEL_BITS)
    total = (np.trunc(values / unit) * weights).sum(0)
    _, bits = np.frexp(total)
    step = np.ldexp(1.0, np.maximum(bits - _FLOAT_BITS, 0))
    rounded: Array = np.copysign(np.floor(np.abs(total) / step + 0.5) * step, total) * unit / _WEIGHT
    return rounded


def _sum_of_integers(values: Array, weights: Array, dtype: str) -> Array:
    """Return the weighted sums of integers over the first axis as 16-bit fractions, whatever the integers' width."""
    total = np.rint((values * weights).sum(0)).astype(np.int64)
    if dtype == "u1":
        total *= 257
    elif dtype == "i1":
        # This multiplies by nearly 32767 / 127. The hardware adds up shifted parts, and keeps three extra bits of them.
        total = ((total << 3) + (total >> 4) + (total >> 12)) << 5
    fraction = (total + _WEIGHT // 2) >> 8
    limit = 65535 if dtype[0] == "u" else 32767
    filtered: Array = np.maximum(fraction, -limit) / limit
    return filtered

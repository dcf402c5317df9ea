"""Sample textures as the hardware does: addressing modes, nearest points, and linear filtering with 8-bit weights.

How coordinates and weights are rounded is what recorded outputs of an H200 show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    `width` and `height` count texels (height 0: one dimension), `pitch` the bytes of a row, `dtype` is a channel's
    NumPy type. `address_modes` holds wrap, clamp, mirror or border for each axis. `normalized_read` turns integers
    into numbers of [0, 1] or [-1, 1].
    """

    address: int
    width: int
    height: int
    pitch: int
    channels: int
    dtype: str
    address_modes: tuple[str, str] = ("clamp", "clamp")
    linear: bool = False
    normalized_coordinates: bool = False
    normalized_read: bool = False
    border: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    @property
    def size(self) -> int:
        """Return the bytes from the first texel to the end of the last."""
        texel = self.channels * np.dtype(self.dtype).itemsize
        return self.pitch * (max(self.height, 1) - 1) + self.width * texel


def _texels(texture: Texture, data: NDArray[np.uint8]) -> Array:
    """View the texture's bytes as rows of texels of channels."""
    dtype = np.dtype(texture.dtype)
    shape = (max(texture.height, 1), texture.width, texture.channels)
    return np.ndarray(shape, dtype, data, 0, (texture.pitch, dtype.itemsize * texture.channels, dtype.itemsize))


def _place(index: Array, extent: int, mode: str) -> tuple[Array, Array]:
    """Return texel numbers brought into range, and where the border is read instead."""
    inside = (index >= 0) & (index < extent)
    if mode == "wrap":
        return index % extent, np.zeros(index.shape, np.bool_)
    if mode == "mirror":
        period = index % (2 * extent)
        return np.where(period < extent, period, 2 * extent - 1 - period), np.zeros(index.shape, np.bool_)
    return np.clip(index, 0, extent - 1), ~inside if mode == "border" else np.zeros(index.shape, np.bool_)


def _found(texture: Texture, x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Return the rows and columns of texels, brought into range, and where the border is read instead."""
    # Wrapping and mirroring exist for normalized coordinates only; else they clamp.
    modes = [mode if texture.normalized_coordinates or mode == "border" else "clamp" for mode in texture.address_modes]
    column, outside = _place(x, texture.width, modes[0])
    row, above = _place(y, max(texture.height, 1), modes[1])
    return row, column, outside | above


def _fetch(texture: Texture, texels: Array, x: Array, y: Array) -> Array:
    """Return channels of texels, shape (lanes, channels), with the border where it applies."""
    row, column, beyond = _found(texture, x, y)
    values: Array = texels[row, column]
    if texture.normalized_read:
        limit = np.iinfo(texture.dtype).max
        values = np.maximum(values.astype(np.float32) / np.float32(limit), np.float32(-1))
    if beyond.any():
        values[beyond] = np.array(texture.border[: texture.channels]).astype(values.dtype)
    return values


def sample(texture: Texture, data: NDArray[np.uint8], x: Array, y: Array | None, dtype: str) -> list[Array]:
    """Return four channel arrays of `dtype` ("f4", "u4" or "i4") at coordinates of each lane.

    `data` views the texture's bytes. Integer coordinates fetch texels by number; missing channels are 0, the fourth 1.
    """
    texels = _texels(texture, data)
    if y is None:
        y = np.zeros_like(x)
    if x.dtype.kind in "iu":
        values = _fetch(texture, texels, x.astype(np.int64), y.astype(np.int64))
    else:
        fx, fy = _in_texels(texture, x, y)
        if texture.linear:
            values = _linear(texture, texels, fx, fy)
        else:
            values = _fetch(texture, texels, np.floor(fx).astype(np.int64), np.floor(fy).astype(np.int64))
    channels: list[Array] = []
    for channel in range(4):
        if channel < texture.channels:
            column = values[:, channel]
            if dtype == "f4":
                channels.append(column.astype(np.float32))
            else:
                channels.append(column.astype("i8").astype(dtype))
        else:
            channels.append(np.full(len(x), 1 if channel == 3 else 0, dtype))
    return channels


def touched(texture: Texture, x: Array, y: Array | None) -> Array:
    """Return the bytes' places of the texels that each lane's fetch reads, counted from the texture's first.

    The shape is (lanes, 1), or (lanes, 4) where the texture filters; a place is -1 where the border is read instead.
    """
    if y is None:
        y = np.zeros_like(x)
    if x.dtype.kind in "iu":
        corners = [(x.astype(np.int64), y.astype(np.int64))]
    else:
        fx, fy = _in_texels(texture, x, y)
        if texture.linear:
            (left, _), (top, _) = _weighted(fx), _weighted(fy if texture.height else np.full_like(fy, 0.5))
            corners = [(left + across, top + down) for down in (0, 1) for across in (0, 1)]
        else:
            corners = [(np.floor(fx).astype(np.int64), np.floor(fy).astype(np.int64))]
    size = texture.channels * np.dtype(texture.dtype).itemsize
    found = [_found(texture, *corner) for corner in corners]
    return np.stack([np.where(beyond, -1, row * texture.pitch + column * size) for row, column, beyond in found], 1)


def _in_texels(texture: Texture, x: Array, y: Array) -> tuple[Array, Array]:
    """Return coordinates of floats in units of texels."""
    fx, fy = x.astype(np.float64), y.astype(np.float64)
    if texture.normalized_coordinates:
        return _scale(fx, texture.width), _scale(fy, max(texture.height, 1))
    return fx, fy


def _scale(coordinate: Array, extent: int) -> Array:
    """Return normalized coordinates as texels."""
    unit = 1 << _COORDINATE_BITS
    texels: Array = np.floor(coordinate * unit) / unit * extent
    return texels


def _linear(texture: Texture, texels: Array, fx: Array, fy: Array) -> Array:
    """Filter between the four nearest texels; weights have 8 bits, and so has the product of two."""
    x, across = _weighted(fx)
    y, down = _weighted(fy if texture.height else np.full_like(fy, 0.5))

    def corner(dx: int, dy: int) -> Array:
        return _fetch(texture, texels, x + dx, y + dy).astype(np.float64)

    both = np.floor(across * down / _WEIGHT + 0.5)
    weights = {(0, 0): _WEIGHT - across - down + both, (1, 0): across - both, (0, 1): down - both, (1, 1): both}
    total = np.zeros((len(fx), texture.channels))
    for place, weight in weights.items():
        total += corner(*place) * weight[:, None]
    filtered: Array = total / _WEIGHT
    if texture.normalized_read and texture.dtype[0] == "u":
        # Integers are filtered as fractions of 16 bits.
        # Their weighted sums are whole numbers of 1 / 256 of those.
        steps = np.rint(filtered * _FRACTION * _WEIGHT)
        filtered = np.floor(steps / _WEIGHT + 0.5) / _FRACTION
    return filtered


def _weighted(coordinate: Array) -> tuple[Array, Array]:
    """Return the texel before each coordinate, counted from texels' middles, and the weight of the one behind it."""
    steps = np.floor((coordinate - 0.5) * _WEIGHT + 0.5).astype(np.int64)
    return steps >> 8, (steps & (_WEIGHT - 1)).astype(np.float64)

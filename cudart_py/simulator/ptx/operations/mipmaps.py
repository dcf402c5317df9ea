"""Fetches from the levels of mipmaps and from the faces of cube maps, each of which is a texture of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.expressions import array_function
from ..instructions.images.textures import face_of
from .textures import Texture

Array = NDArray[Any]
# A function that fetches from a texture, or from two levels with weights, for the lanes at some positions, at
# coordinates.
Fetch = Callable[[list[Texture], list[Array], Array, list[Array]], list[Array]]

_FACES = 6
# A level is rounded to this fraction of the distance between two levels.
_STEPS = 256
_face_of = array_function(face_of, "f32", "f32", "f32")


def by_levels(texture: Texture, coordinates: list[Array], level: Array | None, fetch: Fetch) -> list[Array]:
    """Return the four channels of each lane, from the levels of a mipmap; without `level`, from the first level.

    The coordinates are one array of lanes each. In a layered texture, the layer comes before them.
    """
    if texture.cube:
        coordinates = _on_faces(texture, coordinates)
    if not texture.levels or level is None:
        return fetch([_faces(texture)], [], np.arange(len(coordinates[0])), coordinates)
    least, greatest = texture.level_limits
    last = len(texture.levels) - 1
    # An H200 truncates the bias, but not the level, to this fraction.
    bias = np.trunc(texture.level_bias * _STEPS) / _STEPS
    with np.errstate(invalid="ignore"):
        wanted = np.clip(level.astype(np.float64) + bias, max(least, 0), min(greatest, last))
    steps = np.floor(np.nan_to_num(wanted) * _STEPS + 0.5).astype(np.int64)
    if not texture.blends_levels:
        return _at(texture, (steps + _STEPS // 2) // _STEPS, coordinates, fetch)
    first, weight = steps // _STEPS, steps % _STEPS
    if texture.linear:
        return _at(texture, first, coordinates, fetch, weight)
    near = _at(texture, first, coordinates, fetch)
    far = _at(texture, np.minimum(first + 1, last), coordinates, fetch)
    share = weight / _STEPS
    return [(one * (1 - share) + other * share).astype(one.dtype) for one, other in zip(near, far, strict=True)]


def level_of(texture: Texture, gradients: Sequence[Sequence[Array]]) -> Array:
    """Return the level whose texels are as far apart as the coordinates of neighbours, from their two gradients."""
    extents = (texture.width, max(texture.height, 1), max(texture.depth, 1))
    if texture.cube:
        extents = (texture.width,) * 3
    lengths = []
    for gradient in gradients:
        scaled = [one.astype(np.float64) * extent for one, extent in zip(gradient, extents, strict=False)]
        lengths.append(np.sqrt(sum((one * one for one in scaled), np.float64(0))))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log2(np.maximum(*lengths)))


def _at(
    texture: Texture, level: Array, coordinates: list[Array], fetch: Fetch, weight: Array | None = None
) -> list[Array]:
    """Return the channels of each lane from the level with its index; with `weight`, filter between it and the next."""
    out: list[Array] = []
    for number in np.unique(level):
        chosen = np.flatnonzero(level == number)
        levels, weights = [texture.levels[number]], []
        if weight is not None:
            levels.append(texture.levels[min(number + 1, len(texture.levels) - 1)])
            weights = [_STEPS - weight[chosen], weight[chosen]]
        found = fetch([_faces(one) for one in levels], weights, chosen, [axis[chosen] for axis in coordinates])
        if not out:
            out = [np.empty(len(level), one.dtype) for one in found]
        for channel, values in zip(out, found, strict=True):
            channel[chosen] = values
    return out


@lru_cache
def _faces(texture: Texture) -> Texture:
    """Return the faces of a cube map as layers; other textures are returned unchanged."""
    if not texture.cube:
        return texture
    return replace(texture, cube=False, layered=True, normalized_coordinates=True, levels=())


def _on_faces(texture: Texture, coordinates: list[Array]) -> list[Array]:
    """Return the layer of the face to which each direction points, and the coordinates there."""
    face, s, t = _face_of(*coordinates[-3:])
    if texture.layered:
        last = texture.depth // _FACES - 1
        face = face + np.minimum(coordinates[0], np.uint32(last)) * np.uint32(_FACES)
    return [face, s, t]

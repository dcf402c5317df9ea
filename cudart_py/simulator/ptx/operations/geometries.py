"""Geometries: the dimensions of textures and surfaces, under the names that instructions use."""

from __future__ import annotations

# The description of each geometry in error messages.
GEOMETRIES = {
    "1d": "one dimension",
    "2d": "two dimensions",
    "3d": "three dimensions",
    "a1d": "layers of one dimension",
    "a2d": "layers of two dimensions",
    "cube": "a cube map",
    "acube": "layers of cube maps",
}


def geometry_of(height: int, depth: int, layered: bool, cube: bool = False) -> str:
    """Return the geometry for a height and a depth, 0 for a missing one; if `layered`, the depth counts layers.

    In a cube map, the depth counts faces.
    """
    if cube:
        return "acube" if layered else "cube"
    if layered:
        return "a2d" if height else "a1d"
    return "3d" if depth else "2d" if height else "1d"

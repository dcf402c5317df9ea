"""Geometries: the dimensions of textures and surfaces, by the words of the instructions."""

from __future__ import annotations

# What has the dimensions of a word, in the words of an error.
GEOMETRIES = {
    "1d": "one dimension",
    "2d": "two dimensions",
    "3d": "three dimensions",
    "a1d": "layers of one dimension",
    "a2d": "layers of two dimensions",
}


def geometry_of(height: int, depth: int, layered: bool) -> str:
    """Return the word for what has a height and a depth, or 0 for none; the depth of what has layers counts those."""
    if layered:
        return "a2d" if height else "a1d"
    return "3d" if depth else "2d" if height else "1d"

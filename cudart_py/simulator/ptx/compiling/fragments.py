"""The division of the matrices of ``wmma``, ``mma``, ``ldmatrix`` and ``stmatrix`` into the registers of lanes."""

from __future__ import annotations

import re

import numpy as np

from ..operations.matrices import ELEMENTS, Fragment
from .forms import Form

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
# How many matrices `ldmatrix` and `stmatrix` move, which have a register each.
_MATRICES = {"x1": 1, "x2": 2, "x4": 4}
# The elements of wmma's sums that a lane has.
_SUMS = {"f32": 8, "f16": 8}


def fragments_of(form: Form) -> tuple[Fragment, ...]:
    """Return the fragments d, a, b and c of a multiplication; ``wgmma``, which has no c, adds to d."""
    types = form.types
    # Where wmma names two types, a and b are halves.
    kinds = types if len(types) != 2 else (types[0], "f16", "f16", types[1])
    return tuple(_fragment(form, matrix, kind) for matrix, kind in zip("dabc", kinds, strict=False))


def fragment_of(form: Form) -> Fragment:
    """Return the fragment that ``wmma`` loads or stores."""
    return _fragment(form, form.words[1], form.type)


def fragment_length(form: Form, place: int) -> int:
    """Return how many registers an operand has, 0 for a matrix that there isn't."""
    count = next((_MATRICES[word] for word in form.words if word in _MATRICES), 0)
    if count:
        return count
    fragment = _fragment_at(form, place)
    size = _element_size(fragment.kind)
    return fragment.count * size // max(size, 4)


def register_type(form: Form, place: int) -> str:
    """Return the type of the registers of an operand."""
    return "b64" if _SHAPE.search(form.opcode) and _element_size(_fragment_at(form, place).kind) == 8 else "b32"


def _fragment_at(form: Form, place: int) -> Fragment:
    return fragment_of(form) if form.words[0] in ("load", "store") else fragments_of(form)[place]


def _element_size(kind: str) -> int:
    return np.dtype(ELEMENTS[kind]).itemsize


def _fragment(form: Form, matrix: str, kind: str) -> Fragment:
    shape = next(filter(None, map(_SHAPE.fullmatch, form.words)))
    rows, columns, depth = map(int, shape.groups())
    extent = {"a": (rows, depth), "b": (depth, columns)}.get(matrix, (rows, columns))
    each = extent[0] * extent[1] // 32
    if form.row.name == "wgmma":
        # Each of the four warps has a quarter of the rows, and all of the right matrix.
        return _fragment_by_rows(matrix, kind, extent if matrix == "b" else (extent[0] // 4, extent[1]))
    if form.row.name == "mma":
        return _fragment_by_rows(matrix, kind, extent)
    if matrix in "cd":
        return Fragment(kind, *extent, _SUMS.get(kind, 0))
    # Of halves every element is in two lanes, of the wider range in one.
    return Fragment(kind, *extent, {"f16": 16, "bf16": each}.get(kind, 0))


def _fragment_by_rows(matrix: str, kind: str, extent: tuple[int, int]) -> Fragment:
    """Return a fragment of which a group of four lanes has a row of eight."""
    # Sums lie two by two, and what is multiplied so that neighbours fill a register.
    side = 2 if matrix in "cd" else max(4 // _element_size(kind), 1)
    return Fragment(kind, *extent, extent[0] * extent[1] // 32, side, matrix == "b")

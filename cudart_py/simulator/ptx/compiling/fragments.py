"""The distribution of the matrices of ``wmma``, ``mma``, ``ldmatrix`` and ``stmatrix`` over the lanes' registers."""

from __future__ import annotations

import re

from ..operations.matrices import Fragment
from ..syntax.types import type_size
from .forms import Form

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
# The number of matrices that `ldmatrix` and `stmatrix` move; each matrix takes one register per lane.
_MATRICES = {"x1": 1, "x2": 2, "x4": 4}
# The types of wmma's accumulators.
_SUMS = {"f16", "f32", "f64", "s32"}


def fragments_of(form: Form) -> tuple[Fragment, ...]:
    """Return the fragments d, a, b and c of a multiplication; ``wgmma``, which has no c, adds to d."""
    types = form.types
    # If wmma names only two types, they are the types of d and c, and a and b are f16.
    kinds = types if len(types) != 2 else (types[0], "f16", "f16", types[1])
    return tuple(_fragment(form, matrix, kind) for matrix, kind in zip("dabc", kinds, strict=False))


def fragment_of(form: Form) -> Fragment:
    """Return the fragment that ``wmma`` loads or stores."""
    return _fragment(form, form.words[1], form.type)


def fragment_length(form: Form, place: int) -> int:
    """Return the number of registers in an operand; 0 if the matrix doesn't exist."""
    count = next((_MATRICES[word] for word in form.words if word in _MATRICES), 0)
    if count:
        return count
    return _fragment_at(form, place).registers


def register_type(form: Form, place: int) -> str:
    """Return the type of the registers of an operand."""
    return type_of_registers(_fragment_at(form, place).kind) if _SHAPE.search(form.opcode) else "b32"


def type_of_registers(kind: str) -> str:
    """Return the type of registers that hold elements of a type: one each, or several narrow ones."""
    return f"b{8 * max(type_size(kind), 4)}"


def _fragment_at(form: Form, place: int) -> Fragment:
    return fragment_of(form) if form.words[0] in ("load", "store") else fragments_of(form)[place]


def _fragment(form: Form, matrix: str, kind: str) -> Fragment:
    shape = next(filter(None, map(_SHAPE.fullmatch, form.words)))
    rows, columns, depth = map(int, shape.groups())
    extent = {"a": (rows, depth), "b": (depth, columns)}.get(matrix, (rows, columns))
    each = extent[0] * extent[1] // 32
    if form.row.name == "wgmma":
        # Each of the four warps holds a quarter of the rows of a and d, and uses all of b.
        return _fragment_by_rows(matrix, kind, extent if matrix == "b" else (extent[0] // 4, extent[1]))
    if form.row.name == "mma":
        return _fragment_by_rows(matrix, kind, extent)
    if matrix in "cd":
        return Fragment(kind, *extent, each if kind in _SUMS else 0)
    majors = [word for word in form.words if word in ("row", "col")]
    # A multiplication names the order of a and then that of b, a load the order of its only matrix.
    by_columns = majors["ab".index(matrix) if len(majors) > 1 else 0] == "col"
    # An f16 fragment has 16 elements per lane in every shape, so several lanes may hold the same element. In fragments
    # of other types, each element is in one lane.
    count = 16 if kind == "f16" else 0 if kind in ("f32", "s32") else each
    return Fragment(kind, *extent, count, 0, by_columns)


def _fragment_by_rows(matrix: str, kind: str, extent: tuple[int, int]) -> Fragment:
    """Return a fragment in which each group of four lanes holds one of every eight rows."""
    # In d and c, each lane holds pairs of adjacent elements; in a and b, adjacent elements that fill one register.
    side = 2 if matrix in "cd" else max(4 // type_size(kind), 1)
    return Fragment(kind, *extent, extent[0] * extent[1] // 32, side, matrix == "b")

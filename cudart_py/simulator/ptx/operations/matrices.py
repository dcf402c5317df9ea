"""Products and moves of matrices that are distributed over the lanes of a warp (``wmma``, ``mma``, ``movmatrix``).

A register of 32 bits holds one element or several narrow ones, the first in the lowest bits. Arrays are over the 32
lanes of whole warps. ``tensor_sums`` adds the products of narrow numbers. Products of doubles are added one after
another, each with a fused multiply-add. Integers are exact. Functions must be called under
``numpy.errstate(all="ignore")``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.floats import canonical_f32
from ..arrays.functions import array_function
from ..instructions import floats
from ..instructions.formats import FORMATS
from .formats import narrow, widen
from .tensor_sums import add_bytes, add_products

Array = NDArray[Any]
_LANES = 32
# Each group of four lanes holds one of eight rows; matrices with more rows repeat these eight.
_GROUP = 4
_ROWS = 8
# The NumPy type of each element type; narrow floating-point numbers are kept as bit patterns.
ELEMENTS = {
    "b16": "u2", "f16": "u2", "bf16": "u2", "e4m3": "u1", "e5m2": "u1", "tf32": "u4", "f32": "f4", "f64": "f8",
    "s8": "i1", "u8": "u1", "s32": "i4",
}  # fmt: skip  # rows of a table
# The bits of a tf32 number's register that the hardware ignores.
_IGNORED = np.uint32(0x1FFF)


@dataclass(frozen=True)
class Fragment:
    """The distribution of a matrix over the registers of lanes.

    `kind` is the type of its elements, and `count` the number of elements per lane. For ``mma``, a lane holds `side`
    consecutive elements of a row, or of a column if `by_columns` is set. Programs can't see how ``wmma`` distributes a
    matrix: `side` is 0, and the elements are in row-major order, starting again at the first where the lanes have more
    places than there are elements.
    """

    kind: str
    rows: int
    columns: int
    count: int
    side: int = 0
    by_columns: bool = False


# The matrices that `ldmatrix`, `stmatrix` and `movmatrix` move: a lane holds two consecutive elements of a row.
HALVES = Fragment("b16", _ROWS, _ROWS, 2, 2)


@lru_cache
def places(fragment: Fragment) -> Array:
    """Return the row-major index of the element in each place of each lane: an array of the shape (32, count)."""
    lane, item = np.arange(_LANES)[:, None], np.arange(fragment.count)
    if not fragment.side:
        opaque: Array = (lane * fragment.count + item) % (fragment.rows * fragment.columns)
        return opaque
    length = fragment.columns if fragment.by_columns else fragment.rows
    piece, within = np.divmod(item, fragment.side)
    # The pieces of a lane follow each other downwards, eight rows apart, then to the right.
    right, down = np.divmod(piece, length // _ROWS)
    row = lane // _GROUP + _ROWS * down
    column = (right * _GROUP + lane % _GROUP) * fragment.side + within
    numbers: Array = column * fragment.columns + row if fragment.by_columns else row * fragment.columns + column
    return numbers


@lru_cache
def _first_places(fragment: Fragment) -> Array:
    """Return, for each element in row-major order, the first place that holds it, counted through the lanes."""
    return np.unique(places(fragment), return_index=True)[1]


def arranged(elements: Array, fragment: Fragment) -> Array:
    """Return matrices of the shape (warps, rows, columns) from the lanes' elements, of the shape (lanes, count)."""
    flat = elements.reshape(-1, _LANES * fragment.count)
    return flat[:, _first_places(fragment)].reshape(-1, fragment.rows, fragment.columns)


def divided(matrices: Array, fragment: Fragment) -> Array:
    """Return the lanes' elements, of the shape (lanes, count), from matrices."""
    flat = matrices.reshape(len(matrices), -1)
    return flat[:, places(fragment).ravel()].reshape(-1, fragment.count)


def from_registers(registers: Sequence[Array], kind: str) -> Array:
    """Return the elements that registers hold, as patterns, of the shape (lanes, count)."""
    table = np.stack(registers, axis=1)
    return table.view(ELEMENTS[kind])


def to_registers(elements: Array, kind: str) -> list[Array]:
    """Return the registers of elements of the shape (lanes, count); narrow ones are packed."""
    table = np.ascontiguousarray(elements, ELEMENTS[kind])
    if table.itemsize < 4:
        table = table.view(np.uint32)
    return list(np.ascontiguousarray(table.T))


def multiply(
    fragments: Sequence[Fragment], operands: Sequence[Sequence[Array]], *, rounding: str = "rn", satfinite: bool = False
) -> list[Array]:
    """Return the registers of ``a * b + c``; `fragments` are those of d, a, b and c.

    `rounding` applies to doubles. With `satfinite`, integer sums saturate at the range of s32; otherwise they wrap.
    """
    a, b, c = (matrices(registers, fragment) for registers, fragment in zip(operands, fragments[1:], strict=True))
    result, factor = fragments[0].kind, fragments[1].kind
    if result == "s32":
        return add_product(a, b, c, fragments[0], satfinite=satfinite)
    if result == "f64":
        total = c
        for depth in range(a.shape[2]):
            total = _fma(rounding)(a[:, :, depth, None], b[:, None, depth], total)
    elif factor in ("e4m3", "e5m2"):
        total = add_bytes(a, b, c, result)
    else:
        total = add_products(a, b, c, result)
    return to_registers(divided(total, fragments[0]), result)


@lru_cache
def _fma(rounding: str) -> Callable[..., Array]:
    return array_function(partial(floats.fma, rounding=rounding), "f64", "f64", "f64")


def matrices(registers: Sequence[Array], fragment: Fragment) -> Array:
    """Return the matrices that registers hold as numbers, of the shape (warps, rows, columns)."""
    return arranged(numbers(from_registers(registers, fragment.kind), fragment.kind), fragment)


def add_product(a: Array, b: Array, c: Any, fragment: Fragment, *, satfinite: bool = False) -> list[Array]:
    """Return the registers of ``a * b + c``, for numbers of the shape (warps, rows, columns), rounded once.

    Sums of products of integers are exact. Those of narrow floating-point numbers are nearly so: ``wgmma`` on a GPU
    rounds in between, in ways that have not been compared.
    """
    total = np.matmul(a, b) + c
    return to_registers(_patterns(divided(total, fragment), fragment.kind, satfinite), fragment.kind)


def turned(registers: Sequence[Array]) -> list[Array]:
    """Return transposed matrices of 8 x 8 halves, one per register."""
    found = []
    for register in registers:
        matrices = arranged(from_registers([register], HALVES.kind), HALVES)
        found += to_registers(divided(matrices.swapaxes(1, 2), HALVES), HALVES.kind)
    return found


def numbers(elements: Array, kind: str) -> Array:
    """Return elements of a type, which may be bit patterns, as double-precision numbers."""
    if kind in FORMATS:
        elements = widen(elements, kind)
    elif kind == "tf32":
        elements = (elements & ~_IGNORED).view(np.float32)
    return elements.astype(np.float64)


def _patterns(numbers: Array, kind: str, satfinite: bool) -> Array:
    """Return numbers rounded to a type, in the form in which registers hold them."""
    if kind == "f32":
        return canonical_f32(numbers.astype(np.float32))
    if kind == "s32":
        whole = numbers.astype(np.int64)
        limits = np.iinfo(np.int32)
        return (np.clip(whole, limits.min, limits.max) if satfinite else whole).astype(np.int32)
    return numbers if kind == "f64" else narrow(numbers, kind)

"""Products and moves of the matrices that the lanes of a warp hold in pieces (``wmma``, ``mma``, ``movmatrix``).

A register of 32 bits holds one element or several narrow ones, the first in the lowest bits. Arrays are over the lanes
of whole warps, 32 of each. ``tensor_sums`` adds the products of narrow numbers. Products of doubles are added one after
the other, each by a fused multiply-add. Integers are exact. Functions must be called under
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
# A group of four lanes has a row of eight; matrices of more rows have these eight several times.
_GROUP = 4
_ROWS = 8
# Each type of elements as a NumPy type; narrow floating-point numbers travel as patterns.
ELEMENTS = {
    "b16": "u2", "f16": "u2", "bf16": "u2", "e4m3": "u1", "e5m2": "u1", "tf32": "u4", "f32": "f4", "f64": "f8",
    "s8": "i1", "u8": "u1", "s32": "i4",
}  # fmt: skip  # rows of a table
# The bits of a tf32 number's register that the hardware ignores.
_IGNORED = np.uint32(0x1FFF)


@dataclass(frozen=True)
class Fragment:
    """The division of a matrix into the registers of lanes.

    `kind` is the type of its elements, `count` how many of them a lane has. Of ``mma`` a lane has `side` neighbours of
    a row together, or of a column if `by_columns` is set. Programs can't see how ``wmma`` divides a matrix: `side` is
    0, and the elements follow each other by rows, counted round again where lanes have more places than there are.
    """

    kind: str
    rows: int
    columns: int
    count: int
    side: int = 0
    by_columns: bool = False


# The matrices that `ldmatrix`, `stmatrix` and `movmatrix` move: a lane has two neighbours of a row.
HALVES = Fragment("b16", _ROWS, _ROWS, 2, 2)


@lru_cache
def places(fragment: Fragment) -> Array:
    """Return the number, by rows, of the element in each place of each lane: an array of the shape (32, count)."""
    lane, item = np.arange(_LANES)[:, None], np.arange(fragment.count)
    if not fragment.side:
        opaque: Array = (lane * fragment.count + item) % (fragment.rows * fragment.columns)
        return opaque
    length = fragment.columns if fragment.by_columns else fragment.rows
    piece, within = np.divmod(item, fragment.side)
    # The pieces of a lane go down by eight rows each, then to the right.
    right, down = np.divmod(piece, length // _ROWS)
    row = lane // _GROUP + _ROWS * down
    column = (right * _GROUP + lane % _GROUP) * fragment.side + within
    numbers: Array = column * fragment.columns + row if fragment.by_columns else row * fragment.columns + column
    return numbers


@lru_cache
def _first_places(fragment: Fragment) -> Array:
    """Return for each element, by rows, the first place that has it, counted through the lanes."""
    return np.unique(places(fragment), return_index=True)[1]


def arranged(elements: Array, fragment: Fragment) -> Array:
    """Return the matrices, of the shape (warps, rows, columns), of elements of the shape (lanes, count)."""
    flat = elements.reshape(-1, _LANES * fragment.count)
    return flat[:, _first_places(fragment)].reshape(-1, fragment.rows, fragment.columns)


def divided(matrices: Array, fragment: Fragment) -> Array:
    """Return the elements of lanes, of the shape (lanes, count), of matrices."""
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

    `rounding` is that of doubles. With `satfinite` integer sums end at the range of s32, else they wrap.
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
    """Return the registers of ``a * b + c``, of numbers of the shape (warps, rows, columns), rounded once.

    Sums of products of integers are exact. Those of narrow floating-point numbers are nearly so: ``wgmma`` on a GPU
    rounds in between, in ways that have not been compared.
    """
    total = np.matmul(a, b) + c
    return to_registers(_patterns(divided(total, fragment), fragment.kind, satfinite), fragment.kind)


def turned(registers: Sequence[Array]) -> list[Array]:
    """Return transposed matrices of 8 x 8 halves, one in each register."""
    found = []
    for register in registers:
        matrices = arranged(from_registers([register], HALVES.kind), HALVES)
        found += to_registers(divided(matrices.swapaxes(1, 2), HALVES), HALVES.kind)
    return found


def numbers(elements: Array, kind: str) -> Array:
    """Return patterns of a type as double-precision numbers."""
    if kind in FORMATS:
        elements = widen(elements, kind)
    elif kind == "tf32":
        elements = (elements & ~_IGNORED).view(np.float32)
    return elements.astype(np.float64)


def _patterns(numbers: Array, kind: str, satfinite: bool) -> Array:
    """Return numbers rounded to a type, as patterns."""
    if kind == "f32":
        return canonical_f32(numbers.astype(np.float32))
    if kind == "s32":
        whole = numbers.astype(np.int64)
        limits = np.iinfo(np.int32)
        return (np.clip(whole, limits.min, limits.max) if satfinite else whole).astype(np.int32)
    return numbers if kind == "f64" else narrow(numbers, kind)

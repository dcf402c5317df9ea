"""Products and moves of matrices that are distributed over the lanes of a warp (``wmma``, ``mma``, ``movmatrix``).

A register of 32 bits holds one element or several narrow ones, the first in the lowest bits. Arrays are over the 32
lanes of whole warps. The lowerings in ``instructions/matrices.py`` define the products of ``wmma`` and ``mma``.
Functions must be called under `device_arithmetic`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.expressions import array_function
from ..arrays.floats import canonical_f32
from ..instructions import matrices as instructions
from ..instructions.number_formats.formats import FORMATS
from ..instructions.values import Value
from .formats import narrow, widen

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
# The arrays of this many warps stay in a processor's cache, which saves a third of the time.
_WARPS = 64


@dataclass(frozen=True)
class Fragment:
    """The distribution of a matrix over the registers of lanes.

    `kind` is the type of its elements, and `count` the number of elements per lane. For ``mma``, a lane holds `side`
    consecutive elements of a row, or of a column if `by_columns` is set. Programs can't see how ``wmma`` distributes a
    matrix: `side` is 0, consecutive lanes hold consecutive rows, or columns if `by_columns` is set, and each lane holds
    consecutive elements of its row or column. If the lanes have more places than there are elements, elements repeat.
    """

    kind: str
    rows: int
    columns: int
    count: int
    side: int = 0
    by_columns: bool = False

    @property
    def size(self) -> int:
        """The size of an element in bytes."""
        return np.dtype(ELEMENTS[self.kind]).itemsize

    @property
    def registers(self) -> int:
        """The number of registers per lane."""
        return self.count * self.size // max(self.size, 4)


# The bytes of a row of the matrices that `ldmatrix` and `stmatrix` move.
ROW_BYTES = 16
# The matrices that `ldmatrix`, `stmatrix` and `movmatrix` move: a lane holds two consecutive elements of a row.
HALVES = Fragment("b16", _ROWS, _ROWS, 2, 2)


@lru_cache
def places(fragment: Fragment) -> Array:
    """Return the row-major index of the element in each place of each lane: an array of the shape (32, count)."""
    lane, item = np.arange(_LANES)[:, None], np.arange(fragment.count)
    length, width = fragment.rows, fragment.columns
    if fragment.by_columns:
        length, width = width, length
    if fragment.side:
        piece, within = np.divmod(item, fragment.side)
        # The pieces of a lane follow each other downwards, eight rows apart, then to the right.
        right, down = np.divmod(piece, length // _ROWS)
        row = lane // _GROUP + _ROWS * down
        column = (right * _GROUP + lane % _GROUP) * fragment.side + within
    else:
        row, column = lane % length, (lane // length * fragment.count + item) % width
    numbers: Array = column * fragment.columns + row if fragment.by_columns else row * fragment.columns + column
    return numbers


@lru_cache
def first_places(fragment: Fragment) -> Array:
    """Return, for each element in row-major order, the first place that holds it, counted through the lanes."""
    return np.unique(places(fragment), return_index=True)[1]


def arranged(elements: Array, fragment: Fragment) -> Array:
    """Return matrices of the shape (warps, rows, columns) from the lanes' elements, of the shape (lanes, count)."""
    flat = elements.reshape(-1, _LANES * fragment.count)
    return flat[:, first_places(fragment)].reshape(-1, fragment.rows, fragment.columns)


def divided(matrices: Array, fragment: Fragment) -> Array:
    """Return the lanes' elements, of the shape (lanes, count), from matrices."""
    flat = matrices.reshape(len(matrices), -1)
    return flat[:, places(fragment).ravel()].reshape(-1, fragment.count)


def from_registers(registers: Sequence[Array], kind: str) -> Array:
    """Return the elements that registers hold, as patterns, of the shape (lanes, count)."""
    table = np.stack(registers, axis=1)
    return table.view(ELEMENTS[kind])


def to_registers(elements: Array, kind: str) -> list[Array]:
    """Return the registers of elements of the shape (lanes, count), as bits; narrow ones are packed."""
    table = np.ascontiguousarray(elements, ELEMENTS[kind])
    return list(np.ascontiguousarray(table.view(f"u{max(table.itemsize, 4)}").T))


def unit_of(fragment: Fragment, by_columns: bool) -> np.dtype[Any]:
    """Return the unit of a fragment's loads and stores: an element, or a word with the narrow elements of a register.

    These are adjacent in memory if the matrix has the order of the fragment there.
    """
    dtype = np.dtype(ELEMENTS[fragment.kind])
    return np.dtype("u4") if dtype.itemsize < 4 and fragment.by_columns == by_columns else dtype


@lru_cache
def lines(fragment: Fragment, by_columns: bool) -> tuple[Array, Array]:
    """Return the row of each unit of each lane, and the index in that row; or the column and the index in it."""
    each = unit_of(fragment, by_columns).itemsize // fragment.size
    row, column = np.divmod(places(fragment).T[::each], fragment.columns)
    return (column, row) if by_columns else (row, column)


class RowPiece(NamedTuple):
    """A piece of the rows that ``ldmatrix`` or ``stmatrix`` accesses: `size` bytes from byte `within` of a register.

    Each lane's piece is `offsets` bytes after the beginning of the row whose address one of `lanes` gives.
    """

    register: int
    within: int
    size: int
    lanes: Array
    offsets: Array


@lru_cache
def row_pieces(count: int, transposed: bool) -> list[RowPiece]:
    """Return the pieces of `count` matrices: one word per register, or two halves of a column if transposed."""
    group, place = np.divmod(np.arange(_LANES), _GROUP)
    if not transposed:
        return [RowPiece(number, 0, 4, _ROWS * number + group, 4 * place) for number in range(count)]
    return [
        RowPiece(number, 2 * half, 2, _ROWS * number + 2 * place + half, 2 * group)
        for number in range(count)
        for half in range(2)
    ]


def multiply(
    fragments: Sequence[Fragment], operands: Sequence[Sequence[Array]], *, rounding: str = "rn", satfinite: bool = False
) -> list[Array]:
    """Return the registers of ``a * b + c``; `fragments` describe d, a, b and c.

    `rounding` applies to doubles. With `satfinite`, integer sums saturate at the range of s32; otherwise they wrap.
    """
    a, b, c = (
        arranged(from_registers(registers, fragment.kind), fragment)
        for registers, fragment in zip(operands, fragments[1:], strict=True)
    )
    kinds = fragments[0].kind, fragments[1].kind, fragments[2].kind, fragments[3].kind
    pieces = [slice(first, first + _WARPS) for first in range(0, len(a), _WARPS)]
    total = [product(kinds, a[one], b[one], c[one], rounding=rounding, clamps=satfinite) for one in pieces]
    return to_registers(divided(np.concatenate(total), fragments[0]), fragments[0].kind)


def product(
    kinds: tuple[str, str, str, str], a: Array, b: Array, c: Array, *, rounding: str = "rn", clamps: bool = False
) -> Array:
    """Return ``a * b + c`` for matrices of elements, of the shape (warps, rows, columns), by `instructions.matrices`.

    `kinds` are the types of the result, a, b and c.
    """
    depth = a.shape[2]
    factors = [one[:, :, k, None] for k in range(depth) for one in _factors(kinds[1], a)]
    factors += [one[:, None, k, :] for k in range(depth) for one in _factors(kinds[2], b)]
    found = _elements(instructions.element, kinds, depth, rounding=rounding, clamps=clamps)(*factors, c)
    if not isinstance(found, tuple):
        return found  # type: ignore[no-any-return]  # because generated functions have no types
    total, suspect = found
    if suspect.any():
        total = np.where(suspect, _elements(instructions.plain_element, kinds, depth)(*factors, c), total)
    return total  # type: ignore[no-any-return]  # because generated functions have no types


def _factors(kind: str, patterns: Array) -> tuple[Array, Array]:
    found: tuple[Array, Array] = array_function(instructions.factor, kind, told=(kind,))(patterns)
    return found


@lru_cache
def _elements(
    rule: Callable[..., Any], kinds: tuple[str, str, str, str], depth: int, **modifiers: Any
) -> Callable[..., Any]:
    """Return a rule for elements of products as a function of the factors of a and of b, and of elements of c."""

    def lowering(*operands: Value) -> Any:
        factors = [instructions.Factor(*operands[place : place + 2]) for place in range(0, 4 * depth, 2)]
        types = kinds[0], kinds[1], kinds[3]
        found = rule(types, factors[:depth], factors[depth:], operands[-1], **modifiers)
        return tuple(value for value in found if value is not None) if isinstance(found, tuple) else found

    left, right = (instructions.FACTORS[kind] for kind in kinds[1:3])
    return array_function(lowering, *[left] * 2 * depth, *[right] * 2 * depth, kinds[3])


def matrices(registers: Sequence[Array], fragment: Fragment) -> Array:
    """Return the matrices that registers hold as numbers, of the shape (warps, rows, columns)."""
    return arranged(numbers(from_registers(registers, fragment.kind), fragment.kind), fragment)


def add_product(a: Array, b: Array, c: Any, fragment: Fragment, *, satfinite: bool = False) -> list[Array]:
    """Return the registers of ``a * b + c``, for numbers of the shape (warps, rows, columns), rounded once.

    Sums of products of integers are exact. Sums of products of narrow floating-point numbers are nearly exact:
    ``wgmma`` on a GPU rounds intermediate sums, in ways that have not been compared.
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

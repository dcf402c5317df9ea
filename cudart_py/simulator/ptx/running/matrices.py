"""Load, store and multiply the matrices of whole warps, and multiply those of warpgroups (four warps).

The former are ``wmma``, ``mma``, ``ldmatrix``, ``stmatrix`` and ``movmatrix``. The latter are ``wgmma``, from shared
memory or from registers: each warp computes its quarter of the rows. The product is computed immediately, so the
instructions that wait for it do nothing.

Each method raises Fault unless all lanes of a warp execute the instruction together, because CUDA leaves the behaviour
undefined otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..operations.matrices import (
    ELEMENTS,
    Fragment,
    add_product,
    lines,
    matrices,
    multiply,
    numbers,
    row_pieces,
    to_registers,
    turned,
    unit_of,
)
from ..operations.matrix_descriptors import UNIT, unit_addresses
from ..syntax.instructions import Instruction
from .memory.addresses import Address, Mixed
from .observer import MatrixPiece, MatrixRows

if TYPE_CHECKING:
    from .groups import Group

Array = NDArray[Any]
_LANES = 32
# The matrices of `ldmatrix` and `stmatrix` have eight rows of four words.
_ROWS = 8
_WORDS = 4
_WORD_BYTES = 4
_WARPS = 4


class Matrices:
    """The matrix operations of whole warps and warpgroups, for the groups of a chunk."""

    def units(
        self,
        group: Group,
        space: str,
        base: Array,
        fragment: Fragment,
        distance: tuple[bool, Any],
        registers: list[Array],
        site: Instruction,
    ) -> list[Array]:
        """Load a fragment of ``wmma`` from memory and return its registers, or store `registers` if there are any.

        `distance` says whether the matrix is stored by columns instead of rows, and contains their stride in elements.
        """
        check_warps(group, site)
        memory, dtype = group.chunk.memory, unit_of(fragment, distance[0])
        found = _addresses(group, space, base, fragment, distance)
        values = list(np.ascontiguousarray(np.stack(registers, axis=1).view(dtype).T)) if registers else []
        _observe(group, "st" if values else "ld", _pieces_of_units(found, dtype, values), None, site)
        shift = dtype.itemsize.bit_length() - 1
        if not values:
            loaded = [memory.load(address, 0, dtype.str[1:], shift, site) for address in found]
            return to_registers(np.stack(loaded, axis=1).view(ELEMENTS[fragment.kind]), fragment.kind)
        for address, value in zip(found, values, strict=True):
            memory.store(address, 0, dtype.str[1:], shift, (value,), site)
        return []

    def rows(
        self,
        group: Group,
        space: str,
        base: Array,
        count: int,
        transposed: bool,
        registers: list[Array],
        site: Instruction,
    ) -> list[Array]:
        """Load `count` matrices of 8 x 8 halves into registers (``ldmatrix``), or store `registers` (``stmatrix``).

        `base` contains the rows' addresses.
        """
        rows, memory = _rows(group, space, base, count, site), group.chunk.memory
        if group.chunk.state.observer is not None:
            pieces = _pieces_of_rows(rows, count, transposed, registers)
            _observe(group, "st" if registers else "ld", pieces, _counted(rows, count), site)
        if not registers:
            words = np.stack(memory.load_vector(rows, 0, "u4", 2, _WORDS, site), axis=1)
            table = words.reshape(-1, _LANES, _WORDS)
            loaded = [table[:, _ROWS * number : _ROWS * (number + 1)].reshape(-1) for number in range(count)]
            return turned(loaded) if transposed else loaded
        upright = turned(registers) if transposed else registers
        table = np.concatenate([register.reshape(-1, _ROWS, _WORDS) for register in upright], axis=1)
        # Lanes whose addresses are ignored store the rows of other lanes again.
        words = np.tile(table, (1, _LANES // (_ROWS * count), 1)).reshape(-1, _WORDS)
        memory.store(rows, 0, "u4", 2, tuple(np.ascontiguousarray(words.T)), site)
        return []

    def transpose(self, group: Group, register: Array, site: Instruction) -> Array:
        """Transpose a matrix of 8 x 8 halves, which is in one register per lane (``movmatrix``)."""
        check_warps(group, site)
        return turned([register])[0]

    def multiply(
        self,
        group: Group,
        fragments: tuple[Fragment, ...],
        operands: Sequence[Sequence[Array]],
        site: Instruction,
        **modifiers: Any,
    ) -> list[Array]:
        """Return the registers of ``a * b + c``; `fragments` describe d, a, b and c."""
        check_warps(group, site)
        return multiply(fragments, operands, **modifiers)

    def multiply_groups(
        self,
        group: Group,
        fragments: tuple[Fragment, ...],
        total: list[Array],
        left: Array | list[Array],
        right: Array,
        adds: Any,
        site: Instruction,
        *,
        negated: bool = False,
        turned: tuple[bool, bool] = (False, False),
        satfinite: bool = False,
    ) -> list[Array]:
        """Return the registers of ``left * right``, plus `total` in warps whose `adds` is set.

        `left` is a list of registers or an array of descriptors, and `right` is an array of descriptors. In shared
        memory, the rows of the left matrix and the columns of the right matrix are contiguous (K-major). `turned` says
        for each matrix whether it is stored the other way round (M-major or N-major). `negated` negates the product.
        """
        check_warps(group, site)
        sums, rows, columns = fragments
        first = np.arange(0, group.n, _LANES)
        if isinstance(left, list):
            a = matrices(left, rows)
        else:
            # All four warps have the same descriptor; each selects its own rows.
            warps = group.lane_numbers[first] % group.chunk.threads // _LANES % _WARPS
            whole = Fragment(rows.kind, rows.rows * _WARPS, rows.columns, 0)
            a = _read(group, first, left[first], whole, turned[0], site)
            lines = (warps[:, None] * rows.rows + np.arange(rows.rows))[:, :, None]
            a = np.take_along_axis(a, lines, axis=1)
        # The columns of the right matrix are contiguous.
        upright = Fragment(columns.kind, columns.columns, columns.rows, 0)
        b = _read(group, first, right[first], upright, turned[1], site).swapaxes(1, 2)
        before = matrices(total, sums)
        added = np.broadcast_to(adds, group.n)[first][:, None, None]
        return add_product(-a if negated else a, b, np.where(added, before, 0), sums, satfinite=satfinite)


def check_warps(group: Group, site: Instruction) -> None:
    """Raise Fault unless all lanes of each warp take part."""
    position = group.chunk.warps.partial(group)
    if position >= 0:
        what = "not all 32 lanes of the warp execute it together"
        raise group.fault("CUDA_ERROR_LAUNCH_FAILED", what, site, position)


def _observe(
    group: Group, kind: str, pieces: Sequence[MatrixPiece], rows: MatrixRows | None, site: Instruction
) -> None:
    observer = group.chunk.state.observer
    if observer is not None:
        observer.matrix(group, kind, pieces, rows, site)


# --- units of wmma ----------------------------------------------------------------------------------------------------


def _addresses(
    group: Group, space: str, base: Array, fragment: Fragment, distance: tuple[bool, Any]
) -> list[Address | Mixed]:
    """Return the addresses of each lane's first unit, of its second, and so on."""
    by_columns, steps = distance
    wide, warps = np.asarray(steps).astype(np.int64), group.n // _LANES
    found = []
    for major, minor in zip(*lines(fragment, by_columns), strict=True):
        distances = (np.tile(major, warps) * wide + np.tile(minor, warps)) * fragment.size
        found.append(group.chunk.memory.place(group, space, np.asarray(base + distances.astype(base.dtype))))
    return found


def _pieces_of_units(
    addresses: Sequence[Address | Mixed], dtype: np.dtype[Any], values: Sequence[Array]
) -> list[MatrixPiece]:
    size = dtype.itemsize
    each = max(_WORD_BYTES // size, 1)
    return [
        MatrixPiece(address, size, unit // each, unit % each * size, (values[unit],) if values else ())
        for unit, address in enumerate(addresses)
    ]


# --- rows of ldmatrix and stmatrix ------------------------------------------------------------------------------------


def _rows(group: Group, space: str, base: Array, count: int, site: Instruction) -> Address:
    """Return the address of one row per lane; lanes after the last row repeat the rows of the lanes before them.

    The addresses that the repeating lanes supply are ignored, and needn't be valid.
    """
    check_warps(group, site)
    lane = np.arange(group.n) % _LANES
    named = base.take(np.arange(group.n) - lane + lane % (_ROWS * count))
    return rows_at(group, space, named, site)


def rows_at(group: Group, space: str, addresses: Array, site: Instruction) -> Address:
    """Return the rows at addresses; raise Fault if one isn't in shared memory."""
    found = group.chunk.memory.place(group, space, addresses)
    for positions, part in found.parts:
        if part.space.name != "shared":
            position = 0 if positions is None else int(positions[0])
            what = f"needs addresses in shared memory, not {part.space.name} memory"
            raise group.fault("CUDA_ERROR_ILLEGAL_ADDRESS", what, site, position)
    assert isinstance(found, Address)
    return found


def _counted(rows: Address, count: int) -> MatrixRows:
    """Return the rows without repetitions, and the positions of the lanes that supply their addresses."""
    if count * _ROWS == _LANES:
        return MatrixRows(rows, None)
    positions = np.flatnonzero(np.arange(rows.group.n) % _LANES < count * _ROWS)
    return MatrixRows(rows.select(positions), positions)


def _pieces_of_rows(rows: Address, count: int, transposed: bool, registers: Sequence[Array]) -> list[MatrixPiece]:
    """Return the parts of rows that lanes access."""
    warps = rows.group.n // _LANES
    first = np.repeat(_LANES * np.arange(warps), _LANES)
    found = []
    for number, within, size, lanes, offsets in row_pieces(count, transposed):
        address = rows.moved(first + np.tile(lanes, warps), np.tile(offsets, warps))
        values = ((registers[number] >> 8 * within).astype(f"u{size}"),) if registers else ()
        found.append(MatrixPiece(address, size, number, within, values))
    return found


# --- matrices of wgmma


def _read(group: Group, first: Array, descriptors: Array, matrix: Fragment, turned: bool, site: Instruction) -> Array:
    """Return each warp's matrix as numbers, read from shared memory by the lanes at positions `first`."""
    name = np.dtype(ELEMENTS[matrix.kind])
    each = UNIT // name.itemsize
    length, lines = (matrix.rows, matrix.columns) if turned else (matrix.columns, matrix.rows)
    try:
        units = unit_addresses(descriptors, length // each, lines, turned=turned)
    except ValueError as error:
        what = f"a matrix descriptor with {error}"
        raise group.unsupported(what, site, int(first[0])) from None
    base = group.shared_base[first]
    positions = np.repeat(first, units[0].size)
    address = Address(group.chunk.shared, group, units.reshape(-1), np.repeat(base, units[0].size))
    group.chunk.memory.check(address, 0, UNIT, site, positions)
    observer = group.chunk.state.observer
    if observer is not None:
        observer.bulk(group, "ld", Mixed(group, [(positions, address)]), UNIT, None, site)
    data = group.chunk.shared.bytes[address.places[:, None] + np.arange(UNIT)].view(name)
    found = numbers(data.reshape(len(first), lines, length), matrix.kind)
    return found.swapaxes(1, 2) if turned else found

"""Multiply the matrices of warpgroups (four warps), from shared memory or from registers (``wgmma``).

Each warp computes its quarter of the rows. The product is computed immediately, so the instructions that wait for it do
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..operations.matrices import ELEMENTS, Fragment, add_product, matrices, numbers
from ..operations.matrix_descriptors import UNIT, unit_addresses
from ..syntax.instructions import Instruction
from .matrices import check_warps
from .memory.addresses import Address, Mixed

if TYPE_CHECKING:
    from .groups import Group

Array = NDArray[Any]
_LANES = 32
_WARPS = 4


class GroupMatrices:
    """The products of ``wgmma`` for the groups of a chunk."""

    def multiply(
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

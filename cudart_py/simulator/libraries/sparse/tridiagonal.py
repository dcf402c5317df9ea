"""Batches of tridiagonal systems, with the names and parameters of `nvmath.bindings.cusparse`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from nvmath.bindings.cusparse import Status

from ...checks.findings import mode, put_finding
from ..common.calls import queue
from ..common.functions import LibraryError
from ..common.numbers import LETTERS, Numbers
from ..common.operands import array
from .handles import WORKSPACE, call, handles, workspace


def _gtsv2strided_batch_buffer_size_ext(
    dtype: np.dtype[Any], handle: int, m: int, dl: int, d: int, du: int, x: int, batch_count: int, batch_stride: int
) -> int:
    """Return the size of the buffer in bytes (cusparseXgtsv2StridedBatch_bufferSizeExt)."""
    _check_systems(m, batch_count, batch_stride)
    return WORKSPACE


@call
def _gtsv2strided_batch(
    dtype: np.dtype[Any], handle: int, m: int, dl: int, d: int, du: int, x: int, batch_count: int, batch_stride: int,
    p_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the solution of tridiagonal systems; it overwrites the right-hand sides (cusparseXgtsv2StridedBatch)."""
    found = handles.find(handle)
    _check_systems(m, batch_count, batch_stride)
    *diagonals, right = (
        array(int(address), (batch_count, m), dtype, (batch_stride, 1)) for address in (dl, d, du, x)
    )  # each system is a row

    def solve() -> None:
        if mode() != "off":
            _check_corners(*(operand.elements for operand in diagonals))
        right.elements[...] = _solved(*(operand.elements for operand in (*diagonals, right)))

    name = "cusparseXgtsv2StridedBatch"
    reads = [*diagonals, right]
    queue(found.stream, name, solve, reads=reads, writes=[right], workspaces=workspace(p_buffer))


def _check_systems(m: int, batch_count: int, batch_stride: int) -> None:
    if m < 3 or batch_count < 1 or batch_stride < m:
        raise LibraryError(
            Status.INVALID_VALUE, f"{batch_count} systems of {m} unknowns, {batch_stride} apart; at least 3 are needed"
        )


def _check_corners(lower: Numbers, _: Numbers, upper: Numbers) -> None:
    """Report elements outside the matrices that are not zero, as the library requires; `_solved` ignores them."""
    for name, place, corners in (("dl", "first", lower[:, 0]), ("du", "last", upper[:, -1])):
        systems = np.flatnonzero(corners)
        if systems.size:
            put_finding(
                "argument",
                f"cusparseXgtsv2StridedBatch: the {place} element of each system in {name} must be zero, but that of "
                f"system {systems[0]} is {corners[systems[0]]}",
            )


def _solved(lower: Numbers, middle: Numbers, upper: Numbers, right: Numbers) -> Numbers:
    """Return the solutions of systems, one per row, by elimination without pivoting."""
    upper, solution = upper.copy(), right.copy()
    upper[:, 0] /= middle[:, 0]
    solution[:, 0] /= middle[:, 0]
    for i in range(1, middle.shape[1]):
        pivot = middle[:, i] - lower[:, i] * upper[:, i - 1]
        upper[:, i] /= pivot
        solution[:, i] = (solution[:, i] - lower[:, i] * solution[:, i - 1]) / pivot
    for i in range(middle.shape[1] - 2, -1, -1):
        solution[:, i] -= upper[:, i] * solution[:, i + 1]
    return solution


_SINGLE, _DOUBLE, _COMPLEX, _DOUBLE_COMPLEX = LETTERS.values()
sgtsv2strided_batch = functools.partial(_gtsv2strided_batch, _SINGLE)
dgtsv2strided_batch = functools.partial(_gtsv2strided_batch, _DOUBLE)
cgtsv2strided_batch = functools.partial(_gtsv2strided_batch, _COMPLEX)
zgtsv2strided_batch = functools.partial(_gtsv2strided_batch, _DOUBLE_COMPLEX)
sgtsv2strided_batch_buffer_size_ext = functools.partial(_gtsv2strided_batch_buffer_size_ext, _SINGLE)
dgtsv2strided_batch_buffer_size_ext = functools.partial(_gtsv2strided_batch_buffer_size_ext, _DOUBLE)
cgtsv2strided_batch_buffer_size_ext = functools.partial(_gtsv2strided_batch_buffer_size_ext, _COMPLEX)
zgtsv2strided_batch_buffer_size_ext = functools.partial(_gtsv2strided_batch_buffer_size_ext, _DOUBLE_COMPLEX)

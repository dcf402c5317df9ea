"""Products of many matrices that lie anywhere in memory, with cuBLAS's batches of pointers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base import arguments
from ...context.current import activated
from ...memory.array import DeviceArray
from ...memory.creation import empty, to_device
from ...streams.stream import Stream
from .. import views
from ..handles import refuse_capture
from .cublas_calls import call_cublas
from .products import DEFAULT_ALGORITHM, checked_product, result_dtype
from .scalars import Scalar, check_unread


def gemm_batched(
    a: Sequence[DeviceArray],
    b: Sequence[DeviceArray],
    out: Sequence[DeviceArray] | None = None,
    *,
    alpha: Scalar = 1.0,
    beta: Scalar = 0.0,
    op_a: str = "N",
    op_b: str = "N",
    compute: str | None = None,
    stream: Stream | None = None,
) -> list[DeviceArray]:
    """Queue out[i] = alpha op(a[i]) op(b[i]) + beta out[i] in one call, and return the outputs (cublasGemmBatchedEx).

    `a`, `b` and `out` are sequences of the same length, whose matrices can lie anywhere in memory. Within each
    sequence, all have the same shape, dtype and strides. By default, the outputs are the slices of a new array. For
    matrices that are evenly spaced, `gemm` with three dimensions has less to prepare. Dtypes, layouts, `op_a`, `op_b`
    and `compute` are those of `gemm`, except int8. Raises TypeError or ValueError, naming the argument, before anything
    is queued.
    """
    call = "gemm_batched"
    where, device = views.device_of(call, stream)
    refuse_capture(call, where, "the addresses of the matrices are copied from the host")
    rule = "a sequence of DeviceArrays"
    first, second = arguments.items(call, "a", a, rule), arguments.items(call, "b", b, rule)
    results = None if out is None else arguments.items(call, "out", out, rule)
    for name, arrays in (("a", first), ("b", second), ("out", results)):
        if arrays is None:
            continue
        for index, array in enumerate(arrays):
            views.check_place(call, device, **{f"{name}[{index}]": array})
        if len(arrays) != len(first):
            raise arguments.unusable(call, name, f"have {len(first)} matrices, like 'a'", len(arrays))
        _check_alike(call, name, arrays)
    if not first:
        return []
    if first[0].ndim != 2 or second[0].ndim != 2:
        name, arrays = ("a", first) if first[0].ndim != 2 else ("b", second)
        raise arguments.unusable(call, name, "have matrices of two dimensions", f"of shape {arrays[0].shape}")
    if first[0].dtype == np.int8:
        raise arguments.wrong_dtype(call, "a", "of floats", "int8", "use gemm with three dimensions")
    if results is None:
        check_unread(call, beta)
        product, _ = checked_product(call, device, first[0], second[0], None, alpha, beta, op_a, op_b, compute)
        with activated(device):
            whole = empty((len(first), *product.shape), result_dtype(first[0].dtype), stream=where)
        results = [whole[index] for index in range(len(first))]
    # All products have the layouts of the first one.
    product, _ = checked_product(call, device, first[0], second[0], results[0], alpha, beta, op_a, op_b, compute)
    if not product.size:
        return results
    pointers = np.array([[array.pointer for array in arrays] for arrays in (first, second, results)], np.uint64)
    if out is not None:
        _check_apart(call, pointers, (first[0], second[0], results[0]))
    if product.swapped:
        pointers[:2] = pointers[1::-1].copy()
    (op_1, op_2), (alpha_at, beta_at) = product.operations, product.scalars
    name = "gemm_batched_ex_64" if product.wide else "gemm_batched_ex"
    with activated(device):
        addresses = to_device(pointers, stream=where)
        left, right, target = (addresses[row].pointer for row in range(3))
        # cuBLAS is column-major, so it sees the transpose of every matrix: out^T = op(b)^T op(a)^T.
        call_cublas(
            where, device, name, op_2, op_1, product.n, product.m, product.k, alpha_at, right, *product.b, left,
            *product.a, beta_at, target, *product.out, len(first), product.compute, DEFAULT_ALGORITHM,
        )  # fmt: skip  # grouped by meaning
    return results


def _check_alike(call: str, name: str, arrays: list[DeviceArray]) -> None:
    """Raise ValueError or TypeError unless all arrays have the same shape, dtype and strides."""
    for index, array in enumerate(arrays):
        if array.dtype != arrays[0].dtype:
            raise arguments.wrong_dtype(call, f"{name}[{index}]", f"{arrays[0].dtype}, like '{name}[0]'", array.dtype)
        if (array.shape, array.strides) != (arrays[0].shape, arrays[0].strides):
            rule = f"have shape {arrays[0].shape} and strides {arrays[0].strides}, like '{name}[0]'"
            raise arguments.unusable(call, f"{name}[{index}]", rule, f"{array.shape} and {array.strides}")


class _Lines(NamedTuple):
    """The contiguous lines of several matrices of one layout: their addresses, and the size of a line in bytes."""

    addresses: NDArray[np.uint64]
    nbytes: int
    per_matrix: int


def _lines(pointers: NDArray[np.uint64], matrix: DeviceArray, *, whole: bool) -> _Lines:
    """Return the rows or columns of matrices at some addresses; if `whole`, all memory of a matrix as one line."""
    view, _ = views.oriented("gemm_batched", "matrix", matrix)
    if whole:
        return _Lines(pointers, view.span, 1)
    starts = np.arange(view.rows, dtype=np.uint64) * np.uint64(view.leading * matrix.itemsize)
    return _Lines((pointers[:, None] + starts).reshape(-1), view.columns * matrix.itemsize, view.rows)


def _check_apart(call: str, pointers: NDArray[np.uint64], matrices: tuple[DeviceArray, ...]) -> None:
    """Raise ValueError if one of the outputs overlaps another one, or a factor of any product.

    `pointers` has one row for each of `a`, `b` and `out`, and `matrices` the first matrix of each. Lines are compared
    only if the memory from the first to the last line of two matrices overlaps.
    """

    def overlap(*, whole: bool) -> tuple[int, str] | None:
        return _overlap(*(_lines(row, matrix, whole=whole) for row, matrix in zip(pointers, matrices, strict=True)))

    conflict = overlap(whole=True) and overlap(whole=False)
    if conflict is not None:
        index, other = conflict
        raise arguments.unusable(call, f"out[{index}]", f"not overlap '{other}', which the same call reads or writes")


def _overlap(a: _Lines, b: _Lines, out: _Lines) -> tuple[int, str] | None:
    """Return the index of an output and the name of a matrix that it overlaps, or None."""
    order = np.argsort(out.addresses, kind="stable")
    starts = out.addresses[order]
    close = np.flatnonzero(np.diff(starts) < out.nbytes)
    if close.size:
        pair = sorted(int(line) // out.per_matrix for line in order[close[0] : close[0] + 2])
        return pair[1], f"out[{pair[0]}]"
    for name, factor in (("a", a), ("b", b)):
        # The last output line that begins before the end of each line of a factor.
        before = np.searchsorted(starts, factor.addresses + np.uint64(factor.nbytes), "left") - 1
        lines = np.flatnonzero((before >= 0) & (starts[before] + np.uint64(out.nbytes) > factor.addresses))
        if lines.size:
            index = int(order[before[lines[0]]]) // out.per_matrix
            return index, f"{name}[{int(lines[0]) // factor.per_matrix}]"
    return None

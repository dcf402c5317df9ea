"""Products of many matrices that lie anywhere in memory, with cuBLAS's batches of pointers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import arguments
from ...context.current import activated
from ...memory.array import DeviceArray
from ...memory.creation import empty, to_device
from ...streams.stream import Stream
from .. import views
from ..failures import failure
from ..handles import keep, library_handle
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

    `a`, `b` and `out` are sequences of matrices of the same number, which can lie anywhere in memory. Within each
    sequence, all have the same shape, dtype and strides. By default, the outputs are the slices of a new array. For
    matrices that are evenly spaced, `gemm` with three dimensions has less to prepare. Dtypes, layouts, `op_a`, `op_b`
    and `compute` are those of `gemm`, except int8. Raises TypeError or ValueError, naming the argument, before anything
    is queued.
    """
    call = "gemm_batched"
    where, device = views.device_of(call, stream)
    wanted = "a sequence of DeviceArrays"
    first, second = arguments.items(call, "a", a, wanted), arguments.items(call, "b", b, wanted)
    results = None if out is None else arguments.items(call, "out", out, wanted)
    for name, arrays in (("a", first), ("b", second), ("out", results)):
        if arrays is None:
            continue
        for place, array in enumerate(arrays):
            views.check_place(call, device, **{f"{name}[{place}]": array})
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
        results = [whole[place] for place in range(len(first))]
    for each in zip(first, second, results, strict=True):  # also checks that no output overlaps its factors
        product, _ = checked_product(call, device, *each, alpha, beta, op_a, op_b, compute)
    if product.size:
        with activated(device):
            pair = (second, first) if product.swapped else (first, second)
            places = np.array([[array.pointer for array in arrays] for arrays in (*pair, results)], np.uint64)
            addresses = to_device(places, stream=where)
            handle = library_handle("cublas", where, device)
            (op_1, op_2), (alpha_at, beta_at) = product.operations, product.scalars
            left, right, target = (addresses[row].pointer for row in range(3))
            try:
                # cuBLAS is column-major, so it sees the transpose of every matrix: out^T = op(b)^T op(a)^T.
                handle.functions.gemm_batched_ex(
                    handle.native, op_2, op_1, product.n, product.m, product.k, alpha_at, right, *product.b, left,
                    *product.a, beta_at, target, *product.out, len(first), product.compute, DEFAULT_ALGORITHM,
                )  # fmt: skip  # grouped by meaning
            except Exception as error:
                raise failure("cublasGemmBatchedEx", error) from error
        keep(where, call, *first, *second, *results, addresses, handle.workspace)
    return results


def _check_alike(call: str, name: str, arrays: list[DeviceArray]) -> None:
    """Raise ValueError or TypeError unless all arrays have the same shape, dtype and strides."""
    for place, array in enumerate(arrays):
        if array.dtype != arrays[0].dtype:
            raise arguments.wrong_dtype(call, f"{name}[{place}]", f"{arrays[0].dtype}, like '{name}[0]'", array.dtype)
        if (array.shape, array.strides) != (arrays[0].shape, arrays[0].strides):
            known = f"have shape {arrays[0].shape} and strides {arrays[0].strides}, like '{name}[0]'"
            raise arguments.unusable(call, f"{name}[{place}]", known, f"{array.shape} and {array.strides}")

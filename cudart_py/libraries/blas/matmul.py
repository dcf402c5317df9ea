"""Products of arrays by NumPy's rules for shapes, with cuBLAS."""

from __future__ import annotations

import itertools
import math

import numpy as np

from ...base import arguments
from ...context.current import activated
from ...hints import answers_keywords
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..handles import keep, library_handle
from .products import checked_product, queue_product, result_dtype


@answers_keywords("matmul")
def matmul(
    a: DeviceArray,
    b: DeviceArray,
    out: DeviceArray | None = None,
    *,
    compute: str | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue the matrix product of two arrays by the rules of `numpy.matmul`, and return it (cublasGemmEx).

    In arrays with more than two dimensions, the last two are matrices and the others the batch. The batches must be
    equal, or one of the operands must be a single matrix. A vector has one axis and is multiplied as a row on the left
    and as a column on the right; the result lacks this axis. The product of two vectors has the shape () and conjugates
    neither. Dtypes, layouts and `compute` are those of `gemm`. Raises TypeError or ValueError, naming the operand,
    before anything is queued.
    """
    call = "matmul"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, a=a, b=b)
    for name, operand in (("a", a), ("b", b)):
        if not operand.ndim:
            raise arguments.unusable(call, name, "have at least one dimension", "the shape ()")
    left, right = _matrices(call, "a", a, axis=0), _matrices(call, "b", b, axis=1)
    if left.shape[-1] != right.shape[-2]:
        lines = "elements" if b.ndim == 1 else "rows"
        raise arguments.unusable(call, "b", f"have {left.shape[-1]} {lines} for 'a' of shape {a.shape}", b.shape)
    shape = (*_batch(call, a, b), *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ()))
    if out is None:
        # The dtype is checked with the product, before the output is allocated.
        checked_product(call, device, left, right, None, 1.0, 0.0, "N", "N", compute)
        with activated(device):
            out = empty(shape, result_dtype(a.dtype), stream=where)
    else:
        views.check_place(call, device, out=out)
        arguments.same_shape(call, "out", out, shape, "for the product of 'a' and 'b'")
    target = out
    if b.ndim == 1:
        target = _with_axis(target, target.ndim)
    if a.ndim == 1:
        target = _with_axis(target, target.ndim - 1)
    target = _matrices(call, "out", target, axis=0)
    product, addresses = checked_product(call, device, left, right, target, 1.0, 0.0, "N", "N", compute)
    if product.size:
        with activated(device):
            handle = library_handle("cublas", where, device)
            queue_product(product, handle, *addresses)
        keep(where, call, a, b, out, handle.workspace)
    return out


def _batch(call: str, a: DeviceArray, b: DeviceArray) -> tuple[int, ...]:
    """Return the batch axes of the product; raise ValueError if one operand would have to be repeated unevenly."""
    first, second = a.shape[:-2], b.shape[:-2]
    if first != second and math.prod(first) != 1 and math.prod(second) != 1:
        raise arguments.unusable(
            call, "b", f"have the batch axes {first}, like 'a', or a single matrix", f"the shape {b.shape}"
        )
    return np.broadcast_shapes(first, second)


def _matrices(call: str, name: str, array: DeviceArray, *, axis: int) -> DeviceArray:
    """Return a view with two dimensions, or with three for a batch; a vector gets a new axis, the first or the last."""
    if array.ndim == 1:
        return _with_axis(array, axis)
    count = math.prod(array.shape[:-2])
    shape, strides = array.shape[-2:], array.strides[-2:]
    if count == 1:
        return array._view(shape, array.dtype, strides, 0)
    axes = [(size, stride) for size, stride in zip(array.shape[:-2], array.strides[:-2], strict=True) if size != 1]
    for (_, outer), (size, inner) in itertools.pairwise(axes):
        if count and outer != size * inner:
            raise arguments.unusable(
                call, name, "have evenly spaced matrices", f"of shape {array.shape} with strides {array.strides}",
                arguments.copy_of(name),
            )  # fmt: skip  # grouped by meaning
    step = axes[-1][1]
    return array._view((count, *shape), array.dtype, (step, *strides), 0)


def _with_axis(array: DeviceArray, axis: int) -> DeviceArray:
    """Return a view with a new axis of size 1; its stride is that of a contiguous row, and is never used."""
    shape, strides = list(array.shape), list(array.strides)
    shape.insert(axis, 1)
    strides.insert(axis, array.itemsize)
    return array._view(tuple(shape), array.dtype, tuple(strides), 0)

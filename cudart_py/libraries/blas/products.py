"""Matrix products of DeviceArrays with cuBLAS, in all of its precisions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ... import arguments
from ...context.capture import captures
from ...context.current import activated
from ...context.device import Device
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..dtypes import Kind
from ..failures import failure
from ..handles import LibraryHandle, keep, library_handle
from ..plans import Plan, plannable
from .scalars import Factor, Scalar, check_number, check_unread, compute_type, operation, scalar

TYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
# The default of cublasGemmAlgo_t, and the largest size that the 32-bit functions accept.
DEFAULT_ALGORITHM, INT_MAX = -1, 2**31 - 1
# A program has some dozens of shapes. The limit keeps a program with ever new shapes from filling memory.
MOST_PRODUCTS = 1024


class _Product(NamedTuple):
    """A checked product: all arguments of the cuBLAS call except the pointers."""

    shape: tuple[int, ...]
    size: int
    operations: tuple[int, int]
    m: int
    n: int
    k: int
    scalars: tuple[int, int]
    a: tuple[int, int]  # type and leading dimension
    b: tuple[int, int]
    out: tuple[int, int]
    strides: tuple[int, int, int]
    batch: int
    compute: int
    spans: tuple[int, int, int]
    wide: bool
    held: tuple[Factor, Factor]  # what `scalars` point to


# Keyed by everything that determines a product except the addresses. Products are immutable, so threads share them.
_products: dict[Any, _Product] = {}


class _GemmPlan(Plan[DeviceArray]):
    """A product that is queued repeatedly, with the same operands in the same stream."""

    def __init__(
        self, product: _Product, stream: Stream, device: Device, a: DeviceArray, b: DeviceArray, out: DeviceArray
    ) -> None:
        super().__init__("gemm", stream, device, out)
        self._product, self._operands = product, (a, b, out)
        with activated(device):
            self._record()

    def _prepare(self) -> None:
        library_handle("cublas", self._stream, self._device)

    def _queue(self, stream: Stream) -> None:
        handle = library_handle("cublas", self._stream, self._device)
        a, b, out = self._operands
        with handle.lent_to(stream):
            if self._product.size:
                _call(self._product, handle, a.pointer, b.pointer, out.pointer)
        keep(stream, "gemm", a, b, out, handle.workspace)


def _plan(
    a: DeviceArray,
    b: DeviceArray,
    out: DeviceArray | None = None,
    *,
    alpha: Scalar = 1.0,
    beta: Scalar = 0.0,
    op_a: str = "N",
    op_b: str = "N",
    compute: str | None = None,
    stream: Stream | None = None,
) -> Plan[DeviceArray]:
    """Check and record a product without queueing it. Calling the plan has a third of the host overhead of `gemm`."""
    call = "gemm.plan"
    where, device = views.device_of(call, stream)
    product, _ = _checked(call, device, a, b, out, alpha, beta, op_a, op_b, compute)
    if out is None:
        with activated(device):
            out = empty(product.shape, a.dtype, stream=where)
    return _GemmPlan(product, where, device, a, b, out)


@plannable(_plan)
def gemm(
    a: DeviceArray,
    b: DeviceArray,
    out: DeviceArray | None = None,
    *,
    alpha: Scalar = 1.0,
    beta: Scalar = 0.0,
    op_a: str = "N",
    op_b: str = "N",
    compute: str | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue out = alpha op(a) op(b) + beta out and return `out`, by default a new array (cublasGemmEx).

    Each row of a matrix must be contiguous, but rows may be padded, as in a window of a larger matrix. In an array with
    three dimensions, the first is the batch. If the other operand has two dimensions, it is used for the whole batch
    (cublasGemmStridedBatchedEx). `op_a` and `op_b` are "N", "T" (transposed) or "C" (conjugate transposed). All
    matrices have the same dtype: float16, bfloat16 (`libraries.bfloat16`), float32, float64, complex64 or complex128.
    Products of float16 or bfloat16 matrices are accumulated in single precision, and `out` may then be float32.
    `compute="tf32"` rounds single-precision inputs to TF32, for tensor cores.

    `gemm.plan(...)` takes the same arguments and returns a `Plan` for a product that is repeated. A captured product
    uses a workspace of its stream, so its graph must be launched in the same stream: see `docs/libraries.md`.

    Raises TypeError or ValueError, naming the operand, before anything is queued.
    """
    call = "gemm"
    where, device = views.device_of(call, stream)
    product, addresses = _checked(call, device, a, b, out, alpha, beta, op_a, op_b, compute)
    if out is None:
        with activated(device):
            out = empty(product.shape, a.dtype, stream=where)
        addresses.append(out._address)
    if product.size:
        with activated(device):
            handle = library_handle("cublas", where, device)
            _call(product, handle, *addresses)
        if captures:
            keep(where, "gemm", a, b, out, handle.workspace)
    return out


def _checked(
    call: str,
    device: Device,
    a: DeviceArray,
    b: DeviceArray,
    out: DeviceArray | None,
    alpha: Scalar,
    beta: Scalar,
    op_a: str,
    op_b: str,
    compute: str | None,
) -> tuple[_Product, list[int]]:
    """Return the checked product for the operands and their addresses; a product seen before comes from the cache."""
    if out is None:
        addresses = views.check_place(call, device, a=a, b=b)
        check_unread(call, beta)
        target: Any = None
    else:
        addresses = views.check_place(call, device, a=a, b=b, out=out)
        target = out.shape, out.strides, out.dtype
    if not alpha.__class__ is beta.__class__ is float:  # other scalars may be unhashable objects
        check_number(call, "alpha", alpha)
        check_number(call, "beta", beta)
    if not (op_a.__class__ is op_b.__class__ is str and (compute is None or compute.__class__ is str)):
        _check_options(call, op_a, op_b, compute)
    key = (
        a.shape, a.strides, a.dtype, b.shape, b.strides, b.dtype, target,
        alpha, beta, op_a, op_b, compute, alpha.__class__, beta.__class__,  # 1 equals 1.0, but rounds differently
    )  # fmt: skip  # grouped by meaning
    product = _products.get(key)
    if product is None:
        product = _describe(call, a, b, out, alpha, beta, op_a, op_b, compute)
        if len(_products) >= MOST_PRODUCTS:
            _products.clear()
        _products[key] = product
    if out is not None:
        span_a, span_b, span = product.spans
        address_a, address_b, address = addresses
        views.check_apart(call, "out", address, span, a=(address_a, span_a), b=(address_b, span_b))
    return product, addresses


def _check_options(call: str, op_a: Any, op_b: Any, compute: Any) -> None:
    """Raise TypeError or ValueError for an invalid `op_a`, `op_b` or `compute`, naming the argument."""
    operation(call, "op_a", op_a)
    operation(call, "op_b", op_b)
    if compute is not None:
        arguments.instance(call, "compute", compute, str, "a str or None")


def _call(product: _Product, handle: LibraryHandle, a: int, b: int, out: int) -> None:
    # cuBLAS is column-major, so it sees the transpose of every matrix here. It computes out^T = op(b)^T op(a)^T.
    functions = handle.functions
    op_a, op_b = product.operations
    alpha, beta = product.scalars
    type_a, leading_a = product.a
    type_b, leading_b = product.b
    type_out, leading_out = product.out
    try:
        if product.batch == 1:
            call = functions.gemm_ex_64 if product.wide else functions.gemm_ex
            call(
                handle.native, op_b, op_a, product.n, product.m, product.k, alpha, b, type_b, leading_b, a, type_a,
                leading_a, beta, out, type_out, leading_out, product.compute, DEFAULT_ALGORITHM,
            )  # fmt: skip  # grouped by meaning
            return
        stride_a, stride_b, stride_out = product.strides
        call = functions.gemm_strided_batched_ex_64 if product.wide else functions.gemm_strided_batched_ex
        call(
            handle.native, op_b, op_a, product.n, product.m, product.k, alpha, b, type_b, leading_b, stride_b, a,
            type_a, leading_a, stride_a, beta, out, type_out, leading_out, stride_out, product.batch, product.compute,
            DEFAULT_ALGORITHM,
        )  # fmt: skip  # grouped by meaning
    except Exception as error:
        raise failure("cublasGemmEx" if product.batch == 1 else "cublasGemmStridedBatchedEx", error) from error


def _turned(matrix: views.Matrix, op: str) -> tuple[int, int]:
    return (matrix.rows, matrix.columns) if op == "N" else (matrix.columns, matrix.rows)


def _describe(
    call: str,
    a: DeviceArray,
    b: DeviceArray,
    out: DeviceArray | None,
    alpha: Scalar,
    beta: Scalar,
    op_a: str,
    op_b: str,
    compute: str | None,
) -> _Product:
    kind = views.kind(call, "a", a, TYPES)
    views.require_dtype(call, "b", b, a.dtype, "like 'a'")
    operations = operation(call, "op_a", op_a), operation(call, "op_b", op_b)
    remedy = 'for {0}.T write {0} and op_{0}="T", otherwise pass a copy'
    view_a = views.matrix(call, "a", a, batched=True, remedy=remedy.format("a"))
    view_b = views.matrix(call, "b", b, batched=True, remedy=remedy.format("b"))
    (m, k), (k_b, n) = _turned(view_a, op_a), _turned(view_b, op_b)
    if k != k_b:
        raise arguments.unusable(
            call, "b", f"have {k} rows with op_b={op_b!r}, since 'a' has {k} columns with op_a={op_a!r}", k_b
        )
    shape: tuple[int, ...] = (m, n)
    if a.ndim == 3 or b.ndim == 3:
        batch = a.shape[0] if a.ndim == 3 else b.shape[0]
        if a.ndim == b.ndim == 3 and b.shape[0] != batch:
            raise arguments.unusable(call, "b", f"have {batch} matrices, like 'a'", b.shape[0])
        shape = (batch, m, n)
    if out is None:
        kind_out, view = kind, views.contiguous_matrix(shape, a.itemsize)
    else:
        kind_out, view = _describe_out(call, out, kind, a.dtype, shape)
    held = scalar(call, "alpha", alpha, kind), scalar(call, "beta", beta, kind)
    strides = view_a.stride, view_b.stride, view.stride
    return _Product(
        shape=shape,
        size=math.prod(shape),
        operations=operations,
        m=m,
        n=n,
        k=k,
        scalars=(held[0].address, held[1].address),
        a=(kind.code, view_a.leading),
        b=(kind.code, view_b.leading),
        out=(kind_out.code, view.leading),
        strides=strides,
        batch=view.batch,
        compute=compute_type(call, kind, compute),
        spans=(view_a.span, view_b.span, view.span),
        wide=max(m, n, k, view_a.leading, view_b.leading, view.leading) > INT_MAX,
        held=held,
    )


def _describe_out(
    call: str, out: DeviceArray, kind: Kind, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> tuple[Kind, views.Matrix]:
    """Check the output of a product of matrices of a dtype; return its `Kind` and its layout."""
    if not (kind.name in ("float16", "bfloat16") and out.dtype == np.float32):
        views.require_dtype(call, "out", out, dtype, "like 'a'")
    view = views.matrix(call, "out", out, batched=True)
    arguments.same_shape(call, "out", out, shape, "for the product of 'a' and 'b'")
    if view.batch > 1 and view.stride < (view.rows - 1) * view.leading + view.columns:
        raise arguments.unusable(
            call, "out", "have matrices that do not overlap", f"matrices {view.stride} elements apart"
        )
    return views.kind(call, "out", out, TYPES), view

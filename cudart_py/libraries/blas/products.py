"""Matrix products of DeviceArrays with cuBLAS, in all of its precisions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...base import arguments
from ...context.capture import captures
from ...context.current import activated
from ...context.device import Device
from ...driver.calls import library
from ...hints import answers_keywords
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..dtypes import KINDS, Kind
from ..failures import failure
from ..handles import LibraryHandle, allocate_workspace, keep, library_handle
from ..plans import Plan, plannable
from .lt_products import ALGORITHMS, LtCall, Part, Problem, alignment_of
from .scalars import (
    OPERATIONS,
    Factor,
    Scalar,
    check_number,
    check_unread,
    compute_type,
    operation,
    scalar,
    toggled,
)

TYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int8")
# The default of cublasGemmAlgo_t, and the largest size that the 32-bit functions accept.
DEFAULT_ALGORITHM, INT_MAX = -1, 2**31 - 1
# The alignment of 8-bit integers, in bytes, that cuBLAS's kernels need.
INTEGER_ALIGNMENT = 4
# A program has some dozens of shapes. The limit keeps a program that uses new shapes all the time from filling memory.
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
    scale: int  # the type of alpha and beta
    spans: tuple[int, int, int]
    wide: bool
    swapped: bool  # the library gets b as its second factor, for an `out` with contiguous columns
    alignment: int  # of the addresses of the factors, in bytes
    held: tuple[Factor, Factor]  # what `scalars` point to

    @property
    def can_be_searched(self) -> bool:
        """Whether cuBLASLt can describe the factors, which it cannot if they have no elements."""
        return self.size > 0 and self.k > 0


# Keyed by everything that determines a product except the addresses. Products are immutable, so threads share them.
_products: dict[Any, _Product] = {}


class _GemmPlan(Plan[DeviceArray]):
    """A product that is queued repeatedly, with the same operands in the same stream."""

    def __init__(
        self,
        product: _Product,
        stream: Stream,
        device: Device,
        a: DeviceArray,
        b: DeviceArray,
        out: DeviceArray,
        *,
        search: bool,
    ) -> None:
        super().__init__("gemm", stream, device, out)
        self._product, self._operands = product, (a, b, out)
        self._search = search and product.can_be_searched
        self._workspace: DeviceArray | None = None
        with activated(device):
            self._record()

    def _prepare(self) -> None:
        if not self._search:
            library_handle("cublas", self._stream, self._device)
        elif self._workspace is None:
            product = _lt_call("gemm.plan", self._product, self._stream, self._device, *self._operands)
            nbytes = product.prepare(search=True).workspace_bytes
            self._workspace = allocate_workspace(nbytes, self._stream)

    def _queue(self, stream: Stream) -> None:
        if self._search:
            product = _lt_call("gemm.plan", self._product, stream, self._device, *self._operands)
            product.run(search=True, workspace=self._workspace)
            return
        handle = library_handle("cublas", self._stream, self._device)
        a, b, out = self._operands
        with handle.lent_to(stream):
            if self._product.size:
                queue_product(self._product, handle, a.pointer, b.pointer, out.pointer)
        keep(stream, "gemm", a, b, out, handle.workspace)


def _plan(
    a: DeviceArray, b: DeviceArray, out: DeviceArray | None, alpha: Scalar, beta: Scalar, op_a: str, op_b: str,
    compute: str | None, algorithm: str, stream: Stream | None,
) -> Plan[DeviceArray]:  # fmt: skip  # the parameters of `gemm`
    """Check and record a product without queueing it. Calling the plan has a third of the host overhead of `gemm`."""
    call = "gemm.plan"
    arguments.choice(call, "algorithm", algorithm, ALGORITHMS)
    where, device = views.device_of(call, stream)
    product, _ = checked_product(call, device, a, b, out, alpha, beta, op_a, op_b, compute)
    if out is None:
        with activated(device):
            out = empty(product.shape, result_dtype(a.dtype), stream=where)
    return _GemmPlan(product, where, device, a, b, out, search=algorithm == "search")


@plannable(_plan)
@answers_keywords("gemm")
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
    algorithm: str = "heuristic",
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue out = alpha op(a) op(b) + beta out and return `out`, by default a new array (cublasGemmEx).

    The rows or the columns of each matrix must be contiguous, but may be padded. So `a.T`, windows of larger matrices
    and `a[::2]` need no copy, but `a[:, ::2]` does. In an array with three dimensions, the first is the batch. If the
    other operand has two dimensions, it is used for the whole batch (cublasGemmStridedBatchedEx). `op_a` and `op_b` are
    "N", "T" (transposed) or "C" (conjugate transposed). All matrices have the same dtype: float16, bfloat16
    (`libraries.bfloat16`), float32, float64, complex64, complex128 or int8. Products of float16 or bfloat16 matrices
    are accumulated in single precision, and `out` may then be float32. Products of int8 matrices are int32; the rows of
    `a` and the columns of `b` must then be contiguous and begin a multiple of 4 elements apart.

    `compute` selects the arithmetic (cublasComputeType_t):

    - None: the precision of the matrices.
    - "tf32", "bf16", "fp16": for single precision, the tensor cores' products of inputs rounded to these types. For
      float16 matrices, "fp16" also accumulates in half precision.
    - "emulated": for single and double precision, the same precision, emulated by products of smaller types. The
      library decides whether emulation is faster.
    - "pedantic": no rounding of inputs, and no reordering beyond the textbook algorithm.

    `algorithm="search"` measures the algorithms that cuBLASLt recommends (cublasLtMatmulAlgoGetHeuristic), in the first
    call with these layouts, and uses the fastest one in this and all later searched calls of the thread. The first call
    waits for the device, and cannot be captured.

    `gemm.plan(...)` takes the same arguments and returns a `Plan` for a product that is repeated. A captured product
    uses a workspace of its stream, so its graph must be launched in the same stream: see `docs/libraries.md`.

    Raises TypeError or ValueError, naming the operand, before anything is queued.
    """
    call = "gemm"
    if not (algorithm.__class__ is str and algorithm == "heuristic"):
        arguments.choice(call, "algorithm", algorithm, ALGORITHMS)
    where, device = views.device_of(call, stream)
    product, addresses = checked_product(call, device, a, b, out, alpha, beta, op_a, op_b, compute)
    if out is None:
        with activated(device):
            out = empty(product.shape, result_dtype(a.dtype), stream=where)
        addresses.append(out._address)
    if product.can_be_searched and algorithm == "search":
        _lt_call(call, product, where, device, a, b, out).run(search=True)
    elif product.size:
        with activated(device):
            handle = library_handle("cublas", where, device)
            queue_product(product, handle, *addresses)
        if captures:
            keep(where, "gemm", a, b, out, handle.workspace)
    return out


def checked_product(
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
    if product.alignment > 1:
        check_aligned(call, product.alignment, a=addresses[0], b=addresses[1])
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


def queue_product(product: _Product, handle: LibraryHandle, a: int, b: int, out: int) -> None:
    """Call cuBLAS for a checked product of the matrices at three addresses."""
    # cuBLAS is column-major, so it sees the transpose of every matrix here. It computes out^T = op(b)^T op(a)^T.
    functions = handle.functions
    if product.swapped:
        a, b = b, a
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


def _lt_call(
    call: str, product: _Product, stream: Stream, device: Device, a: DeviceArray, b: DeviceArray, out: DeviceArray
) -> LtCall:
    """Return a checked product as a call of cuBLASLt."""
    if product.swapped:
        a, b = b, a
    m, n, k, count = product.m, product.n, product.k, product.batch
    none = int(library("cublas").Operation.N)
    parts = []
    for array, (code, leading), (rows, columns), stride, op in zip(
        (a, b, out),
        (product.a, product.b, product.out),
        ((m, k), (k, n), (m, n)),
        product.strides,
        (*product.operations, none),
        strict=True,
    ):
        if op != none:
            rows, columns = columns, rows
        span = ((count - 1) * stride + (rows - 1) * leading + columns) * array.itemsize
        parts.append(Part(code, views.Matrix(rows, columns, leading, count, stride, span), alignment_of(array)))
    problem = Problem((parts[0], parts[1], parts[2]), product.operations, product.compute, product.scale)
    return LtCall(call, stream, device, problem, product.held, (a, b, out), {})


def result_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a new array for a product of matrices of a dtype."""
    return np.dtype(np.int32) if dtype == np.int8 else dtype


def _sizes(array: DeviceArray, op: str) -> tuple[int, int]:
    """Return the rows and columns of op(array)."""
    rows, columns = array.shape[-2:]
    return (rows, columns) if op == "N" else (columns, rows)


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
    arguments.choice(call, "op_a", op_a, OPERATIONS)
    arguments.choice(call, "op_b", op_b, OPERATIONS)
    view_a, a_by_columns = views.oriented(call, "a", a, batched=True, by_columns=op_a != "N" and kind.name == "int8")
    view_b, b_by_columns = views.oriented(call, "b", b, batched=True, by_columns=op_b == "N" and kind.name == "int8")
    (m, k), (k_b, n) = _sizes(a, op_a), _sizes(b, op_b)
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
    swapped = False
    if out is None:
        result = result_dtype(a.dtype)
        kind_out, view = KINDS.get(result, kind), views.contiguous_matrix(shape, result.itemsize)
    else:
        kind_out, view, swapped = _describe_out(call, out, kind, a.dtype, shape)
    spans = view_a.span, view_b.span, view.span
    numbers, scale = compute_type(call, kind, compute)
    held = scalar(call, "alpha", alpha, scale), scalar(call, "beta", beta, scale)
    alignment = 1
    if kind.name == "int8":
        alignment = INTEGER_ALIGNMENT
        check_along_k(
            call, a=(view_a, a_by_columns != (op_a == "N")), b=(view_b, b_by_columns == (op_b == "N")), step=alignment
        )
    # If the columns of `out` are contiguous, its transpose is computed: out^T = op(b)^T op(a)^T.
    if a_by_columns != swapped:
        op_a = _toggled(call, "a", op_a, kind, swapped=swapped)
    if b_by_columns != swapped:
        op_b = _toggled(call, "b", op_b, kind, swapped=swapped)
    operations = operation(call, "op_a", op_a), operation(call, "op_b", op_b)
    if swapped:
        view_a, view_b, operations, m, n = view_b, view_a, operations[::-1], n, m
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
        strides=(view_a.stride, view_b.stride, view.stride),
        batch=view.batch,
        compute=numbers,
        scale=scale.scalar_code,
        spans=spans,
        wide=max(m, n, k, view_a.leading, view_b.leading, view.leading) > INT_MAX,
        swapped=swapped,
        alignment=alignment,
        held=held,
    )


def _toggled(call: str, name: str, op: str, kind: Kind, *, swapped: bool) -> str:
    """Return `toggled` for the operation on a factor whose lines differ from those of `out`.

    If `swapped`, the columns of `out` are contiguous and the factor's rows are, as usual, so that an error names `out`.
    """
    if swapped and op == "C" and kind.is_complex:
        rule = f"have contiguous rows with op_{name}='C', like the complex matrix {name!r}"
        raise arguments.unusable(call, "out", rule, "contiguous columns", "leave it out for a new array")
    return toggled(call, f"op_{name}", op, kind)


def check_along_k(call: str, *, a: tuple[views.Matrix, bool], b: tuple[views.Matrix, bool], step: int) -> None:
    """Check the layouts of 8-bit factors, which the tensor cores read along the summed index k.

    Each factor is given by its layout, and whether its elements along k are adjacent. Neighbouring rows along k must
    begin a multiple of `step` elements apart. Raises ValueError, naming the operand.
    """
    if not a[1]:
        raise arguments.unusable(
            call,
            "a",
            "have contiguous rows, since it is a matrix of 8-bit elements",
            "contiguous columns",
            arguments.copy_of("a"),
        )
    if not b[1]:
        raise arguments.unusable(
            call, "b", "have contiguous columns, since it is a matrix of 8-bit elements", "contiguous rows",
            "pass w.T, where w has the shape (n, k)",
        )  # fmt: skip  # grouped by meaning
    for name, (view, _) in (("a", a), ("b", b)):
        if view.leading % step:
            lines = "rows" if name == "a" else "columns"
            raise arguments.unusable(
                call, name, f"have {lines} that begin a multiple of {step} elements apart", view.leading,
                "pad them, and slice the padded array",
            )  # fmt: skip  # grouped by meaning


def check_aligned(call: str, alignment: int, /, **addresses: int) -> None:
    """Raise ValueError for an address that is not a multiple of `alignment`, naming the operand."""
    for name, address in addresses.items():
        if address % alignment:
            raise arguments.unusable(call, name, f"begin at a multiple of {alignment} bytes", f"at {address:#x}")


def _describe_out(
    call: str, out: DeviceArray, kind: Kind, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> tuple[Kind, views.Matrix, bool]:
    """Check the output of a product of matrices of a dtype; return its `Kind`, and its layout as `views.oriented`."""
    if kind.name == "int8":
        views.require_dtype(call, "out", out, np.dtype(np.int32), "for a product of int8 matrices")
    elif not (kind.name in ("float16", "bfloat16") and out.dtype == np.float32):
        views.require_dtype(call, "out", out, dtype, "like 'a'")
    view, swapped = views.oriented(call, "out", out, batched=True)
    arguments.same_shape(call, "out", out, shape, "for the product of 'a' and 'b'")
    if view.batch > 1 and view.stride < (view.rows - 1) * view.leading + view.columns:
        raise arguments.unusable(
            call, "out", "have matrices that do not overlap", f"matrices {view.stride} elements apart"
        )
    return views.kind(call, "out", out, (*TYPES, "int32")), view, swapped

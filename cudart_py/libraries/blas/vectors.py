"""Matrix-vector products, vector sums and inner products."""

from __future__ import annotations

from ...base import arguments
from ...context.current import activated
from ...hints import answers_keywords
from ...memory.array import DeviceArray
from ...streams.stream import Stream
from .. import views
from ..handles import keep, library_handle
from ..outputs import output_for
from .cublas_calls import call_cublas, results_on_device
from .products import gemm
from .scalars import OPERATIONS, Scalar, check_unread, operation, scalar, toggled

BLAS_TYPES = ("float32", "float64", "complex64", "complex128")
ALL_TYPES = ("float16", "bfloat16", *BLAS_TYPES)


@answers_keywords("gemv")
def gemv(
    a: DeviceArray,
    x: DeviceArray,
    out: DeviceArray | None = None,
    *,
    alpha: Scalar = 1.0,
    beta: Scalar = 0.0,
    op: str = "N",
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue out = alpha op(a) x + beta out and return `out`, by default a new vector (cublasSgemv and others).

    For `a` of shape (m, n), `x` has n elements and `out` has m, or the other way round if `op` is "T" or "C" instead of
    "N". All have the same dtype: float32, float64, complex64 or complex128. The rows or the columns of `a` must be
    contiguous; `x` and `out` may have a constant stride. For complex numbers in contiguous rows, "C" is computed by
    `gemm`, which needs contiguous vectors. Raises TypeError or ValueError, naming the operand, before anything is
    queued.
    """
    call = "gemv"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, a=a, x=x)
    kind = views.kind(call, "a", a, BLAS_TYPES)
    views.require_dtype(call, "x", x, a.dtype, "like 'a'")
    arguments.choice(call, "op", op, OPERATIONS)
    matrix, columns_are_contiguous = views.oriented(call, "a", a)
    vector = views.vector(call, "x", x)
    rows, columns = a.shape if op == "N" else a.shape[::-1]
    arguments.same_shape(call, "x", x, (columns,), f"for 'a' of shape {a.shape} with op={op!r}")
    factors = scalar(call, "alpha", alpha, kind), scalar(call, "beta", beta, kind)
    if out is None:
        check_unread(call, beta)
    reason = f"for 'a' of shape {a.shape} with op={op!r}"
    out = output_for(call, out, (rows,), a.dtype, (where, device), reason=reason)
    result = views.vector(call, "out", out)
    views.check_apart(call, "out", out.pointer, result.span, a=(a.pointer, matrix.span), x=(x.pointer, vector.span))
    if op == "C" and kind.is_complex and not columns_are_contiguous:
        arguments.contiguous(call, "x", x)
        arguments.contiguous(call, "out", out)
        gemm(a, x.reshape(x.size, 1), out.reshape(rows, 1), alpha=alpha, beta=beta, op_a="C", stream=stream)
        return out
    if not rows:
        return out
    if not columns:  # for a matrix without columns, the BLAS does not even multiply `out` by beta
        return scal(beta, out, stream=where) if beta else out.fill(0, stream=where)
    # cuBLAS is column-major, so it sees the transpose of a matrix with contiguous rows.
    operation_code = operation(call, "op", op if columns_are_contiguous else toggled(call, "op", op, kind))
    operands = (
        operation_code, matrix.columns, matrix.rows, factors[0].address, a.pointer, matrix.leading, x.pointer,
        vector.step, factors[1].address, out.pointer, result.step,
    )  # fmt: skip  # grouped by meaning
    with activated(device):
        handle = call_cublas(where, device, f"{kind.letter}gemv", *operands, layouts=(matrix, vector, result))
    keep(where, call, a, x, out, handle.workspace)
    return out


def axpy(alpha: Scalar, x: DeviceArray, y: DeviceArray, *, stream: Stream | None = None) -> DeviceArray:
    """Queue y = alpha x + y, in place, and return `y` (cublasAxpyEx).

    The vectors have the same number of elements and the same dtype: float16, bfloat16, float32, float64, complex64 or
    complex128. Both may be strided. Raises TypeError or ValueError, naming the operand, before anything is queued.
    """
    call = "axpy"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, x=x, y=y)
    kind = views.kind(call, "x", x, ALL_TYPES)
    views.require_dtype(call, "y", y, x.dtype, "like 'x'")
    source, target = views.vector(call, "x", x), views.vector(call, "y", y)
    arguments.same_shape(call, "y", y, x.shape, "like 'x'")
    views.check_apart(call, "y", y.pointer, target.span, x=(x.pointer, source.span))
    factor = scalar(call, "alpha", alpha, kind)
    if not source.size:
        return y
    operands = (
        source.size, factor.address, kind.scalar_code, x.pointer, kind.code, source.step, y.pointer, kind.code,
        target.step, kind.scalar_code,
    )  # fmt: skip  # grouped by meaning
    with activated(device):
        handle = call_cublas(where, device, "axpy_ex", *operands, layouts=(source, target))
    keep(where, call, x, y, handle.workspace)
    return y


def scal(alpha: Scalar, x: DeviceArray, *, stream: Stream | None = None) -> DeviceArray:
    """Queue x = alpha x, in place, and return `x` (cublasScalEx).

    The vector may be strided. Its dtype is one of those of `axpy`. `alpha` is a number on the host. If the factor is on
    the device, such as the result of `dot`, write a small kernel that reads it there, so that the host need not wait
    for it. An example is the kernel `turn` of the tour's stop `sparse`. Raises TypeError or ValueError, naming the
    operand, before anything is queued.
    """
    call = "scal"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, x=x)
    kind = views.kind(call, "x", x, ALL_TYPES)
    target, factor = views.vector(call, "x", x), scalar(call, "alpha", alpha, kind)
    if not target.size:
        return x
    operands = (
        target.size, factor.address, kind.scalar_code, x.pointer, kind.code, target.step, kind.scalar_code
    )  # fmt: skip  # grouped by meaning
    with activated(device):
        handle = call_cublas(where, device, "scal_ex", *operands, layouts=(target,))
    keep(where, call, x, handle.workspace)
    return x


@answers_keywords("dot")
def dot(
    x: DeviceArray,
    y: DeviceArray,
    out: DeviceArray | None = None,
    *,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue the sum of x[i] y[i], without conjugation, and return it in `out`, an array with one element (cublasDotEx).

    The vectors have the same number of elements and the same dtype: float32, float64, complex64 or complex128. Both may
    be strided. The result stays on the device, so later work can use it, and a stream capture can record the call. To
    copy the result to the host, call `float(out)` or `out.item()` (for complex numbers, `complex(out)`). Raises
    TypeError or ValueError, naming the operand, before anything is queued.
    """
    call = "dot"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, x=x, y=y)
    kind = views.kind(call, "x", x, BLAS_TYPES)
    views.require_dtype(call, "y", y, x.dtype, "like 'x'")
    first, second = views.vector(call, "x", x), views.vector(call, "y", y)
    arguments.same_shape(call, "y", y, x.shape, "like 'x'")
    out = output_for(call, out, (1,), x.dtype, (where, device), like="like 'x'", reason="for an inner product")
    views.check_apart(call, "out", out.pointer, out.itemsize, x=(x.pointer, first.span), y=(y.pointer, second.span))
    operands = (
        first.size, x.pointer, kind.code, first.step, y.pointer, kind.code, second.step, out.pointer, kind.code,
        kind.code,
    )  # fmt: skip  # grouped by meaning
    with activated(device):
        handle = library_handle("cublas", where, device)
        with results_on_device(handle):
            call_cublas(where, device, "dot_ex", *operands, layouts=(first, second))
    keep(where, call, x, y, out, handle.workspace)
    return out

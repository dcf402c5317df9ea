"""Products with symmetric matrices, of which one triangle is stored, and rank-1 updates."""

from __future__ import annotations

from ...base import arguments
from ...context.current import activated
from ...driver.calls import library
from ...memory.array import DeviceArray
from ...memory.creation import zeros
from ...streams.stream import Stream
from .. import views
from ..dtypes import Kind
from ..handles import keep
from ..outputs import output_for
from .cublas_calls import call_cublas
from .scalars import Scalar, check_unread, scalar
from .vectors import BLAS_TYPES


def ger(alpha: Scalar, x: DeviceArray, y: DeviceArray, a: DeviceArray, *, stream: Stream | None = None) -> DeviceArray:
    """Queue a = alpha x y^T + a, in place, and return `a` (cublasSger, cublasCgeru and others).

    For `x` of m elements and `y` of n elements, `a` has the shape (m, n), and contiguous rows or columns. Complex
    vectors are not conjugated. All arrays have the same dtype: float32, float64, complex64 or complex128. Raises
    TypeError or ValueError, naming the operand, before anything is queued.
    """
    call = "ger"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, x=x, y=y, a=a)
    kind = views.kind(call, "a", a, BLAS_TYPES)
    for name, vector in (("x", x), ("y", y)):
        views.require_dtype(call, name, vector, a.dtype, "like 'a'")
    first, second = views.vector(call, "x", x), views.vector(call, "y", y)
    matrix, by_columns = views.oriented(call, "a", a)
    arguments.same_shape(call, "a", a, (first.size, second.size), f"for 'x' and 'y' of shapes {x.shape} and {y.shape}")
    views.check_apart(call, "a", a.pointer, matrix.span, x=(x.pointer, first.span), y=(y.pointer, second.span))
    number = scalar(call, "alpha", alpha, kind)
    if not a.size:
        return a
    # cuBLAS is column-major, so it sees the transpose of a matrix with contiguous rows.
    pair = [(y.pointer, second.step), (x.pointer, first.step)]
    if by_columns:
        pair.reverse()
    sizes = matrix.columns, matrix.rows
    name = f"{kind.letter}{'geru' if kind.is_complex else 'ger'}"
    operands = *sizes, number.address, *pair[0], *pair[1], a.pointer, matrix.leading
    with activated(device):
        handle = call_cublas(where, device, name, *operands, layouts=(first, second, matrix))
    keep(where, call, x, y, a, handle.workspace)
    return a


def symv(
    a: DeviceArray,
    x: DeviceArray,
    out: DeviceArray | None = None,
    *,
    lower: bool = True,
    alpha: Scalar = 1.0,
    beta: Scalar = 0.0,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue out = alpha a x + beta out for a symmetric matrix, and return `out` (cublasSsymv and others).

    Only the lower triangle of `a` is read or, without `lower`, the upper one. A complex matrix is symmetric, not
    Hermitian. The rows of `a` are contiguous; the vectors may be strided. Dtypes and errors are those of `ger`.
    """
    call = "symv"
    where, device = views.device_of(call, stream)
    lower = arguments.flag(call, "lower", lower)
    views.check_place(call, device, a=a, x=x)
    kind, matrix = _symmetric(call, a)
    views.require_dtype(call, "x", x, a.dtype, "like 'a'")
    arguments.same_shape(call, "x", x, (matrix.rows,), f"for 'a' of shape {a.shape}")
    vector = views.vector(call, "x", x)
    factors = scalar(call, "alpha", alpha, kind), scalar(call, "beta", beta, kind)
    if out is None:
        check_unread(call, beta)
    out = output_for(call, out, (matrix.rows,), a.dtype, (where, device), reason=f"for 'a' of shape {a.shape}")
    result = views.vector(call, "out", out)
    views.check_apart(call, "out", out.pointer, result.span, a=(a.pointer, matrix.span), x=(x.pointer, vector.span))
    if not out.size:
        return out
    operands = (
        _fill(lower=lower), matrix.rows, factors[0].address, a.pointer, matrix.leading, x.pointer, vector.step,
        factors[1].address, out.pointer, result.step,
    )  # fmt: skip  # grouped by meaning
    with activated(device):
        handle = call_cublas(where, device, f"{kind.letter}symv", *operands, layouts=(matrix, vector, result))
    keep(where, call, a, x, out, handle.workspace)
    return out


def symm(
    a: DeviceArray,
    b: DeviceArray,
    out: DeviceArray | None = None,
    *,
    side: str = "left",
    lower: bool = True,
    alpha: Scalar = 1.0,
    beta: Scalar = 0.0,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue out = alpha a b + beta out for a symmetric `a`, and return `out` (cublasSsymm and others).

    With `side="right"`, the product is b a. Only one triangle of `a` is read, as in `symv`. The rows of all matrices
    are contiguous, and may be padded. Dtypes and errors are those of `ger`.
    """
    call = "symm"
    where, device = views.device_of(call, stream)
    lower, side = arguments.flag(call, "lower", lower), arguments.choice(call, "side", side, ("left", "right"))
    views.check_place(call, device, a=a, b=b)
    kind, matrix = _symmetric(call, a)
    views.require_dtype(call, "b", b, a.dtype, "like 'a'")
    other = views.matrix(call, "b", b)
    if (other.rows if side == "left" else other.columns) != matrix.rows:
        lines = "rows" if side == "left" else "columns"
        raise arguments.unusable(call, "b", f"have {matrix.rows} {lines} for 'a' of shape {a.shape}", b.shape)
    factors = scalar(call, "alpha", alpha, kind), scalar(call, "beta", beta, kind)
    if out is None:
        check_unread(call, beta)
    out = output_for(call, out, b.shape, a.dtype, (where, device), reason=f"for 'b' of shape {b.shape}")
    result = views.matrix(call, "out", out)
    views.check_apart(call, "out", out.pointer, result.span, a=(a.pointer, matrix.span), b=(b.pointer, other.span))
    if not out.size:
        return out
    sides = library("cublas").SideMode
    # cuBLAS is column-major: out^T = b^T a^T, so the symmetric matrix changes sides.
    exchanged = int(sides.RIGHT if side == "left" else sides.LEFT)
    operands = (
        exchanged, _fill(lower=lower), other.columns, other.rows, factors[0].address, a.pointer, matrix.leading,
        b.pointer, other.leading, factors[1].address, out.pointer, result.leading,
    )  # fmt: skip  # grouped by meaning
    with activated(device):
        handle = call_cublas(where, device, f"{kind.letter}symm", *operands, layouts=(matrix, other, result))
    keep(where, call, a, b, out, handle.workspace)
    return out


def syrk(
    a: DeviceArray,
    out: DeviceArray | None = None,
    *,
    lower: bool = True,
    op: str = "N",
    alpha: Scalar = 1.0,
    beta: Scalar = 0.0,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue the lower triangle of out = alpha op(a) op(a)^T + beta out, and return `out` (cublasSsyrk and others).

    Without `lower`, the upper triangle is computed. The other triangle of `out` is not changed; in a new array it is
    zero. `op` is "N", or "T" for a^T a. Takes half as many operations as `gemm`. The rows of both matrices are
    contiguous. Dtypes and errors are those of `ger`.
    """
    call = "syrk"
    where, device = views.device_of(call, stream)
    lower, op = arguments.flag(call, "lower", lower), arguments.choice(call, "op", op, ("N", "T"))
    views.check_place(call, device, a=a)
    kind = views.kind(call, "a", a, BLAS_TYPES)
    matrix = views.matrix(call, "a", a)
    n, k = (matrix.rows, matrix.columns) if op == "N" else (matrix.columns, matrix.rows)
    factors = scalar(call, "alpha", alpha, kind), scalar(call, "beta", beta, kind)
    if out is None:
        check_unread(call, beta)
        with activated(device):
            out = zeros((n, n), a.dtype, stream=where)
    out = output_for(call, out, (n, n), a.dtype, (where, device), reason=f"for 'a' of shape {a.shape}")
    result = views.matrix(call, "out", out)
    views.check_apart(call, "out", out.pointer, result.span, a=(a.pointer, matrix.span))
    if not out.size:
        return out
    operations = library("cublas").Operation
    # cuBLAS is column-major, so it sees the transpose of `a`.
    operation = int(operations.T if op == "N" else operations.N)
    operands = (
        _fill(lower=lower), operation, n, k, factors[0].address, a.pointer, matrix.leading, factors[1].address,
        out.pointer, result.leading,
    )  # fmt: skip  # grouped by meaning
    with activated(device):
        handle = call_cublas(where, device, f"{kind.letter}syrk", *operands, layouts=(matrix, result))
    keep(where, call, a, out, handle.workspace)
    return out


def _symmetric(call: str, a: DeviceArray) -> tuple[Kind, views.Matrix]:
    kind, matrix = views.kind(call, "a", a, BLAS_TYPES), views.matrix(call, "a", a)
    if matrix.rows != matrix.columns:
        raise arguments.unusable(call, "a", "be square", f"of shape {a.shape}")
    return kind, matrix


def _fill(*, lower: bool) -> int:
    """Return the cublasFillMode_t of a triangle of row-major matrices, which cuBLAS sees transposed."""
    fills = library("cublas").FillMode
    return int(fills.UPPER if lower else fills.LOWER)

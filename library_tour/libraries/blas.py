"""Products of matrices: cuBLAS on DeviceArrays, of every precision that it has."""

from __future__ import annotations

import cmath
import contextlib
import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py.arguments import describe
from cudart_py.capture import captures
from cudart_py.device import activated, is_current

from . import views
from .bindings import binding, failure
from .dtypes import Kind
from .handles import LibraryHandle, keep, library_handle, thread_cache

__all__ = ["Factor", "check_number", "compute_type", "gemm", "operation", "scalar"]

Scalar = float | complex

TYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
# cublasGemmAlgo_t's own default, and what still fits into the 32-bit functions.
DEFAULT_ALGORITHM, INT_MAX = -1, 2**31 - 1
# A program has some dozens of shapes; one that makes up new ones for ever must not fill memory.
MOST_PLANS, MOST_GRAPHS, MOST_COUNTED, MOST_FACTORS = 1024, 256, 4096, 256
# A product that was queued so often, with the same operands in the same stream, is recorded as a graph: launching that
# costs the host a fraction of the library's call, and recording it as much as a few of them.
REPEATS = 4


class Factor(NamedTuple):
    """A number in the host's memory, and its address there."""

    memory: NDArray[Any]
    address: int


class _Plan(NamedTuple):
    """The arguments of a call but for the pointers, and all that has been checked once."""

    number: int
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


_numbers = itertools.count()


def gemm(
    a: cuda.DeviceArray,
    b: cuda.DeviceArray,
    out: cuda.DeviceArray | None = None,
    *,
    alpha: Scalar = 1.0,
    beta: Scalar = 0.0,
    op_a: str = "N",
    op_b: str = "N",
    compute: str | None = None,
    stream: cuda.Stream | None = None,
) -> cuda.DeviceArray:
    """Queue out = alpha op(a) op(b) + beta out and return `out`, a new array unless given (cublasGemmEx).

    Matrices have rows of adjacent elements, which may begin further apart than they are long (a window of a
    larger matrix). With three dimensions the first counts a batch; a matrix of two dimensions beside it is used
    for all (cublasGemmStridedBatchedEx). `op_a` and `op_b` are "N", "T" (transposed) or "C" (conjugate
    transposed). All have one dtype: float16, bfloat16 (`dtypes.bfloat16`), float32, float64, complex64 or
    complex128; halves are multiplied and added up in single precision and may go to a float32 `out`.
    `compute="tf32"` rounds inputs of single precision to TF32, for tensor cores.

    Products that come again, with the same operands in the same stream, are launched as a graph, which costs the host
    less; an access policy of the stream does not reach into it. Captured products work in a workspace of their stream,
    where their graph is to be launched: see `docs/libraries.md`.

    Raises TypeError and ValueError naming the operand; nothing is queued then.
    """
    where = cuda.legacy_default if stream is None else stream
    if out is None:
        out = _make_out(a, b, beta, op_a, op_b, stream)
    try:
        key = (
            a.shape, a.strides, a.dtype, b.shape, b.strides, b.dtype, out.shape, out.strides, out.dtype,
            alpha, beta, op_a, op_b, compute, alpha.__class__, beta.__class__,  # True equals 1.0, and is no number
        )  # fmt: skip  # grouped by meaning
        plan: _Plan | None = thread_cache("gemm").get(key)
        where._queue  # noqa: B018  # which nothing but a stream has
        device = where.device
        if plan is None or not (a.device is device and b.device is device and out.device is device):
            views.check_place(device, a=a, b=b, out=out)
            plan = plan or _remember(key, _make_plan(a, b, out, alpha, beta, op_a, op_b, compute))
        address_a, address_b, address = a.pointer, b.pointer, out.pointer
    except (AttributeError, TypeError, ValueError):
        where, device = views.device_of(stream)
        views.check_place(device, a=a, b=b, out=out)
        _check_options(alpha, beta, op_a, op_b, compute)
        raise
    if captures:
        _queue_checked(plan, where, device, a, b, out)
        keep(where, "gemm", a, b, out)
        return out
    call = where._value, plan.number, address_a, address_b, address, device.ordinal
    graph: cuda.ExecutableGraph | None = thread_cache("gemm graphs").get(call)
    if graph is not None:
        graph.launch(where)
    else:
        _queue_checked(plan, where, device, a, b, out)
        if plan.size:
            _count(call, plan, where, device)
    return out


def _queue_checked(
    plan: _Plan,
    where: cuda.Stream,
    device: cuda.Device,
    a: cuda.DeviceArray,
    b: cuda.DeviceArray,
    out: cuda.DeviceArray,
) -> None:
    """Queue a product, unless its result would overwrite what is read for it."""
    span_a, span_b, span = plan.spans
    views.check_apart("out", out, span, a=(a, span_a), b=(b, span_b))
    if not plan.size:
        return
    if is_current(device):
        _queue(plan, where, device, a.pointer, b.pointer, out.pointer)
    else:
        with activated(device):
            _queue(plan, where, device, a.pointer, b.pointer, out.pointer)


def _count(call: tuple[int, ...], plan: _Plan, where: cuda.Stream, device: cuda.Device) -> None:
    """Count a call, and record it for its later ones when it has come often enough.

    What cannot be recorded is counted on, and tried again when all counts begin anew.
    """
    counts, graphs = thread_cache("gemm counts"), thread_cache("gemm graphs")
    counts[call] = count = counts.get(call, 0) + 1
    if count == REPEATS:
        _, _, a, b, out, _ = call
        # This product is queued already: that there is no graph for later ones is no failure.
        with contextlib.suppress(cuda.CudaError), activated(device):
            handle = library_handle("cublas", where, device)
            if handle.record(where, graphs, call, lambda: _call(plan, handle, a, b, out)):
                del counts[call]
        if len(graphs) > MOST_GRAPHS:
            graphs.pop(next(iter(graphs)), None)
    elif len(counts) >= MOST_COUNTED:
        counts.clear()


def _queue(plan: _Plan, stream: cuda.Stream, device: cuda.Device, a: int, b: int, out: int) -> None:
    handle = library_handle("cublas", stream, device)
    _call(plan, handle, a, b, out)
    if captures:
        keep(stream, "cuBLAS", handle.workspace)


def _call(plan: _Plan, handle: LibraryHandle, a: int, b: int, out: int) -> None:
    # To cuBLAS, whose matrices have adjacent columns, every matrix here is its own transpose; it computes
    # out^T = op(b)^T op(a)^T.
    functions = handle.functions
    op_a, op_b = plan.operations
    alpha, beta = plan.scalars
    type_a, leading_a = plan.a
    type_b, leading_b = plan.b
    type_out, leading_out = plan.out
    try:
        if plan.batch == 1:
            call = functions.gemm_ex_64 if plan.wide else functions.gemm_ex
            call(
                handle.native, op_b, op_a, plan.n, plan.m, plan.k, alpha, b, type_b, leading_b, a, type_a, leading_a,
                beta, out, type_out, leading_out, plan.compute, DEFAULT_ALGORITHM,
            )  # fmt: skip  # grouped by meaning
            return
        stride_a, stride_b, stride_out = plan.strides
        call = functions.gemm_strided_batched_ex_64 if plan.wide else functions.gemm_strided_batched_ex
        call(
            handle.native, op_b, op_a, plan.n, plan.m, plan.k, alpha, b, type_b, leading_b, stride_b, a, type_a,
            leading_a, stride_a, beta, out, type_out, leading_out, stride_out, plan.batch, plan.compute,
            DEFAULT_ALGORITHM,
        )  # fmt: skip  # grouped by meaning
    except Exception as error:
        raise failure("cublasGemmEx" if plan.batch == 1 else "cublasGemmStridedBatchedEx", error) from error


def operation(name: str, op: str) -> int:
    """Return cublasOperation_t of "N", "T" or "C"; ValueError for another."""
    if not isinstance(op, str) or op not in ("N", "T", "C"):
        raise ValueError(f"{name} is one of 'N', 'T', 'C', not {describe(op)}")
    return int(binding("cublas").Operation[op])


_factors: dict[tuple[Any, ...], Factor] = {}


def scalar(name: str, value: Any, kind: Kind) -> Factor:
    """Return a number where and as a library reads it; TypeError where it cannot be one.

    The caller keeps what is returned until the library has read it.
    """
    check_number(name, value)
    if isinstance(value, complex | np.complexfloating) and not kind.is_complex:
        raise TypeError(f"{name} is complex, and the matrices are {kind.name}")
    key = value, kind.scalar
    found = _factors.get(key)
    if found is None:
        if len(_factors) >= MOST_FACTORS:
            _factors.clear()
        memory = _rounded(name, value, kind.scalar)
        found = _factors[key] = Factor(memory, memory.ctypes.data)
    return found


def check_number(name: str, value: Any) -> None:
    """Raise TypeError for what is no number; a bool is none."""
    if not isinstance(value, int | float | complex | np.number) or isinstance(value, bool):
        raise TypeError(f"{name} is a number, not {type(value).__name__}")


def _rounded(name: str, value: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    try:
        with np.errstate(over="ignore"):
            memory = np.array([value], dtype)
        is_lost = bool(np.isinf(memory[0])) and not cmath.isinf(complex(value))
    except OverflowError:  # an int that no float holds
        is_lost = True
    if is_lost:
        raise ValueError(f"{name} is beyond the largest number of {dtype}")
    return memory


def _check_options(alpha: Any, beta: Any, op_a: Any, op_b: Any, compute: Any) -> None:
    """Raise TypeError or ValueError, naming it, for an argument that is nothing of its kind."""
    check_number("alpha", alpha)
    check_number("beta", beta)
    operation("op_a", op_a)
    operation("op_b", op_b)
    if compute is not None and not isinstance(compute, str):
        raise TypeError(f"compute is a str or None, not {type(compute).__name__}")


def check_unread(beta: Any) -> None:
    """Check the factor of an output that is not given, of which nothing can be read."""
    check_number("beta", beta)
    if beta != 0:
        raise ValueError(f"beta is {describe(beta)} and adds to out, which is not given")


def compute_type(kind: Kind, compute: str | None) -> int:
    """Return cublasComputeType_t for matrices of a kind; ValueError for a `compute` that they do not have."""
    if compute is not None and not isinstance(compute, str):
        raise TypeError(f"compute is a str or None, not {type(compute).__name__}")
    types = binding("cublas").ComputeType
    if compute is None:
        return int(types.COMPUTE_64F if kind.real == np.float64 else types.COMPUTE_32F)
    if compute == "tf32" and kind.name in ("float32", "complex64"):
        return int(types.COMPUTE_32F_FAST_TF32)
    raise ValueError(f"compute={compute!r} is not None, or 'tf32' for single precision; the matrices are {kind.name}")


def _turned(matrix: views.Matrix, op: str) -> tuple[int, int]:
    return (matrix.rows, matrix.columns) if op == "N" else (matrix.columns, matrix.rows)


def _make_out(a: Any, b: Any, beta: Scalar, op_a: str, op_b: str, stream: cuda.Stream | None) -> cuda.DeviceArray:
    where, device = views.device_of(stream)
    views.check_place(device, a=a, b=b)
    check_unread(beta)
    operation("op_a", op_a)
    operation("op_b", op_b)
    view_a, view_b = views.matrix("a", a, batched=True), views.matrix("b", b, batched=True)
    shape: tuple[int, ...] = (_turned(view_a, op_a)[0], _turned(view_b, op_b)[1])
    if a.ndim == 3 or b.ndim == 3:
        shape = (a.shape[0] if a.ndim == 3 else b.shape[0], *shape)
    with activated(device):
        return cuda.empty(shape, a.dtype, stream=where)


def _remember(key: tuple[Any, ...], plan: _Plan) -> _Plan:
    plans = thread_cache("gemm")
    if len(plans) >= MOST_PLANS:
        for name in ("gemm", "gemm counts", "gemm graphs"):
            thread_cache(name).clear()
    plans[key] = plan
    return plan


def _make_plan(
    a: cuda.DeviceArray,
    b: cuda.DeviceArray,
    out: cuda.DeviceArray,
    alpha: Scalar,
    beta: Scalar,
    op_a: str,
    op_b: str,
    compute: str | None,
) -> _Plan:
    kind = views.kind("a", a, TYPES)
    views.require_dtype("b", b, a.dtype, "a")
    mixed = kind.name in ("float16", "bfloat16") and out.dtype == np.float32
    if not mixed:
        views.require_dtype("out", out, a.dtype, "a")
    kind_out = views.kind("out", out, TYPES)
    operations = operation("op_a", op_a), operation("op_b", op_b)
    view_a = views.matrix("a", a, batched=True)
    view_b = views.matrix("b", b, batched=True)
    view = views.matrix("out", out, batched=True)
    (m, k), (k_b, n) = _turned(view_a, op_a), _turned(view_b, op_b)
    if k != k_b:
        raise ValueError(f"b has {k_b} rows with op_b={op_b!r}, and a {k} columns with op_a={op_a!r}: they must agree")
    shape: tuple[int, ...] = (m, n)
    if a.ndim == 3 or b.ndim == 3:
        batch = a.shape[0] if a.ndim == 3 else b.shape[0]
        if a.ndim == b.ndim == 3 and b.shape[0] != batch:
            raise ValueError(f"b has {b.shape[0]} matrices, and a {batch}: they must agree")
        shape = (batch, m, n)
    views.require_shape("out", out, shape, "the product of a and b")
    if view.batch > 1 and view.stride < (m - 1) * view.leading + n:
        raise ValueError(f"out has matrices that begin {view.stride} elements apart: they overlap")
    held = scalar("alpha", alpha, kind), scalar("beta", beta, kind)
    strides = view_a.stride, view_b.stride, view.stride
    return _Plan(
        number=next(_numbers),
        size=out.size,
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
        compute=compute_type(kind, compute),
        spans=(view_a.span, view_b.span, view.span),
        wide=max(m, n, k, view_a.leading, view_b.leading, view.leading) > INT_MAX,
        held=held,
    )

"""Linear systems and factorizations of batches of matrices, with the batched functions of cuSOLVER and cuBLAS."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...base.pointer import Pointer
from ...context.current import activated
from ...context.device import Device
from ...driver.calls import library
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..blas.cublas_calls import call_cublas
from ..blas.scalars import factor
from ..device_code import kernel_of
from ..dtypes import Kind
from ..failures import NotPositiveDefiniteError, SingularMatrixError
from .batches import addresses_of, check_batch
from .layout import ELEMENTS, THREADS, transposed_batch
from .right_hand_sides import check_right_hand_sides, columns_of_batch, rows_of_batch
from .work import Work

SMALL_SYSTEMS = Path(__file__).parent / "device_code" / "small_systems.cu"
WARP = 32
FACTORING_WARPS = 4  # of each block of factor_small


def cholesky_batch(call: str, a: DeviceArray, kind: Kind, stream: Stream, device: Device) -> DeviceArray:
    """Return the lower triangular factors of a batch of positive definite matrices (cusolverDnSpotrfBatched)."""
    check_batch(call, "a", a, square=True)
    with activated(device):
        if a.shape[1] <= WARP and not kind.is_complex:
            result, work = _factor_small(a, stream, device)
        else:
            factors, work = _factor_positive(a, kind, stream, device)
            result = transposed_batch(factors, stream, part="lower")
        _check_minors(call, work, kind)
        return result


def _factor_small(a: DeviceArray, stream: Stream, device: Device) -> tuple[DeviceArray, Work]:
    """Queue L of each small real matrix, in row-major order, by a kernel of this package.

    The kernel reads and writes each matrix once. potrfBatched needs a transpose before it and another after it.
    """
    view = views.matrix("cholesky", "a", a, batched=True)
    result, work = empty(a.shape, a.dtype, stream=stream), Work(stream, device, view.batch)
    if result.size:
        kernel = kernel_of(SMALL_SYSTEMS, f"factor_small<{ELEMENTS[a.dtype.str[1:]]}>", device)
        kernel[-(-view.batch // FACTORING_WARPS), FACTORING_WARPS * WARP, 0, stream](
            Pointer(a.pointer, a), view.leading, view.stride, result, view.rows, work.info, view.batch
        )
    return result, work


def _factor_positive(a: DeviceArray, kind: Kind, stream: Stream, device: Device) -> tuple[DeviceArray, Work]:
    """Queue L of each matrix in column-major order, with unrelated numbers above its diagonal.

    cuSOLVER is faster with lower triangles, so the matrices are transposed while they are copied. Later work is queued
    before `_check_minors` waits for the statuses, so that the device does not idle meanwhile.
    """
    count, n = a.shape[:2]
    factors, work = transposed_batch(a, stream), Work(stream, device, count)
    if count:
        fill = int(library("cublas").FillMode.LOWER)
        addresses = addresses_of(factors, stream)
        work.call(f"{kind.letter}potrf_batched", fill, n, addresses.pointer, n, work.info.pointer, count)
    return factors, work


def _check_minors(call: str, work: Work, kind: Kind) -> None:
    """Wait, and raise NotPositiveDefiniteError for the first matrix that is not positive definite."""
    failure = _first_failure(work.statuses(f"{kind.letter}potrf_batched"))
    if failure is not None:
        index, minor = failure
        fact = f"its leading minor of order {minor} is not positive"
        raise NotPositiveDefiniteError(
            f"{call}: matrix {index} of 'a' is not positive definite: {fact}", minor=minor, call=call
        )


def _first_failure(statuses: NDArray[np.int32]) -> tuple[int, int] | None:
    """Return the index and the status of the first matrix of a batch whose status is not 0, or None."""
    failed = np.flatnonzero(statuses)
    return (int(failed[0]), int(statuses[failed[0]])) if failed.size else None


def factor_batch(
    factors: DeviceArray, kind: Kind, stream: Stream, device: Device
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """Queue the LU factors of a batch of column-major matrices, in place (cublasSgetrfBatched).

    Returns the addresses of the matrices, the pivots, counted from 1, and the statuses for `check_pivots`.
    """
    count, n = factors.shape[:2]
    addresses, pivots = addresses_of(factors, stream), empty((count, n), np.int32, stream=stream)
    info = empty(count, np.int32, stream=stream)
    if count:
        operands = n, addresses.pointer, n, pivots.pointer, info.pointer, count
        call_cublas(stream, device, f"{kind.letter}getrf_batched", *operands)
    return addresses, pivots, info


def check_pivots(call: str, info: DeviceArray, stream: Stream) -> None:
    """Wait, and raise SingularMatrixError for the first matrix with a zero pivot."""
    failure = _first_failure(info.to_host(stream=stream))
    if failure is not None:
        index, pivot = failure[0], failure[1] - 1
        raise SingularMatrixError(
            f"{call}: matrix {index} of 'a' is singular: pivot {pivot} of its elimination is zero",
            pivot=pivot,
            call=call,
        )


def solve_batch(
    call: str, a: DeviceArray, b: DeviceArray, kind: Kind, stream: Stream, device: Device, *, positive: bool
) -> DeviceArray:
    """Return the solutions of a batch of systems, by LU (cublasSgetrfBatched, getrsBatched) or Cholesky."""
    check_batch(call, "a", a, square=True)
    check_right_hand_sides(call, b, a)
    if not b.size:
        return empty(b.shape, b.dtype, stream=stream)
    with activated(device):
        # The largest copy is queued first, so that the host prepares the other operands while the device works.
        if positive:
            factors, work = _factor_positive(a, kind, stream, device)
            x = columns_of_batch(b, stream)
            _solve_cholesky(factors, x, kind, stream, device)
            result = rows_of_batch(x, b, stream)
            _check_minors(call, work, kind)
            return result
        # The pass that copies the matrices also transposes them into LAPACK's column-major order.
        factors = transposed_batch(a, stream)
        addresses, pivots, info = factor_batch(factors, kind, stream, device)
        x = columns_of_batch(b, stream)
        if factors.shape[1] <= WARP and x.shape[1] == 1 and not kind.is_complex:
            _solve_small(stream, device, factors, pivots, x)
        else:
            solve_factored(stream, device, kind, int(library("cublas").Operation.N), addresses, pivots, x)
        result = rows_of_batch(x, b, stream)
        check_pivots(call, info, stream)
        return result


def _solve_cholesky(factors: DeviceArray, x: DeviceArray, kind: Kind, stream: Stream, device: Device) -> None:
    """Solve the systems x in place with the factors L of their matrices (cublasStrsmBatched).

    cuSOLVER's potrsBatched takes only one right-hand side.
    """
    enums, one = library("cublas"), factor(1.0, kind)
    addresses, x_addresses = addresses_of(factors, stream), addresses_of(x, stream)
    count, systems, n = x.shape
    for op in (enums.Operation.N, enums.Operation.C):
        modes = map(int, (enums.SideMode.LEFT, enums.FillMode.LOWER, op, enums.DiagType.NON_UNIT))
        sizes = n, systems, one.address, addresses.pointer, n, x_addresses.pointer, n, count
        call_cublas(stream, device, f"{kind.letter}trsm_batched", *modes, *sizes)


def _solve_small(stream: Stream, device: Device, factors: DeviceArray, pivots: DeviceArray, x: DeviceArray) -> None:
    """Solve small real systems x in place, with one right-hand side each, by a kernel of this package.

    For 10,000 systems of 32 unknowns, getrsBatched took as long on an H200 as the factorization.
    """
    count, _, n = x.shape
    kernel = kernel_of(SMALL_SYSTEMS, f"solve_small<{ELEMENTS[x.dtype.str[1:]]}>", device)
    kernel[-(-count * WARP // THREADS), THREADS, 0, stream](factors, pivots, x, n, count)


def solve_factored(
    stream: Stream, device: Device, kind: Kind, op: int, addresses: DeviceArray, pivots: DeviceArray, x: DeviceArray
) -> None:
    """Solve the systems x in place with the LU factors at `addresses` (cublasSgetrsBatched).

    `x` has the shape (matrices, systems, rows), and `op` is a cublasOperation_t.
    """
    count, systems, n = x.shape
    x_addresses = addresses_of(x, stream)
    status = np.zeros(1, np.int32)  # of the arguments, in host memory
    call_cublas(
        stream, device, f"{kind.letter}getrs_batched", op, n, systems, addresses.pointer, n, pivots.pointer,
        x_addresses.pointer, n, status.ctypes.data, count,
    )  # fmt: skip  # grouped by meaning

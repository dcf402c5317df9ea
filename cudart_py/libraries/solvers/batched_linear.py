"""Linear systems and factorizations of batches of matrices, with the batched functions of cuSOLVER and cuBLAS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import arguments
from ...context.current import activated
from ...context.device import Device
from ...driver.calls import library
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..blas.scalars import factor
from ..dtypes import Kind
from ..failures import NotPositiveDefiniteError, SingularMatrixError, failure
from ..handles import library_handle
from .batches import addresses_of, check_batch, transposed_batch
from .work import Work


def run_batched(symbol: str, stream: Stream, device: Device, kind: Kind, name: str, *operands: Any) -> None:
    """Call a batched function of cuBLAS, "getrfBatched" for cublasSgetrfBatched and related functions."""
    handle = library_handle("cublas", stream, device)
    try:
        getattr(handle.functions, f"{kind.letter}{name}")(handle.native, *operands)
    except Exception as error:
        raise failure(f"cublas{kind.letter.upper()}{symbol}", error) from error


def cholesky_batch(call: str, a: DeviceArray, kind: Kind, stream: Stream, device: Device) -> DeviceArray:
    """Return the lower triangular factors of a batch of positive definite matrices (cusolverDnSpotrfBatched)."""
    check_batch(call, "a", a, square=True)
    with activated(device):
        factors, work = _factor_positive(a, kind, stream, device)
        result = transposed_batch(factors, stream, part="lower")
        _check_minors(call, work, kind)
        return result


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
    minors = work.verdicts(f"{kind.letter}potrf_batched")
    place = _first(minors)
    if place is not None:
        minor = int(minors[place])
        fact = f"its leading minor of order {minor} is not positive"
        raise NotPositiveDefiniteError(
            f"{call}: matrix {place} of 'a' is not positive definite: {fact}", minor=minor, call=call
        )


def _first(statuses: NDArray[np.int32]) -> int | None:
    """Return the first matrix of a batch with a status other than 0, or None if there is none."""
    places = np.flatnonzero(statuses)
    return int(places[0]) if places.size else None


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
        run_batched("getrfBatched", stream, device, kind, "getrf_batched", *operands)
    return addresses, pivots, info


def check_pivots(call: str, info: DeviceArray, stream: Stream) -> None:
    """Wait, and raise SingularMatrixError for the first matrix with a zero pivot."""
    zeros = info.to_host(stream=stream)
    place = _first(zeros)
    if place is not None:
        pivot = int(zeros[place]) - 1
        raise SingularMatrixError(
            f"{call}: matrix {place} of 'a' is singular: pivot {pivot} of its elimination is zero",
            pivot=pivot,
            call=call,
        )


def check_right_hand_sides(call: str, b: DeviceArray, a: DeviceArray) -> None:
    """Check the right-hand sides for a batch: one vector per matrix, or one matrix with a column per system."""
    views.require_dtype(call, "b", b, a.dtype, "like 'a'")
    count, rows = a.shape[:2]
    if b.ndim not in (2, 3) or b.shape[:2] != (count, rows):
        rule = f"have shape {(count, rows)} or ({count}, {rows}, n) for 'a' of shape {a.shape}"
        raise arguments.unusable(call, "b", rule, b.shape)
    views.matrix(call, "b", b, batched=True)


def columns_of_batch(b: DeviceArray, stream: Stream) -> DeviceArray:
    """Return a copy of right-hand sides with the shape (matrices, systems, rows), which is column-major."""
    if b.ndim == 3:
        return transposed_batch(b, stream)
    copy = b.copy(stream=stream)
    return copy.reshape(copy.shape[0], 1, copy.shape[1])


def rows_of_batch(x: DeviceArray, b: DeviceArray, stream: Stream) -> DeviceArray:
    """Return column-major solutions in the layout of the right-hand sides `b`."""
    return transposed_batch(x, stream) if b.ndim == 3 else x.reshape(x.shape[0], x.shape[2])


def solve_batch(
    call: str, a: DeviceArray, b: DeviceArray, kind: Kind, stream: Stream, device: Device, *, positive: bool
) -> DeviceArray:
    """Return the solutions of a batch of systems, by LU (cublasSgetrfBatched, getrsBatched) or Cholesky."""
    n = check_batch(call, "a", a, square=True).rows
    check_right_hand_sides(call, b, a)
    if not b.size:
        return empty(b.shape, b.dtype, stream=stream)
    count = a.shape[0]
    enums = library("cublas")
    with activated(device):
        x = columns_of_batch(b, stream)
        systems, places = x.shape[1], addresses_of(x, stream)
        if positive:
            factors, work = _factor_positive(a, kind, stream, device)
            addresses, one = addresses_of(factors, stream), factor(1.0, kind)
            # cuSOLVER's potrsBatched takes only one right-hand side.
            for turn in (enums.Operation.N, enums.Operation.C):
                modes = map(int, (enums.SideMode.LEFT, enums.FillMode.LOWER, turn, enums.DiagType.NON_UNIT))
                sizes = n, systems, one.address, addresses.pointer, n, places.pointer, n, count
                run_batched("trsmBatched", stream, device, kind, "trsm_batched", *modes, *sizes)
            result = rows_of_batch(x, b, stream)
            _check_minors(call, work, kind)
        else:
            # Our rows are LAPACK's columns, so it factors the transpose of each matrix.
            factors = a.copy(stream=stream)
            addresses, pivots, info = factor_batch(factors, kind, stream, device)
            solve_factored(stream, device, kind, enums.Operation.T, (n, systems), addresses, pivots, places)
            result = rows_of_batch(x, b, stream)
            check_pivots(call, info, stream)
        return result


def solve_factored(
    stream: Stream,
    device: Device,
    kind: Kind,
    turn: int,
    sizes: tuple[int, int],
    addresses: DeviceArray,
    pivots: DeviceArray,
    places: DeviceArray,
) -> None:
    """Solve the systems at `places` in place with the LU factors at `addresses` (cublasSgetrsBatched)."""
    n, systems = sizes
    status = np.zeros(1, np.int32)  # of the arguments, in host memory
    run_batched(
        "getrsBatched", stream, device, kind, "getrs_batched", int(turn), n, systems, addresses.pointer, n,
        pivots.pointer, places.pointer, n, status.ctypes.data, addresses.shape[0],
    )  # fmt: skip  # grouped by meaning


def one_by_one(
    batch: DeviceArray, function: Callable[[DeviceArray], tuple[DeviceArray, ...]], stream: Stream
) -> tuple[DeviceArray, ...]:
    """Apply a function to each matrix of a batch, and return its results as batches."""
    results: tuple[DeviceArray, ...] = ()
    for place in range(batch.shape[0]):
        found = function(batch[place])
        if not results:
            results = tuple(empty((batch.shape[0], *each.shape), each.dtype, stream=stream) for each in found)
        for result, each in zip(results, found, strict=True):
            result[place].copy_from(each, stream=stream)
    return results

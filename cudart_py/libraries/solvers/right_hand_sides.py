"""Right-hand sides of systems: their checks, and their conversions to and from LAPACK's column-major order."""

from __future__ import annotations

from ...base import arguments
from ...memory.array import DeviceArray
from ...streams.stream import Stream
from .. import views
from ..dtypes import Kind
from .layout import copied, transposed, transposed_batch


def check_right_hand_side(call: str, b: DeviceArray, a: DeviceArray) -> None:
    """Check the right-hand sides for a matrix: a vector, or a matrix with one column per system."""
    views.require_dtype(call, "b", b, a.dtype, "like 'a'")
    if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        rule = f"have shape ({a.shape[0]},) or ({a.shape[0]}, n) for 'a' of shape {a.shape}"
        raise arguments.unusable(call, "b", rule, b.shape)
    if b.ndim == 2:
        views.matrix(call, "b", b)
    else:
        arguments.contiguous(call, "b", b)


def check_right_hand_sides(call: str, b: DeviceArray, a: DeviceArray) -> None:
    """Check the right-hand sides for a batch: one vector per matrix, or one matrix with a column per system."""
    views.require_dtype(call, "b", b, a.dtype, "like 'a'")
    count, rows = a.shape[:2]
    if b.ndim not in (2, 3) or b.shape[:2] != (count, rows):
        rule = f"have shape {(count, rows)} or ({count}, {rows}, n) for 'a' of shape {a.shape}"
        raise arguments.unusable(call, "b", rule, b.shape)
    views.matrix(call, "b", b, batched=True)


def columns_of(b: DeviceArray, kind: Kind, stream: Stream) -> tuple[DeviceArray, int]:
    """Return a column-major copy of right-hand sides, and their number."""
    return (copied(b, stream), 1) if b.ndim == 1 else (transposed(b, kind, stream), b.shape[1])


def rows_of(x: DeviceArray, like: DeviceArray, kind: Kind, stream: Stream) -> DeviceArray:
    """Return column-major solutions in the row-major layout of the right-hand sides `like`."""
    return x if like.ndim == 1 else transposed(x, kind, stream)


def columns_of_batch(b: DeviceArray, stream: Stream) -> DeviceArray:
    """Return a column-major copy of the right-hand sides of a batch, with the shape (matrices, systems, rows)."""
    if b.ndim == 3 and b.shape[2] > 1:
        return transposed_batch(b, stream)
    return b.copy(stream=stream).reshape(b.shape[0], 1, b.shape[1])


def rows_of_batch(x: DeviceArray, like: DeviceArray, stream: Stream) -> DeviceArray:
    """Return column-major solutions of a batch in the row-major layout of the right-hand sides `like`."""
    count, systems, rows = x.shape
    return transposed_batch(x, stream) if systems > 1 else x.reshape((count, rows, 1)[: like.ndim])

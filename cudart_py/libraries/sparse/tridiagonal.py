"""Batches of tridiagonal systems, with cuSPARSE."""

from __future__ import annotations

from ...base import arguments
from ...context.current import activated
from ...copies import memcpy
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..failures import failure
from ..handles import keep, library_handle, scratch

# The library's minimum number of unknowns.
LEAST = 3


def solve_tridiagonal(
    lower: DeviceArray,
    middle: DeviceArray,
    upper: DeviceArray,
    b: DeviceArray,
    out: DeviceArray | None = None,
    *,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue the solution of tridiagonal systems and return it in `out`, by default a new array.

    All arrays must be contiguous and have the shape (systems, unknowns), with at least three unknowns; `out` may be `b`
    itself. Row i of a system is lower[i] x[i - 1] + middle[i] x[i] + upper[i] x[i + 1] = b[i]. The first element of
    `lower` and the last element of `upper` are outside the matrix, and must be zero in every system. The simulator's
    checks report other values.

    Each system has its own diagonals: repeat them if all systems have the same matrix. Each system is a row of `b`,
    whereas in `solve` each right-hand side is a column.

    There is no pivoting, so a matrix without a dominant diagonal may lose accuracy, or produce infinities and NaNs
    (cusparseXgtsv2StridedBatch). Raises TypeError or ValueError, naming the operand, before anything is queued.
    """
    call = "solve_tridiagonal"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, b=b)
    kind = views.kind(call, "b", b, ("float32", "float64", "complex64", "complex128"))
    if b.ndim != 2 or b.shape[1] < LEAST:
        raise arguments.unusable(
            call, "b", f"have shape (systems, unknowns) with at least {LEAST} unknowns", f"the shape {b.shape}"
        )
    operands = {"lower": lower, "middle": middle, "upper": upper} | ({} if out is None else {"out": out})
    views.check_place(call, device, **operands)
    for name, operand in operands.items():
        views.require_dtype(call, name, operand, b.dtype, "like 'b'")
        arguments.same_shape(call, name, operand, b.shape, "like 'b'")
    for name, operand in {**operands, "b": b}.items():
        arguments.contiguous(call, name, operand)
    in_place = out is not None and out.pointer == b.pointer
    if out is not None:
        read = {"lower": lower, "middle": middle, "upper": upper} | ({} if in_place else {"b": b})
        extents = {name: (operand.pointer, operand.nbytes) for name, operand in read.items()}
        views.check_apart(call, "out", out.pointer, out.nbytes, **extents)
    systems, unknowns = b.shape
    with activated(device):
        if out is None:
            out = empty(b.shape, b.dtype, stream=where)
        if not systems:
            return out
        if not in_place:
            memcpy(out, b, stream=where)
        handle = library_handle("cusparse", where, device)
        name = f"{kind.letter}gtsv2strided_batch"
        parameters = (
            handle.native, unknowns, lower.pointer, middle.pointer, upper.pointer, out.pointer, systems, unknowns,
        )  # fmt: skip  # grouped by meaning
        try:
            memory = scratch(device).get(getattr(handle.functions, f"{name}_buffer_size_ext")(*parameters), where)
            getattr(handle.functions, name)(*parameters, memory.pointer)
        except Exception as error:
            raise failure("cusparseXgtsv2StridedBatch", error) from error
    keep(where, "solve_tridiagonal", lower, middle, upper, b, out, memory)
    return out

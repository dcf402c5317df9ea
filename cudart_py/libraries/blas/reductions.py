"""Norms and the largest element of vectors."""

from __future__ import annotations

import numpy as np

from ...base import arguments
from ...context.current import activated
from ...memory.array import DeviceArray
from ...memory.creation import zeros
from ...streams.stream import Stream
from .. import views
from ..dtypes import KINDS
from ..handles import keep, library_handle
from ..outputs import output_for
from .cublas_calls import call_cublas, results_on_device
from .vectors import BLAS_TYPES


def nrm2(x: DeviceArray, out: DeviceArray | None = None, *, stream: Stream | None = None) -> DeviceArray:
    """Queue the Euclidean norm of a vector and return it in `out`, an array with one element (cublasNrm2Ex).

    `x` has float32, float64, complex64 or complex128 elements, and may be strided. `out` has the real dtype of the same
    precision. Intermediate squares do not overflow. To copy the norm to the host, call `float(out)`. Raises TypeError
    or ValueError, naming the operand, before anything is queued.
    """
    return _reduced("nrm2", x, out, stream)


def asum(x: DeviceArray, out: DeviceArray | None = None, *, stream: Stream | None = None) -> DeviceArray:
    """Queue the sum of the absolute values of a vector and return it in `out`, an array of one element (cublasAsumEx).

    For a complex element, the absolute values of its two parts are added, as in the BLAS. Dtypes and errors are those
    of `nrm2`.
    """
    return _reduced("asum", x, out, stream)


def _reduced(call: str, x: DeviceArray, out: DeviceArray | None, stream: Stream | None) -> DeviceArray:
    where, device = views.device_of(call, stream)
    views.check_place(call, device, x=x)
    kind = views.kind(call, "x", x, BLAS_TYPES)
    source = views.vector(call, "x", x)
    like = f"for 'x' of dtype {kind.name}"
    out = output_for(call, out, (1,), kind.real, (where, device), like=like, reason="for one number")
    views.check_apart(call, "out", out.pointer, out.itemsize, x=(x.pointer, source.span))
    real = KINDS[kind.real].code
    # cuBLAS takes the type of the arithmetic as that of the result for norms, and as that of the vector for sums.
    arithmetic = real if call == "nrm2" else kind.code
    operands = source.size, x.pointer, kind.code, source.step, out.pointer, real, arithmetic
    with activated(device):
        handle = library_handle("cublas", where, device)
        with results_on_device(handle):
            call_cublas(where, device, f"{call}_ex", *operands, layouts=(source,))
    keep(where, call, x, out, handle.workspace)
    return out


def iamax(x: DeviceArray, *, stream: Stream | None = None) -> int:
    """Return the index of the element with the largest absolute value, or the first of several (cublasIamaxEx).

    For a complex element, the absolute values of its two parts are added, as in the BLAS. The host waits for the
    result. `x` has float16, float32, float64, complex64 or complex128 elements, at least one. Raises TypeError or
    ValueError, naming the operand.
    """
    call = "iamax"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, x=x)
    kind = views.kind(call, "x", x, ("float16", *BLAS_TYPES))
    source = views.vector(call, "x", x)
    if not source.size:
        raise arguments.unusable(call, "x", "have at least one element", f"the shape {x.shape}")
    with activated(device):
        # The function for long vectors writes 8 bytes.
        index = zeros(1, np.int64, stream=where)
        handle = library_handle("cublas", where, device)
        with results_on_device(handle):
            call_cublas(
                where, device, "iamax_ex", source.size, x.pointer, kind.code, source.step, index.pointer,
                layouts=(source,),
            )  # fmt: skip  # grouped by meaning
        return int(index.to_host(stream=where)[0]) - 1  # the BLAS counts from 1

"""Norms and the largest element of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import arguments
from ...context.current import activated
from ...driver.calls import library
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..dtypes import KINDS
from ..failures import failure
from ..handles import LibraryHandle, keep, library_handle
from .vectors import BLAS_TYPES


def nrm2(x: DeviceArray, out: DeviceArray | None = None, *, stream: Stream | None = None) -> DeviceArray:
    """Queue the Euclidean norm of a vector into `out`, an array with one element, and return `out` (cublasNrm2Ex).

    `x` has float32, float64, complex64 or complex128 elements, and may be strided. `out` has the real dtype of the same
    precision. Intermediate squares do not overflow. To copy the norm to the host, call `float(out)`. Raises TypeError
    or ValueError, naming the operand, before anything is queued.
    """
    return _reduced("nrm2", "nrm2_ex", "cublasNrm2Ex", x, out, stream)


def asum(x: DeviceArray, out: DeviceArray | None = None, *, stream: Stream | None = None) -> DeviceArray:
    """Queue the sum of absolute values of a vector into `out`, an array with one element (cublasAsumEx).

    Of a complex number, the absolute values of the two parts are added, as in the BLAS. Dtypes and errors are those of
    `nrm2`.
    """
    return _reduced("asum", "asum_ex", "cublasAsumEx", x, out, stream)


def _reduced(
    call: str, name: str, symbol: str, x: DeviceArray, out: DeviceArray | None, stream: Stream | None
) -> DeviceArray:
    where, device = views.device_of(call, stream)
    views.check_place(call, device, x=x)
    kind = views.kind(call, "x", x, BLAS_TYPES)
    source = views.vector(call, "x", x)
    if out is None:
        with activated(device):
            out = empty(1, kind.real, stream=where)
    views.check_place(call, device, out=out)
    views.require_dtype(call, "out", out, kind.real, f"for 'x' of dtype {kind.name}")
    arguments.same_shape(call, "out", out, (1,), "for one number")
    views.check_apart(call, "out", out.pointer, out.itemsize, x=(x.pointer, source.span))
    real = KINDS[kind.real].code
    # cuBLAS takes the type of the arithmetic as that of the result for norms, and as that of the vector for sums.
    arithmetic = real if name == "nrm2_ex" else kind.code
    with activated(device):
        handle = library_handle("cublas", where, device)
        operands = source.size, x.pointer, kind.code, source.step, out.pointer, real, arithmetic
        _on_device(handle, name, symbol, operands)
    keep(where, call, x, out, handle.workspace)
    return out


def iamax(x: DeviceArray, *, stream: Stream | None = None) -> int:
    """Return the index of the element with the largest absolute value, or the first of several (cublasIamaxEx).

    Of a complex number, the absolute values of the two parts are added, as in the BLAS. The host waits for the result.
    `x` has float16, float32, float64, complex64 or complex128 elements, at least one. Raises TypeError or ValueError,
    naming the operand.
    """
    call = "iamax"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, x=x)
    kind = views.kind(call, "x", x, ("float16", *BLAS_TYPES))
    source = views.vector(call, "x", x)
    if not source.size:
        raise arguments.unusable(call, "x", "have at least one element", f"the shape {x.shape}")
    with activated(device):
        found = empty(1, np.int32, stream=where)
        handle = library_handle("cublas", where, device)
        operands = source.size, x.pointer, kind.code, source.step, found.pointer
        _on_device(handle, "iamax_ex", "cublasIamaxEx", operands)
        return int(found.to_host(stream=where)[0]) - 1  # the BLAS counts from 1


def _on_device(handle: LibraryHandle, name: str, symbol: str, operands: tuple[Any, ...]) -> None:
    """Call a function that writes a scalar result to device memory."""
    functions, modes = handle.functions, library("cublas").PointerMode
    try:
        functions.set_pointer_mode(handle.native, int(modes.DEVICE))
        try:
            getattr(functions, name)(handle.native, *operands)
        finally:
            # The other calls read alpha and beta from the host.
            functions.set_pointer_mode(handle.native, int(modes.HOST))
    except Exception as error:
        raise failure(symbol, error) from error

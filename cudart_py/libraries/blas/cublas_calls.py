"""Calls of cuBLAS's functions by the names of their bindings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...context.device import Device
from ...driver.calls import library
from ...streams.stream import Stream
from .. import views
from ..failures import failure
from ..handles import LibraryHandle, library_handle

# The largest size and stride that the functions without the suffix _64 accept.
INT_MAX = 2**31 - 1
# The bindings of 64-bit functions that are not named like the others.
_WIDE = {"nrm2_ex": "nrm2ex_64"}


def call_cublas(
    stream: Stream, device: Device, name: str, *operands: Any, layouts: tuple[views.Matrix | views.Vector, ...] = ()
) -> LibraryHandle:
    """Queue a function of cuBLAS, such as "dgemv" or "axpy_ex", and return the handle; the device must be current.

    If one of the `layouts` has a size or a stride above 2^31 - 1, the function's 64-bit version is called.
    """
    handle = library_handle("cublas", stream, device)
    wide = any(max(layout.extents) > INT_MAX for layout in layouts)
    binding = _WIDE.get(name, f"{name}_64") if wide else name
    try:
        getattr(handle.functions, binding)(handle.native, *operands)
    except Exception as error:
        raise failure(_symbol(name), error) from error
    return handle


def _symbol(name: str) -> str:
    """Return the name of a cuBLAS function from that of its binding: "cublasDgetrfBatched" for "dgetrf_batched"."""
    return "cublas" + "".join(f"{word[0].upper()}{word[1:]}" for word in name.split("_"))


@contextmanager
def results_on_device(handle: LibraryHandle) -> Iterator[None]:
    """Let cuBLAS write scalar results to device memory in this block; other calls read alpha and beta from the host."""
    modes = library("cublas").PointerMode
    _set_pointer_mode(handle, int(modes.DEVICE))
    try:
        yield
    finally:
        _set_pointer_mode(handle, int(modes.HOST))


def _set_pointer_mode(handle: LibraryHandle, mode: int) -> None:
    try:
        handle.functions.set_pointer_mode(handle.native, mode)
    except Exception as error:
        raise failure("cublasSetPointerMode", error) from error

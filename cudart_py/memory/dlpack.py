"""DLPack: device memory as the arrays of other libraries. The capsules themselves are left to cuda.core."""

from __future__ import annotations

from typing import Any

from .. import shapes
from ..context.device import Device
from .transfers import Side

__all__ = ["DLPACK_CPU", "check_capsule", "dlpack_device", "make_capsule"]

# DLDeviceType of dlpack.h.
DLPACK_CPU = 1
_CUDA = 2


def dlpack_device(device: Device) -> tuple[int, int]:
    """Return DLPack's (device type, ordinal) of a device."""
    return _CUDA, device.ordinal


def check_capsule(array: Side, device: Device, stream: Any, dl_device: tuple[int, int] | None) -> None:
    """Raise BufferError for arrays that DLPack has no words for, another device and what is no stream."""
    if dl_device is not None and tuple(dl_device) != dlpack_device(device):
        raise BufferError(f"the array is on device {device.ordinal} and cannot be given as {dl_device}")
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int) or stream < -1):
        raise BufferError(f"stream is the handle of a stream or -1, not {stream!r}")
    if array.dtype.kind not in "biufc":
        raise BufferError(f"DLPack has no type for {array.dtype}")
    if any(step % array.dtype.itemsize for step in array.strides):
        raise BufferError(
            f"DLPack counts strides in elements, and {array.strides} bytes are no multiples of a {array.dtype}"
        )


def make_capsule(array: Side, anchor: Side, max_version: tuple[int, int] | None) -> Any:
    """Return the capsule of an array; `anchor` is what it keeps alive, and where the memory is."""
    # These take long to import, and few programs need them.
    from cuda.core import Buffer
    from cuda.core.utils import StridedMemoryView

    itemsize = array.dtype.itemsize
    nbytes = shapes.span(array.shape, array.strides, itemsize)
    buffer = Buffer.from_handle(anchor.address, max(nbytes, 1), owner=anchor.array)
    counts = tuple(step // itemsize for step in array.strides)
    view = StridedMemoryView.from_buffer(buffer, array.shape, counts, dtype=array.dtype)
    return view.__dlpack__(max_version=max_version)

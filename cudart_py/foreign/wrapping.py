"""Wrapping of other GPU libraries' arrays without copies: CUDA's array interface, version 3, and DLPack.

cuda.core reads the DLPack capsules. The protocols by which other libraries use this package's arrays are part of
`DeviceArray`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import arguments
from ..context.current import activated
from ..context.device import Device, current_device, devices
from ..memory.addresses import attributes_of
from ..memory.array import DeviceArray
from ..memory.host_memory import pinned_owner
from ..memory.protocols import DLPACK_CPU, DLPACK_REACHED
from ..streams.stream import Stream, legacy_default, per_thread_default, stream_of
from .array_interface import read_interface

_READ_ONLY = "pass read_only=True if nothing will write to the result"


def as_device_array(x: Any, *, stream: Stream | None = None, read_only: bool = False) -> DeviceArray:
    """Wrap another library's array, using `__cuda_array_interface__`, without copying it; the array is kept alive.

    Later work in `stream`, by default the legacy default stream, waits for the stream that the interface names. A
    DeviceArray is returned unchanged. Raises TypeError for objects without the interface. Raises ValueError for masked
    arrays or memory that the driver does not know. Also raises ValueError for read-only arrays, unless `read_only`
    promises that nothing will write to the result.
    """
    call = "as_device_array"
    consumer = stream_of(call, stream)
    read_only = arguments.flag(call, "read_only", read_only)
    if isinstance(x, DeviceArray):
        return arguments.opened(call, "x", x, DeviceArray)
    if not is_foreign(x):
        hint = (
            _for_host_array(x) if isinstance(x, np.ndarray) else "; use from_dlpack" if hasattr(x, "__dlpack__") else ""
        )
        raise TypeError(f"{call}: argument 'x', of type {type(x).__name__}, has no __cuda_array_interface__{hint}")
    return wrap(call, "x", x, consumer, None if read_only else _READ_ONLY)


def is_foreign(x: Any) -> bool:
    """Return whether an object is another library's array with CUDA's array interface."""
    if isinstance(x, DeviceArray | type):
        return False
    return getattr(x, "__cuda_array_interface__", None) is not None


def wrap(call: str, name: str, x: Any, stream: Stream, writes: str | None) -> DeviceArray:
    """Wrap a call's argument that has an array interface, and make `stream` wait for the interface's stream.

    `writes` is the remedy in the error for a read-only array, or None if nothing will be written to the array.
    """
    found = read_interface(call, name, x.__cuda_array_interface__)
    if found.read_only and writes is not None:
        raise ValueError(f"{call}: argument {name!r} is read-only; {writes}")
    device = _device_of(call, name, found.pointer) if found.pointer else current_device()
    array = DeviceArray.borrow(found.pointer, found.shape, found.dtype, strides=found.strides, owner=x, device=device)
    if found.stream is not None:
        _wait_for(found.stream, device, stream)
    return array


def from_dlpack(x: Any, *, stream: Stream | None = None, read_only: bool = False) -> DeviceArray:
    """Wrap another library's array, using `__dlpack__`, without copying it; the array is kept alive.

    Later work in `stream`, by default the legacy default stream, waits for the work that the other library has queued.
    Raises TypeError for objects without the protocol. Raises ValueError for memory that devices cannot access. Also
    raises ValueError for read-only arrays, unless `read_only` promises that nothing will write to the result.
    """
    from cuda.core.utils import StridedMemoryView  # it takes long to import, and few programs need it

    call = "from_dlpack"
    handle = stream_of(call, stream).handle
    read_only = arguments.flag(call, "read_only", read_only)
    if isinstance(x, type) or not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        hint = "; it needs no conversion, since it is a DeviceArray" if isinstance(x, DeviceArray) else ""
        raise TypeError(f"{call}: argument 'x', of type {type(x).__name__}, has no __dlpack__{hint}")
    told = x.__dlpack_device__()
    if not isinstance(told, tuple) or len(told) != 2:
        raise arguments.wrong_type(call, "x.__dlpack_device__()", "a pair of the device's type and its number", told)
    kind = arguments.integer(call, "x.__dlpack_device__()[0]", told[0])
    if kind == DLPACK_CPU:
        raise ValueError(f"{call}: argument 'x' is in host memory{_for_host_array(x)}")
    if kind not in DLPACK_REACHED:
        raise ValueError(
            f"{call}: kernels cannot access the memory of argument 'x', which has DLPack device type {kind}"
        )
    device = Device(arguments.integer(call, "x.__dlpack_device__()[1]", told[1], 0, len(devices()) - 1))
    with activated(device):
        try:
            view = StridedMemoryView.from_dlpack(x, stream_ptr=handle)
        except AssertionError as error:
            if error.args:
                # cuda.core's assertion about the capsule has no message: this one comes from the producer's own code.
                raise
            raise TypeError(
                f"{call}: argument 'x', of type {type(x).__name__}, has a __dlpack__() that does not return "
                f"a DLPack capsule"
            ) from error
        if view.readonly and not read_only:
            raise ValueError(f"{call}: argument 'x' is read-only; {_READ_ONLY}")
        dtype = view.dtype
        strides = None if view.strides is None else tuple(step * dtype.itemsize for step in view.strides)
        pointer = int(view.ptr) if 0 not in view.shape else 0
        return DeviceArray.borrow(pointer, view.shape, dtype, strides=strides, owner=view, device=device)


def _for_host_array(x: Any) -> str:
    """Return the remedy for an array in host memory, as the end of a sentence."""
    owner = pinned_owner(x) if isinstance(x, np.ndarray) else None
    if owner is not None and owner.mapped:
        return "; kernels accept it as it is, and device_pointer returns its address"
    return "; copy it with to_device"


def _device_of(call: str, name: str, address: int) -> Device:
    found = attributes_of(address)
    if found.device is None:
        raise ValueError(
            f"{call}: argument {name!r} is at {address:#x}, which this driver does not recognise as device memory"
        )
    return found.device


def _wait_for(handle: int, device: Device, consumer: Stream) -> None:
    """Make a stream wait for another library's stream, whose handle an array interface contains."""
    with activated(device):
        if handle == consumer.handle and consumer.device is device:
            return
        default = {legacy_default.handle: legacy_default, per_thread_default.handle: per_thread_default}
        consumer.wait(default.get(handle) or Stream.borrow(handle, device))

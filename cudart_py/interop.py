"""Arrays and streams shared with other GPU libraries, without copies.

The array interface of CUDA (`__cuda_array_interface__`, version 3), DLPack and `__cuda_stream__`, both ways. A driver
without the capability `interop` has addresses that only itself understands; there our objects lack these attributes.
DLPack itself is left to cuda.core.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from . import _driver, _shapes, arguments
from ._driver import api
from .addresses import pointer_attributes
from .array import DeviceArray
from .creation import empty
from .device import Device, activated, current_device, devices
from .foreign_array import read_interface
from .pointer import Pointer
from .stream import Stream, legacy_default, per_thread_default, stream_handle

__all__ = [
    "array_interface",
    "as_device_array",
    "dlpack",
    "dlpack_device",
    "foreign_stream",
    "from_dlpack",
    "require",
]

# DLDeviceType of dlpack.h.
_DLPACK_CPU = 1
_DLPACK_CUDA = 2
_LEGACY = legacy_default.handle


@functools.cache
def _available() -> bool:
    return "interop" in _driver.capabilities()


def require(thing: Any, attribute: str) -> None:
    """Raise AttributeError where other libraries could not follow our addresses."""
    if not _available():
        raise AttributeError(
            f"{type(thing).__name__!r} object has no attribute {attribute!r} with this driver, whose addresses other "
            "libraries cannot use (the capability 'interop')"
        )


# -- out ---------------------------------------------------------------------------------------


def array_interface(array: DeviceArray) -> dict[str, Any]:
    """Describe an array as CUDA's array interface does; ValueError when it is closed."""
    result: dict[str, Any] = {
        "version": 3,
        "shape": array.shape,
        "typestr": array.dtype.str,
        "data": (array.pointer, False),
        "strides": None if array.is_contiguous else array.strides,
        "stream": _producer(array),
    }
    if array.dtype.names is not None:
        result["descr"] = array.dtype.descr
    return result


def _producer(array: DeviceArray) -> int | None:
    """Return the stream whose work so far has to be waited for, or None when nothing is left to wait for."""
    if not array.stream.closed:
        return array.stream.handle
    with activated(array.device):
        api.cuCtxSynchronize()
    return None


def dlpack_device(array: DeviceArray) -> tuple[int, int]:
    """Return DLPack's (device type, ordinal) of an array."""
    return _DLPACK_CUDA, array.device.ordinal


def dlpack(
    array: DeviceArray,
    *,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return the capsule of an array that keeps the array alive, as the array API's `__dlpack__`.

    Work that the consumer queues in `stream` waits for what the array's own stream has so far. Raises BufferError
    for another device and for dtypes and strides that DLPack does not know.
    """
    from cuda.core import Buffer
    from cuda.core.utils import StridedMemoryView

    pointer = array.pointer
    if dl_device is not None and tuple(dl_device) != dlpack_device(array):
        raise BufferError(f"the array is on device {array.device.ordinal} and cannot be given as {dl_device}")
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int) or stream < -1):
        raise BufferError(f"stream is the handle of a stream or -1, not {stream!r}")
    if array.dtype.kind not in "biufc":
        raise BufferError(f"DLPack has no type for {array.dtype}")
    if any(step % array.itemsize for step in array.strides):
        raise BufferError(
            f"DLPack counts strides in elements, and {array.strides} bytes are no multiples of a {array.dtype}"
        )
    with activated(array.device):
        if copy:
            array, pointer = _copied(array)
        if stream != -1:
            _order(array, Stream.borrow(stream or _LEGACY, array.device))
        # An array without elements has no address by which the driver could tell the device.
        anchor = array if array.size else empty(1, np.uint8, stream=array.stream)
        nbytes = _shapes.span(array.shape, array.strides, array.itemsize)
        buffer = Buffer.from_handle(pointer or anchor.pointer, max(nbytes, 1), owner=anchor)
        counts = tuple(step // array.itemsize for step in array.strides)
        view = StridedMemoryView.from_buffer(buffer, array.shape, counts, dtype=array.dtype)
        return view.__dlpack__(max_version=max_version)


def _copied(array: DeviceArray) -> tuple[DeviceArray, int]:
    from .copies import memcpy

    stream = legacy_default if array.stream.closed else array.stream
    result = empty(array.shape, array.dtype, stream=stream)
    memcpy(result, array, stream=stream)
    return result, result.pointer


def _order(array: DeviceArray, consumer: Stream) -> None:
    """Let a stream wait for the array's own."""
    producer = _producer(array)
    if producer is not None and producer != consumer.handle:
        consumer.wait(array.stream)


# -- in ----------------------------------------------------------------------------------------


def as_device_array(x: Any, *, stream: Stream | None = None, read_only: bool = False) -> DeviceArray:
    """Wrap another library's array, one with `__cuda_array_interface__`, without a copy; it is kept alive.

    Work queued in `stream`, by default the legacy default stream, waits for the stream that the other library names.
    A DeviceArray is returned as it is. Raises TypeError for objects without the interface, ValueError for masked
    arrays, backward strides, memory that is not a device's, and arrays that must not be written unless `read_only`
    promises that nothing will.
    """
    call = "as_device_array"
    stream_handle(call, stream)
    read_only = arguments.flag(call, "read_only", read_only)
    if isinstance(x, DeviceArray):
        return arguments.opened(call, "x", x, DeviceArray)
    interface = getattr(x, "__cuda_array_interface__", None)
    if isinstance(x, type) or interface is None:
        hint = "; use from_dlpack" if hasattr(x, "__dlpack__") else ""
        raise TypeError(f"{call}: argument 'x', of type {type(x).__name__}, has no __cuda_array_interface__{hint}")
    found = read_interface(call, "x", interface)
    _check_writable(call, found.read_only, read_only)
    device = _device_of(call, found.pointer) if found.pointer else current_device()
    array = DeviceArray.borrow(found.pointer, found.shape, found.dtype, strides=found.strides, owner=x, device=device)
    if found.stream is not None:
        _wait_for(found.stream, device, legacy_default if stream is None else stream)
    return array


def from_dlpack(x: Any, *, stream: Stream | None = None, read_only: bool = False) -> DeviceArray:
    """Wrap another library's array, one with `__dlpack__`, without a copy; it is kept alive.

    Work queued in `stream`, by default the legacy default stream, waits for what the other library has queued.
    Raises TypeError for objects without the protocol, ValueError for memory that devices cannot reach and for arrays
    that must not be written unless `read_only` promises that nothing will.
    """
    from cuda.core.utils import StridedMemoryView

    call = "from_dlpack"
    handle = stream_handle(call, stream)
    read_only = arguments.flag(call, "read_only", read_only)
    if isinstance(x, type) or not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"{call}: argument 'x', of type {type(x).__name__}, has no __dlpack__")
    told = x.__dlpack_device__()
    if not isinstance(told, tuple) or len(told) != 2:
        raise arguments.wrong_type(call, "x.__dlpack_device__()", "a pair of the device's type and its number", told)
    kind, ordinal = told
    if kind == _DLPACK_CPU:
        raise ValueError(f"{call}: argument 'x' is in pageable host memory; use to_device")
    count = len(devices())
    device = Device(arguments.integer(call, "x.__dlpack_device__()", ordinal, 0, count - 1))
    with activated(device):
        view = StridedMemoryView.from_dlpack(x, stream_ptr=handle)
        if not view.is_device_accessible:
            raise ValueError(f"{call}: kernels cannot reach the memory of 'x', of DLPack's device type {int(kind)}")
        _check_writable(call, view.readonly, read_only)
        dtype = view.dtype
        strides = None if view.strides is None else tuple(step * dtype.itemsize for step in view.strides)
        pointer = int(view.ptr) if 0 not in view.shape else 0
        return DeviceArray.borrow(pointer, view.shape, dtype, strides=strides, owner=view, device=device)


def _check_writable(call: str, locked: bool, read_only: bool) -> None:
    if locked and not read_only:
        raise ValueError(
            f"{call}: argument 'x' must not be written; pass read_only=True if nothing will write through the result"
        )


def _device_of(call: str, address: int) -> Device:
    found = pointer_attributes(Pointer(address))
    if found.device is None:
        raise ValueError(f"{call}: argument 'x' is at {address:#x}, which this driver doesn't know as device memory")
    return found.device


def _wait_for(handle: int, device: Device, consumer: Stream) -> None:
    """Let a stream wait for another library's, given by the handle in an array interface."""
    with activated(device):
        if handle == consumer.handle and consumer.device is device:
            return
        default = {legacy_default.handle: legacy_default, per_thread_default.handle: per_thread_default}
        consumer.wait(default.get(handle) or Stream.borrow(handle, device))


def foreign_stream(stream: Any) -> int:
    """Return the handle of another library's stream; TypeError for what is none."""
    call, name = "Stream.borrow", "stream"
    if isinstance(stream, int | np.integer) and not isinstance(stream, bool):
        return arguments.integer(call, name, stream, 0, 2**64 - 1)
    if not isinstance(stream, type):  # a class has its objects' attributes too
        protocol = getattr(stream, "__cuda_stream__", None)
        if protocol is not None:
            told = arguments.function(call, f"{name}.__cuda_stream__", protocol)()
            if not isinstance(told, tuple) or len(told) != 2 or told[0] != 0:
                raise TypeError(
                    f"{call}: argument {name!r}, of type {type(stream).__name__}, says {told!r} by __cuda_stream__; "
                    "version 0 is known, which says (0, handle)"
                )
            return arguments.integer(call, f"{name}.__cuda_stream__()", told[1], 0, 2**64 - 1)
        # Our own has no protocol where there is nobody to talk to.
        if isinstance(stream, Stream):
            return arguments.opened(call, name, stream, Stream).handle
        # CuPy's and PyTorch's. Other things have a `ptr` too, which as a stream would be followed.
        if any("Stream" in kind.__name__ for kind in type(stream).__mro__):
            for attribute in ("ptr", "cuda_stream"):
                handle = getattr(stream, attribute, None)
                if isinstance(handle, int):
                    return arguments.integer(call, f"{name}.{attribute}", handle, 0, 2**64 - 1)
        if type(stream).__name__ in ("CUstream", "cudaStream_t"):
            return int(stream)
    raise TypeError(
        f"{call}: argument {name!r}, of type {type(stream).__name__}, is no stream: it has no __cuda_stream__, and is "
        "no handle"
    )

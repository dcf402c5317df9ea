"""The attributes of a device array, and its protocols for NumPy, Python's operators and other GPU libraries.

cuda.core creates the DLPack capsules.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn, Self

import numpy as np

from ..base import arguments, shapes
from ..context.current import activated
from ..context.device import Device
from ..context.lifetimes import Handle
from ..driver.calls import api
from ..driver.capabilities import require_interop
from ..hints import KERNEL, for_one_element, host_only
from ..streams.stream import Stream, legacy_default
from .transfers import StridedRegion

# DLDeviceType of dlpack.h.
DLPACK_CPU = 1
_CUDA = 2
# kDLCUDA, kDLCUDAHost and kDLCUDAManaged: memory that kernels can access.
DLPACK_REACHED = (_CUDA, 3, 13)

# NumPy functions that need only the shape and dtype of an array.
_NEED_NO_ELEMENTS = (np.shape, np.ndim, np.size, np.result_type, np.iscomplexobj, np.isrealobj)


class UnreadByNumPy:
    """The methods that NumPy calls on an array in device memory: they raise an error that says to copy the elements."""

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(f"NumPy cannot read a {kind}, since its elements are in device memory: use array.to_host()")

    def __array_function__(self, function: Any, types: Any, operands: Any, options: Any) -> Any:
        """Refuse a NumPy function that needs elements; some would turn the TypeError of `__array__` into a result."""
        if function in _NEED_NO_ELEMENTS:
            return function._implementation(*operands, **options)
        name = f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)
        raise host_only(self, name)

    def __array_ufunc__(self, function: np.ufunc, method: str, *operands: Any, **options: Any) -> NoReturn:
        """Refuse a NumPy universal function, or an operator with a NumPy array or scalar."""
        way = "" if method == "__call__" else f".{method}"
        raise host_only(self, f"np.{function.__name__}{way}", KERNEL)


class ArrayAttributes(Handle):
    """The attributes of a device array, which cannot be set.

    Launches and copies read the private ones, because reading a property takes several times as long.
    """

    # `_value` is the address in the form in which the driver returned it; None once the array is closed.
    __slots__ = {
        "_address": "The address of the first element, for kernels and copies.",
        "_device": "The device that the memory belongs to.",
        "_dtype": "The dtype of the elements.",
        "_is_contiguous": "Whether the elements are contiguous in C order.",
        "_nbytes": "The size of all elements in bytes.",
        "_origin": "The origin of the array's own memory.",
        "_ready_on": "The device whose kernels take the address as it is, if the memory is open and the array's own.",
        "_shape": "The number of elements along each axis.",
        "_stream": "The stream in which the memory was allocated and will be freed.",
        "_strides": "The strides in bytes, None for a contiguous array until they are needed.",
    }

    _device: Device
    _dtype: np.dtype[Any]
    _is_contiguous: bool
    _nbytes: int
    _shape: tuple[int, ...]
    _stream: Stream
    _strides: tuple[int, ...] | None

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of elements along each axis."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes, without padding between rows."""
        return self._nbytes

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are contiguous in C order."""
        return self._is_contiguous

    @property
    def device(self) -> Device:
        """The device that the memory belongs to."""
        return self._device

    @property
    def stream(self) -> Stream:
        """The stream in which the memory was allocated and will be freed."""
        return self._stream

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance in bytes between consecutive elements along each axis."""
        if self._strides is None:
            self._strides = shapes.contiguous_strides(self._shape, self._dtype.itemsize)
        return self._strides

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._shape)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return int(self._dtype.itemsize)

    @property
    def pitch(self) -> int:
        """The distance in bytes between consecutive rows; raises ValueError with fewer than two dimensions."""
        if self.ndim < 2:
            raise ValueError(f"an array with {self.ndim} dimensions has no rows and no pitch")
        return self.strides[-2]


class ArrayProtocols(UnreadByNumPy, ArrayAttributes):
    """The part of a device array that other libraries call: CUDA's array interface, DLPack, and operations that raise.

    The host cannot read the elements, so NumPy's functions and operators would see one Python object, or one per
    element. They raise a TypeError instead, which explains how to copy the elements to the host. The interfaces for
    other GPU libraries are absent if the driver lacks the capability `interop`.
    """

    __slots__ = ()

    __hash__ = object.__hash__

    @property
    def _region(self) -> StridedRegion:
        """The array as the source or destination of a copy."""
        raise NotImplementedError

    def copy(self, *, stream: Stream | None = None) -> Self:
        """Return a copy with its own memory."""
        raise NotImplementedError

    def to_host(self) -> np.ndarray[Any, Any]:
        """Copy to the host."""
        raise NotImplementedError

    def item(self) -> Any:
        """Return the only element as a Python object, like NumPy's `item`; waits for the copy to the host.

        Raises ValueError unless the array has exactly one element.
        """
        return self._only("item").item()

    def _only(self, call: str) -> np.ndarray[Any, Any]:
        size = math.prod(self._region.shape)  # ValueError for a closed array
        if size != 1:
            raise ValueError(
                f"DeviceArray.{call}: only an array with one element can be converted, and this one has {size}; "
                "copy the elements with array.to_host()"
            )
        return self.to_host()

    def __bool__(self) -> bool:
        return bool(self._only("__bool__"))

    def __int__(self) -> int:
        return int(self._only("__int__").item())

    def __float__(self) -> float:
        return float(self._only("__float__").item())

    def __complex__(self) -> complex:
        return complex(self._only("__complex__").item())

    def __format__(self, spec: str) -> str:
        if spec:
            raise TypeError(
                f"a DeviceArray does not support the format {spec!r}: write float(x) for the value of a single element"
            )
        return str(self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other is None:
            return False
        write = for_one_element(self) if self.size == 1 else "x.to_host()"
        raise TypeError(
            f"a DeviceArray cannot be compared with ==: compare {write}, or use `a is b` to test for the same array"
        )

    def __contains__(self, item: object) -> NoReturn:
        raise TypeError("the host cannot search a DeviceArray: use `item in array.to_host()`")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """CUDA's array interface, version 3; includes the array's stream."""
        require_interop(self, "__cuda_array_interface__")
        region = self._region
        interface: dict[str, Any] = {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (region.address, False),
            "strides": None if region.is_contiguous else region.strides,
            "stream": None if self.stream.closed else self.stream.handle,
        }
        if self.dtype.names is not None:
            interface["descr"] = self.dtype.descr
        if self.stream.closed:
            # Wait here, because no consumer can wait for a closed stream, and an interface without a stream says that
            # there is nothing to wait for.
            with activated(self.device):
                api.cuCtxSynchronize()
        return interface

    @property
    def __dlpack__(self) -> Callable[..., Any]:
        """Return a DLPack capsule, as the array API standard defines it."""
        require_interop(self, "__dlpack__")
        return self._dlpack

    def _dlpack(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule, which keeps the array alive; this is the array API standard's `__dlpack__` method.

        Work that the consumer queues in `stream` waits for the work so far in the array's own stream. Raises
        BufferError for another device, for an invalid `stream`, and for dtypes and strides that DLPack does not
        support. Raises TypeError or ValueError if `max_version` or `dl_device` is not a pair of ints.
        """
        region, call = self._region, "DeviceArray.__dlpack__"
        if dl_device is not None:
            dl_device = _pair(call, "dl_device", dl_device)
        if max_version is not None:
            max_version = _pair(call, "max_version", max_version)
        _check_capsule(region, self.device, stream, dl_device)
        with activated(self.device):
            producer = self.stream
            if producer.closed:
                # The consumer cannot wait for a closed stream.
                api.cuCtxSynchronize()
                producer = legacy_default
            if copy:
                region = self.copy(stream=producer)._region
            if stream != -1:
                consumer = Stream.borrow(stream or legacy_default.handle, self.device)
                if consumer.handle != producer.handle:
                    consumer.wait(producer)
            # An array without elements has no address from which the driver could determine the device.
            anchor = region if self.nbytes else self._one_byte(producer)
            return _make_capsule(region, anchor, max_version)

    def _one_byte(self, stream: Stream) -> StridedRegion:
        """Return a new array of one byte on the same device."""
        raise NotImplementedError

    @property
    def __dlpack_device__(self) -> Callable[[], tuple[int, int]]:
        """DLPack's (device type, ordinal)."""
        require_interop(self, "__dlpack_device__")
        return lambda: _dlpack_device(self.device)


def _dlpack_device(device: Device) -> tuple[int, int]:
    """Return DLPack's (device type, ordinal) of a device."""
    return _CUDA, device.ordinal


def _pair(call: str, name: str, value: Any) -> tuple[int, int]:
    first, second = arguments.integers(call, name, value, 2, 0)
    return first, second


def _check_capsule(array: StridedRegion, device: Device, stream: Any, dl_device: tuple[int, int] | None) -> None:
    """Raise BufferError for an array that DLPack cannot describe, for another device, and for an invalid stream."""
    if dl_device is not None and dl_device != _dlpack_device(device):
        raise BufferError(
            f"the array is on device {device.ordinal} and cannot be exported to the DLPack device {dl_device}"
        )
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int) or stream < -1):
        raise BufferError(f"stream must be the handle of a stream or -1, not {stream!r}")
    if array.dtype.kind not in "biufc":
        raise BufferError(f"DLPack has no type for {array.dtype}")
    if any(step < 0 for step in array.strides):
        raise BufferError(
            f"DLPack's consumers do not accept negative strides, such as those of {array.strides} bytes: export a copy"
        )
    if any(step % array.dtype.itemsize for step in array.strides):
        raise BufferError(
            f"DLPack counts strides in elements, but {array.strides} bytes are not multiples of the size of "
            f"{array.dtype}"
        )


def _make_capsule(array: StridedRegion, anchor: StridedRegion, max_version: tuple[int, int] | None) -> Any:
    """Return a DLPack capsule of an array; `anchor` has the address for the capsule and the array to keep alive."""
    # These take long to import, and few programs need them.
    from cuda.core import Buffer
    from cuda.core.utils import StridedMemoryView

    itemsize = array.dtype.itemsize
    nbytes = shapes.span(array.shape, array.strides, itemsize)
    buffer = Buffer.from_handle(anchor.address, max(nbytes, 1), owner=anchor.array)
    counts = tuple(step // itemsize for step in array.strides)
    view = StridedMemoryView.from_buffer(buffer, array.shape, counts, dtype=array.dtype)
    return view.__dlpack__(max_version=max_version)

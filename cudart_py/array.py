"""Arrays in device memory: a shape, a dtype and byte strides over somebody's bytes. No arithmetic."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _shapes, arguments
from ._lifetime import refuse_copy
from .allocation import Allocation, BorrowedAllocation
from .device import Device, activated, current_device
from .stream import Stream, stream_handle

__all__ = ["ArrayView", "DeviceArray"]


class DeviceArray:
    """An n-dimensional array in device memory.

    `shape` is in elements, `strides` in bytes. Made by `empty`, `zeros`, `full`, `to_device` and
    `empty_pitched`; `array[...]` with ints and slices of positive step is a view of the same memory.
    An array of size 0 has the pointer 0.
    """

    __slots__ = ("__weakref__", "_flat", "_native", "_pointer", "_strides", "dtype", "shape")

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    # None stands for those of a contiguous array, which few ask for.
    _strides: tuple[int, ...] | None
    # The bytes of an array that is known to be in one piece, 0 for others.
    _flat: int
    _pointer: int
    # What the bindings take fastest as the address: their own object, where there is one.
    _native: Any

    @staticmethod
    def borrow(
        pointer: int,
        shape: Any,
        dtype: DTypeLike,
        *,
        strides: tuple[int, ...] | None = None,
        owner: Any = None,
        device: Device | None = None,
    ) -> DeviceArray:
        """Make an array over device memory of somebody else, never freed here.

        `strides` are in bytes and not negative; in two or more dimensions a row's pitch must hold the
        row. `owner` is kept alive with the array.
        """
        call = "DeviceArray.borrow"
        pointer = arguments.integer(call, "pointer", pointer, 0, 2**64 - 1)
        sizes, kind = arguments.shape(call, "shape", shape), arguments.dtype(call, "dtype", dtype)
        if strides is None:
            steps = _shapes.contiguous_strides(sizes, kind.itemsize)
        else:
            # Negative ones would go backward, and device arrays go forward only.
            steps = arguments.integers(call, "strides", strides, len(sizes), least=0)
        if device is not None:
            arguments.instance(call, "device", device, Device)
        if len(sizes) >= 2 and 0 not in sizes and sizes[-2] > 1:
            width = (sizes[-1] - 1) * steps[-1] + kind.itemsize
            if steps[-2] < width:
                raise ValueError(
                    f"{call}: argument 'strides' has a pitch of {steps[-2]} bytes, smaller than the row's {width} bytes"
                )
        device = device if device is not None else current_device()
        allocation = BorrowedAllocation(pointer, device, owner)
        return ArrayView(allocation, sizes, kind, None if strides is None else steps)

    # -- what it is ----------------------------------------------------------------------------

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next along each axis."""
        if self._strides is None:
            self._strides = _shapes.contiguous_strides(self.shape, self.dtype.itemsize)
        return self._strides

    @property
    def pointer(self) -> int:
        """The device address of the first element (CUdeviceptr); ValueError when closed."""
        if self.home is False:
            raise ValueError("this DeviceArray is closed")
        return self._pointer

    handle = pointer

    @property
    def home(self) -> Device | Literal[False]:
        """The device while the memory may be used, False from its end on: what is done often asks both at once."""
        # Not None, which is the device of a thread that has done nothing yet.
        raise NotImplementedError

    @property
    def device(self) -> Device:
        """The device whose memory it is."""
        raise NotImplementedError

    @property
    def stream(self) -> Stream:
        """The stream in which the memory was allocated and will be freed."""
        raise NotImplementedError

    @property
    def base(self) -> Allocation | DeviceArray | None:
        """What owns the memory, as NumPy has it: the array that this is a view of, an allocation, None for itself."""
        raise NotImplementedError

    @property
    def _memory(self) -> Allocation | DeviceArray:
        return self if self.base is None else self.base

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, without padding between rows."""
        return self.size * self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie one behind the other in C order."""
        return _shapes.is_contiguous(self.shape, self.strides, self.itemsize)

    @property
    def pitch(self) -> int:
        """The bytes from one row to the next; ValueError with fewer than two dimensions."""
        if self.ndim < 2:
            raise ValueError(f"an array of {self.ndim} dimensions has no rows and no pitch")
        return self.strides[-2]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array of no dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self._pointer:#x} on device {self.device.ordinal}"
        return f"<DeviceArray {self.shape} {self.dtype} at {state}>"

    # -- views ---------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> DeviceArray:
        offset, shape, strides = _shapes.index(self.shape, self.strides, key)
        return self._make_view(shape, self.dtype, strides, offset)

    def reshape(self, *shape: Any) -> DeviceArray:
        """Return a view of another shape and the same size; the array must be contiguous."""
        sizes = arguments.shape("DeviceArray.reshape", "shape", shape[0] if len(shape) == 1 else shape)
        if math.prod(sizes) != self.size:
            raise arguments.wrong_value(
                "DeviceArray.reshape", "shape", f"one of {self.size} elements, as {self.shape} has", sizes
            )
        if not self.is_contiguous:
            raise ValueError("only a contiguous array can be reshaped without a copy")
        return self._make_view(sizes, self.dtype, None, 0)

    def view(self, dtype: DTypeLike) -> DeviceArray:
        """Return a view of the same bytes as another dtype; the last axis must be contiguous and divide."""
        kind = arguments.dtype("DeviceArray.view", "dtype", dtype)
        if kind.itemsize == self.itemsize:
            return self._make_view(self.shape, kind, self.strides, 0)
        if not self.shape or (self.shape[-1] != 1 and self.strides[-1] != self.itemsize):
            raise ValueError(
                f"DeviceArray.view: argument 'dtype' is {kind}, which is not as wide as {self.dtype} and needs a "
                "contiguous last axis"
            )
        width = self.shape[-1] * self.itemsize
        if width % kind.itemsize:
            raise ValueError(
                f"DeviceArray.view: argument 'dtype' is {kind}, and rows of {width} bytes do not divide into elements "
                f"of {kind.itemsize} bytes"
            )
        shape = (*self.shape[:-1], width // kind.itemsize)
        return self._make_view(shape, kind, (*self.strides[:-1], kind.itemsize), 0)

    def _make_view(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None, offset: int
    ) -> DeviceArray:
        if self.closed:
            raise ValueError("this DeviceArray is closed")
        start = self._pointer - self._memory.handle if 0 not in shape else 0
        return ArrayView(self._memory, shape, dtype, strides, start + offset, is_view=True)

    # -- data ----------------------------------------------------------------------------------

    def to_host(self, out: NDArray[Any] | None = None, *, stream: Stream | None = None) -> NDArray[Any]:
        """Copy to the host and return the NumPy array: `out`, or a new one of this shape and dtype.

        Waits for the copy, except when given both a `stream` and a pinned `out`: then the data are
        there once that stream is synchronised. Without `stream` the array's own stream is used.
        """
        from .copies import check_end, memcpy
        from .host_memory import is_pinned

        if out is None:
            out = np.empty(self.shape, self.dtype)
        else:
            arguments.instance("DeviceArray.to_host", "out", out, np.ndarray, "a NumPy array")
            check_end("DeviceArray.to_host", "out", out, self, writes=True)
        if stream is not None:
            stream_handle("DeviceArray.to_host", stream)
            memcpy(out, self, stream=stream)
            if not is_pinned(out):
                stream.synchronize()
            return out
        self.pointer  # noqa: B018  # raises when closed
        # The default streams are those of the device that is current.
        with activated(self.device):
            memcpy(out, self, stream=self.stream)
            self.stream.synchronize()
        return out

    def copy_from(self, host: ArrayLike, *, stream: Stream | None = None) -> Self:
        """Copy from the host into this array, of the same shape and dtype, and return it.

        Returns when the source may be changed again, except when given both a `stream` and a pinned
        source: then it must stay as it is until that stream is synchronised.
        """
        from .copies import check_end, memcpy
        from .host_memory import is_pinned

        if isinstance(host, DeviceArray):
            raise arguments.wrong_type("DeviceArray.copy_from", "host", "an array of the host; use memcpy", host)
        source = arguments.host_array("DeviceArray.copy_from", "host", host)
        if source.shape == self.shape and any(step <= 0 for step in source.strides):
            source = np.ascontiguousarray(source)
        check_end("DeviceArray.copy_from", "host", source, self)
        if stream is not None:
            stream_handle("DeviceArray.copy_from", stream)
            memcpy(self, source, stream=stream)
            return self
        self.pointer  # noqa: B018  # raises when closed
        with activated(self.device):
            memcpy(self, source, stream=self.stream)
            if is_pinned(source):
                self.stream.synchronize()
        return self

    # -- other libraries: absent where they could not follow our addresses (the capability `interop`)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """CUDA's array interface, version 3; names the array's stream."""
        from . import interop

        interop.require(self, "__cuda_array_interface__")
        return interop.array_interface(self)

    @property
    def __dlpack__(self) -> Callable[..., Any]:
        """DLPack's capsule, as the array API has it."""
        from . import interop

        interop.require(self, "__dlpack__")
        return functools.partial(interop.dlpack, self)

    @property
    def __dlpack_device__(self) -> Callable[[], tuple[int, int]]:
        """DLPack's (device type, ordinal)."""
        from . import interop

        interop.require(self, "__dlpack_device__")
        return functools.partial(interop.dlpack_device, self)

    # -- life ----------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether the memory is given back."""
        return self.home is False

    def close(self, *, stream: Stream | None = None) -> None:
        """Give the memory back in the order of `stream`, by default the stream of the allocation.

        Views of the array are closed with it; closing a view lets go of the view alone. A second call
        does nothing.
        """
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> str | tuple[Any, ...]:
        refuse_copy(self, "to_host() copies what is in it")


class ArrayView(DeviceArray):
    """An array over bytes that another object owns: a view of an array, padded rows, a symbol, borrowed memory."""

    __slots__ = ("_is_view", "base")

    base: Allocation | DeviceArray

    def __init__(
        self,
        base: Allocation | DeviceArray,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
        *,
        is_view: bool = False,
    ) -> None:
        self.base = base
        self._is_view = is_view
        self.shape = shape
        self.dtype = dtype
        self._strides = strides
        whole = strides is None or _shapes.is_contiguous(shape, strides, dtype.itemsize)
        self._flat = math.prod(shape) * dtype.itemsize if whole else 0
        self._pointer = self._native = 0 if 0 in shape else base.handle + offset

    @property
    def home(self) -> Device | Literal[False]:
        """The device while the memory may be used, False from its end on."""
        return self.base.home

    @property
    def device(self) -> Device:
        """The device whose memory it is."""
        return self.base.device

    @property
    def stream(self) -> Stream:
        """The stream in which the memory was allocated and will be freed."""
        return self.base.stream

    def close(self, *, stream: Stream | None = None) -> None:
        """Close the memory in the order of `stream`, or where this is a view of another array, let go of it alone."""
        base = self.base
        if self.home is False:
            return
        if self._is_view:
            # The memory itself may go; what it was stays to be asked.
            self.base = BorrowedAllocation(0, base.device, None)
            self.base.stream = base.stream
            self.base.close()
            return
        assert isinstance(base, Allocation)  # views alone have arrays as their base
        if stream is not None:
            stream_handle("DeviceArray.close", stream)  # what is no open stream is refused before anything changes
            base.stream = stream
        base.close()


# Users know one kind of array, and errors name it.
ArrayView.__name__ = DeviceArray.__name__

"""Arrays in device memory: a shape, a dtype and byte strides over an allocation. No arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import arguments, shapes
from ..context.capture import captures
from ..context.current import activated, this_thread
from ..context.device import Device, current_device
from ..context.lifetimes import Handle, refuse_copy
from ..driver.seam import api, raw
from ..driver.sharing import require_interop
from ..driver.unwrap import failure
from ..streams.stream import Stream, legacy_default, per_thread_default, stream_of
from .allocation import MOST_BYTES, Allocation, BorrowedAllocation, Origin, allocate, free
from .dlpack import check_capsule, dlpack_device, make_capsule
from .host_memory import is_pinned
from .transfers import Side, host_side, transfer

if TYPE_CHECKING:
    from .pools import MemoryPool

__all__ = ["DeviceArray", "allocate_array", "side_of"]


class DeviceArray(Handle):
    """An n-dimensional array in device memory.

    `shape` is in elements, `strides` in bytes. Made by `empty`, `zeros`, `full`, `to_device` and
    `empty_pitched`; `array[...]` with ints and slices of positive step is a view of the same memory.
    An array of size 0 has the pointer 0.
    """

    # `_value` is what the driver gave and takes back, None once the array is closed.
    __slots__ = {
        "_address": "Where the first element lies, as kernels and copies take it.",
        "_origin": "Where memory of its own came from.",
        "_strides": "None for those of a contiguous array, which few ask for.",
        "base": "What owns the memory: the array that this is a view of, an allocation, or None for itself.",
        "device": "The device whose memory it is.",
        "dtype": "The dtype of the elements.",
        "is_contiguous": "Whether the elements lie one behind the other in C order.",
        "nbytes": "The bytes of all elements, without padding between rows.",
        "shape": "The elements along each axis.",
        "stream": "The stream in which the memory was allocated and will be freed.",
    }

    def __init__(
        self,
        pointer: Any,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        nbytes: int,
        device: Device,
        stream: Stream,
        strides: tuple[int, ...] | None = None,
        base: DeviceArray | Allocation | None = None,
        origin: Origin | None = None,
    ) -> None:
        self._value = pointer
        self._address = int(pointer) if nbytes else 0
        self._owned = base is None
        self._origin = origin
        self._strides = strides
        self.shape = shape
        self.dtype = dtype
        self.nbytes = nbytes
        self.is_contiguous = strides is None or shapes.is_contiguous(shape, strides, dtype.itemsize)
        self.device = device
        self.stream = stream
        self.base = base

    @classmethod
    def borrow(
        cls,
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
        if strides is not None:
            # Negative ones would go backward, and device arrays go forward only.
            strides = arguments.integers(call, "strides", strides, len(sizes), least=0)
            _check_pitch(call, sizes, strides, kind.itemsize)
        if device is None:
            device = current_device()
        arguments.instance(call, "device", device, Device)
        base = BorrowedAllocation(pointer, device, owner)
        nbytes = math.prod(sizes) * kind.itemsize
        return cls(pointer, sizes, kind, nbytes, device, legacy_default, strides, base)

    # -- what it is ----------------------------------------------------------------------------

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next along each axis."""
        if self._strides is None:
            self._strides = shapes.contiguous_strides(self.shape, self.dtype.itemsize)
        return self._strides

    @property
    def pointer(self) -> int:
        """The device address of the first element (CUdeviceptr); ValueError when closed."""
        if self.closed:
            raise ValueError("this DeviceArray is closed")
        return self._address

    handle = pointer

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
        state = "closed" if self.closed else f"{self._address:#x} on device {self.device.ordinal}"
        return f"<DeviceArray {self.shape} {self.dtype} at {state}>"

    # -- views ---------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> DeviceArray:
        offset, shape, strides = shapes.index(self.shape, self.strides, key)
        return self._view(shape, self.dtype, strides, offset)

    def reshape(self, *shape: Any) -> DeviceArray:
        """Return a view of another shape and the same size; the array must be contiguous."""
        sizes = arguments.shape("DeviceArray.reshape", "shape", shape[0] if len(shape) == 1 else shape)
        if math.prod(sizes) != self.size:
            raise arguments.wrong_value(
                "DeviceArray.reshape", "shape", f"one of {self.size} elements, as {self.shape} has", sizes
            )
        if not self.is_contiguous:
            raise ValueError("only a contiguous array can be reshaped without a copy")
        return self._view(sizes, self.dtype, None, 0)

    def view(self, dtype: DTypeLike) -> DeviceArray:
        """Return a view of the same bytes as another dtype; the last axis must be contiguous and divide."""
        kind = arguments.dtype("DeviceArray.view", "dtype", dtype)
        if kind.itemsize == self.itemsize:
            return self._view(self.shape, kind, self.strides, 0)
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
        return self._view(shape, kind, (*self.strides[:-1], kind.itemsize), 0)

    def _view(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None, offset: int
    ) -> DeviceArray:
        """Return a view that begins some bytes further on."""
        base = self.base if isinstance(self.base, DeviceArray) else self
        nbytes = math.prod(shape) * dtype.itemsize
        return DeviceArray(self.pointer + offset, shape, dtype, nbytes, self.device, self.stream, strides, base)

    # -- data ----------------------------------------------------------------------------------

    def to_host(self, out: NDArray[Any] | None = None, *, stream: Stream | None = None) -> NDArray[Any]:
        """Copy to the host and return the NumPy array: `out`, or a new one of this shape and dtype.

        Waits for the copy, except when given both a `stream` and a pinned `out`: then the data are
        there once that stream is synchronised. Without `stream` the array's own stream is used.
        """
        call = "DeviceArray.to_host"
        if out is None:
            out = np.empty(self.shape, self.dtype)
        else:
            arguments.instance(call, "out", out, np.ndarray, "a NumPy array")
        host = self._host_side(call, "out", out, writes=True)
        queue = self.stream if stream is None else stream_of(call, stream)
        # The default streams are those of the device that is current.
        with activated(self.device if stream is None else stream.device):
            transfer(host, self.side, queue)
            if stream is None or not is_pinned(out):
                queue.synchronize()
        return out

    def copy_from(self, host: ArrayLike, *, stream: Stream | None = None) -> Self:
        """Copy from the host into this array, of the same shape and dtype, and return it.

        Returns when the source may be changed again, except when given both a `stream` and a pinned
        source: then it must stay as it is until that stream is synchronised.
        """
        call = "DeviceArray.copy_from"
        if isinstance(host, DeviceArray):
            raise arguments.wrong_type(call, "host", "an array of the host; use memcpy", host)
        source = arguments.host_array(call, "host", host)
        if source.shape == self.shape and any(step <= 0 for step in source.strides):
            source = np.ascontiguousarray(source)
        side = self._host_side(call, "host", source)
        queue = self.stream if stream is None else stream_of(call, stream)
        with activated(self.device if stream is None else stream.device):
            transfer(self.side, side, queue)
            if stream is None and is_pinned(source):
                queue.synchronize()
        return self

    @property
    def side(self) -> Side:
        """What a copy has to know of the array; ValueError when closed."""
        return Side(self.pointer, self.shape, self.strides, self.dtype, True, self)

    def _host_side(self, call: str, name: str, host: NDArray[Any], *, writes: bool = False) -> Side:
        """Describe a host array that a copy of the whole array works on, after checking it."""
        side = host_side(call, name, host, writes=writes)
        if host.shape != self.shape:
            raise arguments.wrong_value(call, name, f"of the array's shape {self.shape}", host)
        if host.dtype != self.dtype:
            raise arguments.wrong_type(call, name, f"of the array's dtype {self.dtype}", host)
        return side

    # -- other libraries: absent where they could not follow our addresses (the capability `interop`)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """CUDA's array interface, version 3; names the array's stream."""
        require_interop(self, "__cuda_array_interface__")
        interface: dict[str, Any] = {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": None if self.is_contiguous else self.strides,
            "stream": None if self.stream.closed else self.stream.handle,
        }
        if self.dtype.names is not None:
            interface["descr"] = self.dtype.descr
        if self.stream.closed:
            # Nobody can wait for its work any more, and no stream means that nothing is left to wait for.
            with activated(self.device):
                api.cuCtxSynchronize()
        return interface

    @property
    def __dlpack__(self) -> Callable[..., Any]:
        """DLPack's capsule, as the array API has it."""
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
        """Return DLPack's capsule, which keeps the array alive, as the array API's `__dlpack__`.

        Work that the consumer queues in `stream` waits for what the array's own stream has so far. Raises BufferError
        for another device and for dtypes and strides that DLPack does not know.
        """
        side = self.side
        check_capsule(side, self.device, stream, dl_device)
        with activated(self.device):
            producer = self.stream
            if producer.closed:
                # Nobody can wait for its work any more.
                api.cuCtxSynchronize()
                producer = legacy_default
            if copy:
                side = allocate_array(self.shape, self.dtype, producer).side
                transfer(side, self.side, producer)
            if stream != -1:
                consumer = Stream.borrow(stream or legacy_default.handle, self.device)
                if consumer.handle != producer.handle:
                    consumer.wait(producer)
            # An array without elements has no address by which the driver could tell the device.
            anchor = side if self.nbytes else allocate_array((1,), np.dtype(np.uint8), producer).side
            return make_capsule(side, anchor, max_version)

    @property
    def __dlpack_device__(self) -> Callable[[], tuple[int, int]]:
        """DLPack's (device type, ordinal)."""
        require_interop(self, "__dlpack_device__")
        return lambda: dlpack_device(self.device)

    # -- life ----------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether the memory is given back."""
        return self._value is None or (self.base is not None and self.base.closed)

    def close(self, *, stream: Stream | None = None) -> None:
        """Give the memory back in the order of `stream`, by default the stream of the allocation.

        Views of the array are closed with it; closing a view lets go of the view alone. A second call
        does nothing.
        """
        base = self.base
        if base is None:
            if stream is not None and not self.closed:
                self.stream = stream_of("DeviceArray.close", stream)
            Handle.close(self)
        elif isinstance(base, DeviceArray):
            Handle.close(self)
            self.base = None
        else:
            base.close()

    def _drop(self) -> None:
        # Without a reference, no other thread closes the array too, and no launch depends on it.
        value, self._value = self._value, None
        self._release(value)

    def _release(self, value: Any) -> None:
        if not self._address:
            return
        native, origin = self.stream._queue, self._origin
        # The quick way of the commonest end, of memory whose origin does not matter, as in `allocate_array`.
        if origin is None and native is not None and not captures and this_thread.device is self.device:
            (status,) = raw.cuMemFreeAsync(value, native)
            if status:
                raise failure(status, "cuMemFreeAsync")
        else:
            self._origin = None
            free(value, origin, self.device, self.stream)

    def __reduce__(self) -> str | tuple[Any, ...]:
        refuse_copy(self, "to_host() copies what is in it")


def allocate_array(
    shape: tuple[int, ...], dtype: np.dtype[Any], stream: Stream, pool: MemoryPool | None = None
) -> DeviceArray:
    """Return a contiguous array of a pool's memory, by default that of the stream's device, uninitialised."""
    here, native = this_thread.device, stream._queue
    nbytes = math.prod(shape) * dtype.itemsize
    # The quick way of the commonest allocation: no capture, the device current and with its own pool, and a stream that
    # is the same in every thread. Only where another thread gives the device a pool meanwhile does the origin matter.
    if (
        here is not None
        and stream._device in (None, here)
        and pool is None
        and here._pool is None
        and native is not None
        and stream is not per_thread_default
        and not captures
        and 0 < nbytes <= MOST_BYTES
    ):
        status, address = raw.cuMemAllocAsync(nbytes, native)
        if not status:
            given = here._pool
            origin = None if given is None else Origin(None, None, given.memory)
            return DeviceArray(address, shape, dtype, nbytes, here, stream, None, None, origin)
    device = stream.device
    address, origin = allocate(nbytes, device, stream, pool)
    return DeviceArray(address, shape, dtype, nbytes, device, stream, None, None, origin)


def side_of(call: str, name: str, array: Any, *, writes: bool = False) -> Side:
    """Describe a call's argument, a DeviceArray or a NumPy array, as a side of a copy, after checking it."""
    if isinstance(array, DeviceArray):
        return arguments.opened(call, name, array, DeviceArray).side
    return host_side(call, name, array, writes=writes)


def _check_pitch(call: str, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> None:
    """Raise ValueError if the rows of two or more dimensions overlap."""
    if len(shape) < 2 or 0 in shape or shape[-2] == 1:
        return
    width = (shape[-1] - 1) * strides[-1] + itemsize
    if strides[-2] < width:
        raise ValueError(
            f"{call}: argument 'strides' has a pitch of {strides[-2]} bytes, smaller than the row's {width} bytes"
        )

"""Arrays in device memory: a shape, a dtype and strides in bytes over an allocation. No arithmetic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Never, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..base import arguments, shapes
from ..context.capture import captures
from ..context.current import activated, this_thread
from ..context.device import Device, current_device
from ..context.lifetimes import Handle
from ..driver.calls import raw
from ..driver.unwrap import failure
from ..hints import hinted, unexpected
from ..streams.stream import Stream, legacy_default, per_thread_default, stream_of
from .allocation import MOST_BYTES, Allocation, BorrowedAllocation, Origin, allocate, free
from .fills import as_element, fill, fills_at_once
from .host_memory import is_pinned
from .pools import MemoryPool, pool_of_kind
from .transfers import StridedRegion, host_region, raw_bytes, structure_bytes, transfer, wrong_element_type
from .views import ArrayViews

if TYPE_CHECKING:
    from ..pages.preview import ArrayPreview

# The end of the error for using an array that the program itself has closed.
KEEP_OPEN = "; keep it, or the module that owns it, open until its last use"


@hinted
class DeviceArray(ArrayViews):
    """An n-dimensional array in device memory.

    `shape` is in elements, `strides` in bytes. `empty`, `zeros`, `full`, `to_device` and `empty_pitched` create arrays.
    Indexing an array with ints, slices and None, or with the name of a field of a structured dtype, returns a view of
    the same memory. Assigning to an index copies into the view: `x[2:5] = values`. The pointer of an array without
    elements is 0.
    """

    __slots__ = {"_base": "The owner of the memory, like `base`."}

    def __init__(
        self,
        pointer: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        nbytes: int,
        device: Device,
        stream: Stream,
        strides: tuple[int, ...] | None = None,
        base: DeviceArray | Allocation | None = None,
    ) -> None:
        # Set before `_value`, because the finalizer reads both, even if an interrupt ends this constructor early.
        self._owned = base is None
        self._value = pointer
        self._address = pointer if nbytes else 0
        self._origin: Origin | None = None
        self._ready_on = device if base is None else None
        self._strides = strides
        self._shape = shape
        self._dtype = dtype
        self._nbytes = nbytes
        self._is_contiguous = strides is None or shapes.is_contiguous(shape, strides, dtype.itemsize)
        self._device = device
        self._stream = stream
        self._base = base

    @classmethod
    def borrow(
        cls,
        pointer: int,
        shape: shapes.Shape,
        dtype: DTypeLike,
        *,
        strides: tuple[int, ...] | None = None,
        owner: Any = None,
        device: Device | None = None,
    ) -> DeviceArray:
        """Wrap device memory that is owned elsewhere as an array; this package never frees the memory.

        `pointer` is the address of the first element, and `strides` are in bytes. Along an axis with a negative stride,
        the elements come before the first one. In two or more dimensions, the pitch must be at least the size of a row.
        `owner` is kept alive with the array.
        """
        call = "DeviceArray.borrow"
        pointer = arguments.integer(call, "pointer", pointer, 0, 2**64 - 1)
        sizes, kind, nbytes = arguments.layout(call, shape, dtype)
        if strides is not None:
            strides = arguments.integers(call, "strides", strides, len(sizes))
            _check_pitch(call, sizes, strides, kind.itemsize)
        if device is None:
            device = current_device()
        arguments.instance(call, "device", device, Device)
        base = BorrowedAllocation(pointer, device, owner)
        return cls(pointer, sizes, kind, nbytes, device, legacy_default, strides, base)

    # -- attributes ----------------------------------------------------------------------------

    @property
    def pointer(self) -> int:
        """The device address of the first element (CUdeviceptr); raises ValueError when closed."""
        if self.closed:
            raise ValueError(f"this DeviceArray is closed{self._closed_by() or KEEP_OPEN}")
        return self._address

    handle = pointer
    """The same as `pointer`, under the name that other objects use for the argument of raw calls."""

    @property
    def base(self) -> DeviceArray | Allocation | None:
        """The owner of the memory: the array of which this is a view, an allocation, or None for the array itself."""
        return self._base

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("a DeviceArray of shape () has no length")
        return self._shape[0]

    def __repr__(self) -> str:
        place = f"at {self._address:#x} on device {self._device.ordinal}"
        return f"<DeviceArray {self._shape} {self._dtype} {f'closed{self._closed_by()}' if self.closed else place}>"

    def _repr_html_(self) -> str:
        from ..pages.tables import facts  # imported late: only notebooks need it

        return facts(
            {
                "shape": f"{self._shape}{', closed' if self.closed else ''}",
                "dtype": str(self._dtype),
                "bytes": f"{self._nbytes:,}",
                "strides": "" if self._is_contiguous else str(self.strides),
                "device": f"{self._device.ordinal}: {self._device.name}",
            }
        )

    # -- views ---------------------------------------------------------------------------------

    def _view(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None, offset: int
    ) -> DeviceArray:
        """Return a view that begins `offset` bytes after this array's first element."""
        base = self._base if isinstance(self._base, DeviceArray) else self
        nbytes = math.prod(shape) * dtype.itemsize
        return DeviceArray(self.pointer + offset, shape, dtype, nbytes, self._device, self._stream, strides, base)

    # -- data ----------------------------------------------------------------------------------

    def to_host(
        self, out: NDArray[Any] | None = None, *surplus: Never, stream: Stream | None = None, **foreign: Never
    ) -> NDArray[Any]:
        """Copy to the host and return the NumPy array: `out`, or a new array of this shape and dtype.

        Waits for the copy, unless both a `stream` and a pinned `out` are given: the data are then complete once that
        stream is synchronised. Without `stream`, the array's own stream is used.
        """
        call = "DeviceArray.to_host"
        if surplus or foreign:
            raise unexpected(call, surplus, foreign)
        if out is None:
            if not self._is_contiguous and any(step < 0 for step in self.strides):
                # Few copies can fill the array in the order of the memory; NumPy then reverses the axes.
                return np.ascontiguousarray(self._forward.to_host(stream=stream)[self._reversals]).reshape(self._shape)
            out = np.empty(self._shape, self._dtype)
        else:
            if not isinstance(out, np.ndarray):
                remedy = "write stream= before the stream" if isinstance(out, Stream) else ""
                raise arguments.wrong_type(call, "out", "a NumPy array", out, remedy)
        host = self._host_region(call, "out", out, writes=True)
        queue = self._stream if stream is None else stream_of(call, stream)
        # A default stream is the default stream of the current device.
        with activated(self._device if stream is None else stream.device):
            transfer(host, self._region, queue)
            if stream is None or not is_pinned(out):
                queue.synchronize()
        return out

    def preview(self, count: int = 6) -> ArrayPreview:
        """Return the first values for display: `count` along each of the last two axes, and one along each other axis.

        Copies only these values, and waits for the copy. The result has a readable repr, a table for notebooks, and
        `values`.
        """
        count = arguments.integer("DeviceArray.preview", "count", count, 1)
        self.pointer  # noqa: B018  # raises when closed
        first = (0,) * (len(self._shape) - 2) + (slice(count),) * min(2, len(self._shape))
        values = self[first].to_host() if self._nbytes else np.empty(self._shape, self._dtype)
        from ..pages.preview import ArrayPreview  # imported late, as above

        return ArrayPreview(self._shape, values)

    def copy_from(self, source: Any, *surplus: Never, stream: Stream | None = None, **foreign: Never) -> Self:
        """Copy into this array, and return it.

        `source` must have the same shape and dtype. It is a host array, an object that NumPy converts to one, or
        another DeviceArray. If it is bytes, a bytearray, a memoryview or a ctypes object, of the same size in bytes as
        the array, its bytes are copied. A uint8 array also accepts the bytes of a structured NumPy scalar or array.

        Returns once a host source may be changed again, unless both a `stream` and a pinned source are given: the
        source must then not change until that stream is synchronised. A copy from a DeviceArray is queued, by default
        in this array's own stream.
        """
        call = "DeviceArray.copy_from"
        if surplus or foreign:
            raise unexpected(call, surplus, foreign)
        queue = self._stream if stream is None else stream_of(call, stream)
        to = self._region
        if isinstance(source, DeviceArray):
            region, pinned = arguments.opened(call, "source", source, DeviceArray)._region, False
            self._check_like(call, "source", source)
        else:
            host = arguments.host_array(call, "source", raw_bytes(call, "source", source, self._shape, self._dtype))
            if host.dtype is not self._dtype:
                host = structure_bytes(host, self._dtype)
            if not host.shape and self._shape:
                remedy = "fill(value) sets every element to one value"
                raise arguments.wrong_value(call, "source", f"of the array's shape {self._shape}", source, remedy)
            if host.shape == self._shape:
                if not self._is_contiguous and any(step < 0 for step in self.strides):
                    to, host = self._forward._region, host[self._reversals]
                if any(step <= 0 for step in host.strides):
                    host = np.ascontiguousarray(host).reshape(self._shape)
            region, pinned = self._host_region(call, "source", host), is_pinned(host)
        with activated(self._device if stream is None else stream.device):
            transfer(to, region, queue)
            if stream is None and pinned:
                queue.synchronize()
        return self

    def copy(self, *, stream: Stream | None = None) -> DeviceArray:
        """Return a contiguous copy, queued in `stream`, by default the array's own stream, and on the stream's device.

        Raises ValueError when closed.
        """
        queue = self._stream if stream is None else stream_of("DeviceArray.copy", stream)
        region = self._region
        with activated(self._device):
            result = allocate_array("DeviceArray.copy", self._shape, self._dtype, queue)
            transfer(result._region, region, queue)
        return result

    def fill(self, value: Any, *, stream: Stream | None = None, **foreign: Never) -> Self:
        """Set every element to `value`, and return the array. The fill is queued, by default in the array's own stream.

        Raises ValueError if the value does not fit the dtype.
        """
        call = "DeviceArray.fill"
        if foreign:
            raise unexpected(call, (), foreign)
        self.pointer  # noqa: B018  # raises when closed
        element = as_element(call, value, self._dtype)
        queue = self._stream if stream is None else stream_of(call, stream)
        if self._is_contiguous or fills_at_once(element):
            fill(self, element, queue)
        else:
            with activated(self._device), allocate_array(call, self._shape, self._dtype, queue) as filled:
                fill(filled, element, queue)
                transfer(self._region, filled._region, queue)
        return self

    @property
    def _region(self) -> StridedRegion:
        """The array as the source or destination of a copy; ValueError when closed."""
        return StridedRegion(self.pointer, self._shape, self.strides, self._dtype, True, self)

    def _host_region(self, call: str, name: str, host: NDArray[Any], *, writes: bool = False) -> StridedRegion:
        """Return the region of a host array for a copy of the whole device array, after checking shape and dtype."""
        region = host_region(call, name, host, writes=writes)
        self._check_like(call, name, host)
        return region

    def _check_like(self, call: str, name: str, other: DeviceArray | NDArray[Any]) -> None:
        if other.shape != self._shape:
            raise arguments.wrong_value(call, name, f"of the array's shape {self._shape}", other)
        if other.dtype != self._dtype:
            raise wrong_element_type(call, name, other, self._dtype)

    def _one_byte(self, stream: Stream) -> StridedRegion:
        return allocate_array("DeviceArray.__dlpack__", 1, np.uint8, stream)._region

    # -- lifetime ------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether this array, or the array of which it is a view, has been closed."""
        return self._value is None or (self._base is not None and self._base.closed)

    def _closed_by(self) -> str:
        return super()._closed_by() or ("" if self._base is None else self._base._closed_by())

    def close(self, *, stream: Stream | None = None) -> None:
        """Free the memory in the order of `stream`, by default the stream in which it was allocated.

        Views of the array are closed with it; closing a view closes only the view. A second call does nothing.
        """
        base = self._base
        # The stream is checked for a view as well, although closing a view queues no work.
        queue = None if stream is None or self.closed else stream_of("DeviceArray.close", stream)
        if base is None:
            if queue is not None:
                self._stream = queue
            self._ready_on = None
            Handle.close(self)
        elif isinstance(base, DeviceArray):
            Handle.close(self)
            self._base = None
        else:
            if queue is not None:
                base.end_in(queue)
            base.close()

    def _lose(self) -> None:
        self._ready_on = None
        super()._lose()

    def _drop(self) -> None:
        # The array has no references left, so no other thread can close it and no launch depends on it. So `close`,
        # which allows for both, is not needed.
        value, self._value = self._value, None
        self._give_back(value)

    def _give_back(self, value: Any) -> None:
        native, device = self._stream._queue, self._device
        # Fast path for the most common case: memory whose origin does not matter, as in `allocate_array`.
        if self._origin is None and native is not None and value and not captures and this_thread.device is device:
            (status,) = raw.cuMemFreeAsync(value, native)
            if status:
                raise failure(status, "cuMemFreeAsync")
        else:
            super()._give_back(value)

    def _release(self, value: Any) -> None:
        if value:  # 0 if the array has no bytes, or if an interrupt came before the allocation
            origin, self._origin = self._origin, None
            free(value, origin, self._device, self._stream)

    def __reduce__(self) -> str | tuple[Any, ...]:
        arguments.refuse_copy(self, "to_host() copies its contents")


def allocate_array(
    call: str, shape: shapes.Shape, dtype: DTypeLike, stream: Stream | None, pool: MemoryPool | None = None
) -> DeviceArray:
    """Check the arguments of a call, and allocate a contiguous, uninitialised array.

    The memory comes from `pool`, by default from the current pool of the stream's device.
    """
    sizes, kind, nbytes = arguments.layout(call, shape, dtype)
    queue = stream_of(call, stream)
    here, native = this_thread.device, queue._queue
    # Fast path for the most common allocation: no capture, the device current and using its default pool, and a stream
    # that is the same in every thread. The origin then matters only if another thread sets the device's pool in the
    # meantime. The array is created before its memory is allocated, so that an interrupt in the constructor leaks none.
    if (
        here is not None
        and (queue._device is None or queue._device is here)
        and pool is None
        and here._pool is None
        and native is not None
        and queue is not per_thread_default
        and not captures
        and 0 < nbytes <= MOST_BYTES
    ):
        array = DeviceArray(0, sizes, kind, nbytes, here, queue)
        status, address = raw.cuMemAllocAsync(nbytes, native)
        if not status:
            array._value = address
            array._address = int(address)
            given = here._pool
            if given is not None:
                array._origin = Origin(None, None, given._memory)
            return array
    if pool is not None:
        pool_of_kind(call, pool, "device")
        if pool.device is not queue.device:
            rule = f"be on device {queue.device.ordinal}, like 'stream'"
            raise arguments.unusable(call, "pool", rule, f"on device {pool.device.ordinal}")
    array = DeviceArray(0, sizes, kind, nbytes, queue.device, queue)
    allocate(array, pool)
    return array


def region_of(call: str, name: str, array: Any, *, writes: bool = False) -> StridedRegion:
    """Return the region of a call's argument, a DeviceArray or a NumPy array, after checking it."""
    if isinstance(array, DeviceArray):
        return arguments.opened(call, name, array, DeviceArray)._region
    return host_region(call, name, array, writes=writes)


def _check_pitch(call: str, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> None:
    """Raise ValueError if the rows of two or more dimensions overlap."""
    if len(shape) < 2 or 0 in shape or shape[-2] == 1:
        return
    width = (shape[-1] - 1) * abs(strides[-1]) + itemsize
    if abs(strides[-2]) < width:
        raise ValueError(
            f"{call}: argument 'strides' has a pitch of {strides[-2]} bytes, smaller than the row's {width} bytes"
        )

"""Copies of arrays and parts of arrays between host and device, and fills of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Never

from numpy import ndarray  # a global name is found many times as fast as an attribute of the module
from numpy.typing import NDArray

from .base import arguments
from .context.capture import captures, refuse
from .context.current import activated, this_thread
from .driver.calls import api, raw
from .driver.unwrap import failure
from .foreign.wrapping import is_foreign, wrap
from .hints import answers_keywords, unexpected
from .memory import staging
from .memory.array import DeviceArray, region_of
from .memory.fills import fill_words
from .memory.host_memory import freed_owner
from .memory.transfers import StridedRegion, check_same, raw_bytes, transfer
from .streams.event import Event
from .streams.stream import Stream, legacy_default, stream_of
from .textures.array_copies import ArrayEnd, copy_array
from .textures.cuda_array import CudaArray, end_of

_ON_DEVICE = (DeviceArray, CudaArray)
_SHAPED = (*_ON_DEVICE, ndarray)


def memcpy(dst: Any, src: Any, *surplus: Never, stream: Stream | None = None, **foreign: Never) -> None:
    """Copy between device and host arrays; the arguments determine the direction (cuMemcpy*Async).

    Each argument is a DeviceArray, a CudaArray, another library's array that `as_device_array` accepts, a NumPy array,
    or bytes, a bytearray, a memoryview or a ctypes object. In the last four cases, the bytes are taken as elements of
    the other array. Both arrays must have the same number of elements and the same dtype, and also the same shape
    unless both are contiguous.

    With `stream`, the copy is queued in it. Pinned host memory must then not change until the stream is synchronised;
    pageable memory may be reused at once. Without `stream`, the copy is complete on return, except between two device
    arrays, as in cudaMemcpy.

    Raises TypeError for other types or if the dtypes differ, and ValueError if the sizes differ, if the destination is
    read-only, or if a host array has negative or zero strides.
    """
    if surplus or foreign:
        raise unexpected("memcpy", surplus, foreign)
    queue = legacy_default if stream is None else stream
    if not _copy_whole(dst, src, queue):
        stream_of("memcpy", stream)
        dst, src = _as_arrays(dst, src, queue)
        if isinstance(dst, CudaArray) or isinstance(src, CudaArray):
            ends = end_of("memcpy", "dst", dst, writes=True), end_of("memcpy", "src", src)
            copy_array("memcpy", *ends, ("dst", "src"), queue)
        else:
            to, source = region_of("memcpy", "dst", dst, writes=True), region_of("memcpy", "src", src)
            check_same("memcpy", to, source)
            transfer(to, source, queue)
    if stream is None and not (isinstance(dst, _ON_DEVICE) and isinstance(src, _ON_DEVICE)):
        queue.synchronize()


def _as_arrays(dst: Any, src: Any, stream: Stream) -> tuple[Any, Any]:
    """Wrap other libraries' arrays, whose streams `stream` waits for, and view raw bytes as NumPy arrays."""
    to, source = (
        wrap("memcpy", name, array, stream, writes) if is_foreign(array) else array
        for name, array, writes in (("dst", dst, "it belongs to another library"), ("src", src, None))
    )
    if isinstance(source, _SHAPED):
        to = raw_bytes("memcpy", "dst", to, _shape_of(source), source.dtype)
    elif isinstance(to, _SHAPED):
        source = raw_bytes("memcpy", "src", source, _shape_of(to), to.dtype)
    return to, source


def _shape_of(array: DeviceArray | CudaArray | NDArray[Any]) -> tuple[int, ...]:
    return array._end.shape if isinstance(array, CudaArray) and not array.closed else array.shape


def _copy_whole(dst: Any, src: Any, stream: Any) -> bool:
    """Copy between whole arrays with one driver call; return False, without doing anything, for all other arguments.

    This is the fast path for the most common copies: to or from a device array, both arrays contiguous and of the same
    dtype, in an open stream of the current device, outside captures.
    """
    here, native = this_thread.device, stream._queue if isinstance(stream, Stream) else None
    if native is None or here is None or captures or (stream._device is not here and stream._device is not None):
        return False
    copy: Callable[..., tuple[Any, ...]]
    if type(dst) is DeviceArray:
        nbytes = dst.nbytes
        to = _device_address(dst, nbytes)
        if type(src) is DeviceArray:
            copy, source = raw.cuMemcpyDtoDAsync, _device_address(src, nbytes)
        else:
            copy, source = raw.cuMemcpyHtoDAsync, _host_address(src, nbytes, False)
    elif type(src) is DeviceArray:
        nbytes = src.nbytes
        copy, to, source = raw.cuMemcpyDtoHAsync, _host_address(dst, nbytes, True), _device_address(src, nbytes)
    else:
        return False
    if not to or not source or dst.dtype is not src.dtype:
        return False
    (status,) = copy(to, source, nbytes, native)
    if status:
        raise failure(status, copy.__name__)
    return True


def _device_address(array: DeviceArray, nbytes: int) -> int:
    """Return the address of an open contiguous array of `nbytes` bytes, or 0 for any other array."""
    return array._address if array.is_contiguous and array.nbytes == nbytes and not array.closed else 0


def _host_address(array: Any, nbytes: int, writes: bool) -> int:
    """Return the address of an open contiguous NumPy array of `nbytes` bytes that needs no staging, else 0."""
    if type(array) is not ndarray or array.nbytes != nbytes or nbytes >= staging.THRESHOLD:
        return 0
    flags = array.flags
    if not (flags.carray if writes else flags.c_contiguous):  # carray: contiguous, aligned and writeable
        return 0
    return 0 if freed_owner(array) else int(array.ctypes.data)


@answers_keywords("memcpy2d")
def memcpy2d(
    dst: DeviceArray | CudaArray | NDArray[Any],
    src: DeviceArray | CudaArray | NDArray[Any],
    shape: Sequence[int] | None = None,
    *,
    dst_start: Sequence[int] = (0, 0),
    src_start: Sequence[int] = (0, 0),
    stream: Stream | None = None,
) -> None:
    """Copy a window of a 2-D array into a window of another (cuMemcpy2DAsync), with pitches from the strides.

    `shape` is the (rows, columns) of the window in elements. By default, the window extends from `src_start` to the end
    of `src`. `dst_start` and `src_start` are the (row, column) at which the window begins in each array. Each row of
    the window must be contiguous in both arrays. A window of a CudaArray with several channels includes all channels,
    and a DeviceArray or NumPy array that is copied to or from it has them as an additional last axis. Raises
    ValueError, naming the array, if the window extends beyond it. Otherwise like `memcpy`.
    """
    _copy_window("memcpy2d", 2, (dst, src), shape, (dst_start, src_start), stream)


@answers_keywords("memcpy3d")
def memcpy3d(
    dst: DeviceArray | CudaArray | NDArray[Any],
    src: DeviceArray | CudaArray | NDArray[Any],
    shape: Sequence[int] | None = None,
    *,
    dst_start: Sequence[int] = (0, 0, 0),
    src_start: Sequence[int] = (0, 0, 0),
    stream: Stream | None = None,
) -> None:
    """Copy a box of a 3-D array into a box of another (cuMemcpy3DAsync), with pitches from the strides.

    The layers of a CudaArray count as an additional dimension. `shape` is the (planes, rows, columns) of the box in
    elements. By default, the box extends from `src_start` to the end of `src`. `dst_start` and `src_start` are the
    (plane, row, column) at which the box begins in each array. Otherwise like `memcpy2d`.
    """
    _copy_window("memcpy3d", 3, (dst, src), shape, (dst_start, src_start), stream)


def _copy_window(
    call: str,
    ndim: int,
    arrays: tuple[Any, Any],
    shape: Sequence[int] | None,
    starts: tuple[Sequence[int], Sequence[int]],
    stream: Stream | None,
) -> None:
    queue = stream_of(call, stream)
    ends = end_of(call, "dst", arrays[0], writes=True), end_of(call, "src", arrays[1])
    channels = next((end.channels for end in ends if isinstance(end, ArrayEnd)), ())
    for name, end in zip(("dst", "src"), ends, strict=True):
        if len(end.shape) != ndim + len(channels):
            rule = f"have {ndim + len(channels)} dimensions{', including one for the channels' if channels else ''}"
            raise arguments.unusable(call, name, rule, len(end.shape))
    places = [
        (*arguments.integers(call, f"{name}_start", start, ndim, least=0), *(0 for _ in channels))
        for name, start in zip(("dst", "src"), starts, strict=True)
    ]
    if shape is None:
        sizes = tuple(size - start for size, start in zip(ends[1].shape, places[1], strict=True))
        if min(sizes) < 0:
            rule = f"lie inside 'src' of shape {ends[1].shape}"
            raise arguments.unusable(call, "src_start", rule, tuple(starts[1]))
    else:
        sizes = (*arguments.integers(call, "shape", shape, ndim, least=0), *channels)
    to = _window(call, "dst", ends[0], places[0], sizes)
    source = _window(call, "src", ends[1], places[1], sizes)
    if isinstance(to, StridedRegion) and isinstance(source, StridedRegion):
        check_same(call, to, source)
        transfer(to, source, queue)
    elif 0 not in sizes:
        copy_array(call, to, source, ("dst", "src"), queue)
    if stream is None and not all(isinstance(array, _ON_DEVICE) for array in arrays):
        queue.synchronize()


def _window(
    call: str, name: str, region: ArrayEnd | StridedRegion, start: tuple[int, ...], sizes: tuple[int, ...]
) -> ArrayEnd | StridedRegion:
    """Return the part of a region that a window covers, after checking that it is inside and has contiguous rows."""
    if any(first + size > whole for first, size, whole in zip(start, sizes, region.shape, strict=True)):
        window = f"{' x '.join(map(str, sizes))} elements at {name}_start={start}"
        raise arguments.unusable(call, name, f"have a shape that contains the window of {window}", region.shape)
    if isinstance(region, ArrayEnd):
        return region.part(start, sizes)
    itemsize = region.dtype.itemsize
    if 0 not in sizes and sizes[-1] > 1 and region.strides[-1] != itemsize:
        rule = f"have rows of adjacent elements, {itemsize} bytes each"
        raise arguments.unusable(call, name, rule, f"{region.strides[-1]} bytes apart", "use memcpy")
    offset = sum(first * step for first, step in zip(start, region.strides, strict=True))
    return region.at(offset)._replace(shape=sizes)


def memcpy_peer(dst: DeviceArray, src: DeviceArray, *, stream: Stream | None = None) -> None:
    """Copy an array on one device to an array on another, with or without peer access (cuMemcpyPeerAsync).

    Both arrays must be contiguous and have the same size and dtype. With `stream`, the copy is queued in that stream.
    Without it, the copy is ordered in the default streams of both devices, as with cudaMemcpyPeer. The host does not
    wait.

    Raises TypeError for anything that is not a DeviceArray or if the dtypes differ, and ValueError if the sizes differ
    or an array is not contiguous. Raises CaptureError while the stream is being captured, because NVIDIA's driver
    cannot capture this copy.
    """
    call = "memcpy_peer"
    for name, array in (("dst", dst), ("src", src)):
        arguments.opened(call, name, array, DeviceArray)
        arguments.contiguous(call, name, array, "make a contiguous copy, or enable peer access and use memcpy")
    check_same(call, dst._region, src._region)
    handle = stream_of(call, stream).handle
    if not src.nbytes:
        return
    places = (dst.pointer, dst.device.context, src.pointer, src.device.context, src.nbytes)
    if stream is not None:
        refuse(handle, call, "use memcpy")
        with activated(stream.device):
            api.cuMemcpyPeerAsync(*places, handle)
        return
    # The driver's own cuMemcpyPeer does not promise to wait for the destination's device.
    with activated(dst.device), Event(timing=False) as before:
        before.record()
        with activated(src.device), Event(timing=False) as after:
            legacy_default.wait(before)
            api.cuMemcpyPeerAsync(*places, handle)
            after.record()
            with activated(dst.device):
                legacy_default.wait(after)


def memset(dst: DeviceArray, value: Any, *surplus: Never, stream: Stream | None = None, **foreign: Never) -> None:
    """Set every element to `value`, for dtypes of 8, 16 or 32 bits (cuMemsetD8Async and related functions).

    2-D arrays with padded rows and slices of them are filled in one call (cuMemsetD2D8Async and related functions).
    Wider dtypes accept only values whose 32-bit words are all equal, such as 0; for others use `DeviceArray.fill`.
    Without `stream` the fill is queued in the legacy default stream. Like cudaMemset, the call returns before the fill
    is done. Raises ValueError if the value does not fit the dtype, and TypeError for arguments of other types.
    """
    if surplus or foreign:
        raise unexpected("memset", surplus, foreign)
    arguments.opened("memset", "dst", dst, DeviceArray)
    queue = stream_of("memset", stream)
    if not fill_words(dst, value, queue):
        raise ValueError(
            f"memset: argument 'value' must repeat a pattern of 8, 16 or 32 bits, and {value!r} as {dst.dtype} does "
            "not; use DeviceArray.fill"
        )

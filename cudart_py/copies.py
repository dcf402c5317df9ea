"""Copies between host and device, of whole arrays and of windows of them."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _shapes, arguments, errors, staging
from ._driver import api, raw
from .array import DeviceArray
from .capture import captures, hold_copy
from .device import _thread as this_thread
from .device import activated, is_current
from .event import Event
from .host_memory import PinnedMemory
from .stream import Stream, legacy_default, stream_handle

__all__ = ["check_end", "memcpy", "memcpy2d", "memcpy3d", "memcpy_peer"]

# cuMemcpy2D's own limit on pitches (CU_DEVICE_ATTRIBUTE_MAX_PITCH) is this on every device so far.
_MAX_PITCH = 2**31 - 1
_NO_BYTES = ctypes.c_char * 0
_ndarray: Any = np.ndarray


class _Side(NamedTuple):
    """One end of a copy: where it starts, how it steps, and in which memory it lies."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    on_device: bool
    dtype: np.dtype[Any]

    def at(self, offset: int) -> _Side:
        return self._replace(address=self.address + offset)


def memcpy(dst: DeviceArray | NDArray[Any], src: DeviceArray | NDArray[Any], *, stream: Stream | None = None) -> None:
    """Copy between device and host arrays in any direction, found from the arguments (cuMemcpy*Async).

    Both have the same number of elements and the same dtype; the same shape too unless both are
    contiguous. With `stream` the copy is queued there, and pinned host memory must stay as it is until
    the stream is synchronised; pageable memory may be reused at once. Without it the copy is done on
    return, except between two device arrays, as in cudaMemcpy.

    Raises TypeError for other types and for different dtypes, ValueError for different sizes, a
    read-only destination, and host arrays with negative or zero strides.
    """
    # The copies that have to be quickest in the fewest steps: of whole arrays, pinned ones or in one piece, in a stream
    # of their device and outside of captures. What is different lacks an attribute, or is seen not to be so. A copy may
    # be queued whatever device is current, but not where none is yet. Each direction asks for its attributes itself,
    # since the interpreter finds one sooner where it meets objects of one class only.
    if stream is not None and not captures:
        to: Any = dst
        source: Any = src
        try:
            native = stream._queue
            if to.__class__ is _ndarray:
                memory = to.base
                if (
                    memory.__class__ is PinnedMemory
                    and memory.nbytes == source._flat
                    and source.dtype is to.dtype
                    and to.flags.carray  # in one piece, and may be written
                    and source.home is stream._device
                    and native is not None
                ):
                    (status,) = raw.cuMemcpyDtoHAsync(memory._value, source._native, memory.nbytes, native)
                    if not status:
                        return
                    _check_queued(status, "cuMemcpyDtoHAsync")
            elif source.__class__ is _ndarray:
                memory = source.base
                if (
                    memory.__class__ is PinnedMemory
                    and memory.nbytes == to._flat
                    and source.dtype is to.dtype
                    and source.flags.c_contiguous
                    and to.home is stream._device
                    and native is not None
                ):
                    (status,) = raw.cuMemcpyHtoDAsync(to._native, memory._value, memory.nbytes, native)
                    if not status:
                        return
                    _check_queued(status, "cuMemcpyHtoDAsync")
            else:
                nbytes = to._flat
                if (
                    nbytes
                    and source._flat == nbytes
                    and source.dtype is to.dtype
                    and source.home is to.home is stream._device
                    and native is not None
                ):
                    (status,) = raw.cuMemcpyDtoDAsync(to._native, source._native, nbytes, native)
                    if not status:
                        return
                    _check_queued(status, "cuMemcpyDtoDAsync")
        except AttributeError:
            pass
    if not captures and _copy_plain(dst, src, stream):
        return
    handle = stream_handle("memcpy", stream)
    there, here = _side("memcpy", "dst", dst, writes=True), _side("memcpy", "src", src)
    _check_same("memcpy", there, here)
    if captures:
        hold_copy(handle, dst, src)
    _queue(there, here, stream, handle)


def _check_queued(status: Any, name: str) -> None:
    """Raise what the driver said, unless it may be for want of a current device: then the copy is made another way."""
    if this_thread.device is not None:
        raise errors.failure(status, name)


def _copy_plain(dst: Any, src: Any, stream: Stream | None) -> bool:
    """Make the commonest copy in the fewest steps: between whole arrays of one shape, one of them on the device.

    Return False, with nothing done, for all that is different or wrong.
    """
    where = legacy_default if stream is None else stream
    if not isinstance(where, Stream) or where._value is None or not is_current(where._device):
        return False
    native = where._queue if where._queue is not None else where.native
    if isinstance(dst, DeviceArray):
        nbytes = dst._flat
        if not nbytes or dst.home is False:
            return False
        to_device, to = True, dst._pointer
    elif dst.__class__ is np.ndarray:
        flags = dst.flags
        if not flags.c_contiguous or not flags.writeable:
            return False
        nbytes, to_device, to = dst.nbytes, False, None
    else:
        return False
    if isinstance(src, DeviceArray):
        if not src._flat or src.home is False:
            return False
        from_device, source = True, src._pointer
    elif src.__class__ is np.ndarray and to_device and src.flags.c_contiguous:
        from_device, source = False, None
    else:
        return False
    if dst.dtype is not src.dtype or dst.shape != src.shape:
        return False
    if to_device and from_device:
        name, (status,) = "cuMemcpyDtoDAsync", raw.cuMemcpyDtoDAsync(to, source, nbytes, native)
    elif nbytes >= staging.THRESHOLD:
        return False
    elif to_device:
        name, (status,) = "cuMemcpyHtoDAsync", raw.cuMemcpyHtoDAsync(to, _host_address(src), nbytes, native)
    else:
        name, (status,) = "cuMemcpyDtoHAsync", raw.cuMemcpyDtoHAsync(_host_address(dst), source, nbytes, native)
    if status:
        raise errors.failure(status, name)
    if stream is None and not (to_device and from_device):
        where.synchronize()
    return True


def _host_address(array: NDArray[Any]) -> int:
    """Return the address of an array in one piece, several times as fast as `array.ctypes.data`."""
    try:
        return ctypes.addressof(_NO_BYTES.from_buffer(array))  # type: ignore[arg-type]  # arrays are buffers
    except (TypeError, ValueError):  # it is read-only, or of a dtype that buffers do not know
        return int(array.ctypes.data)


def memcpy2d(
    dst: DeviceArray | NDArray[Any],
    src: DeviceArray | NDArray[Any],
    shape: Sequence[int] | None = None,
    *,
    dst_start: Sequence[int] = (0, 0),
    src_start: Sequence[int] = (0, 0),
    stream: Stream | None = None,
) -> None:
    """Copy a window of a 2-D array into a window of another (cuMemcpy2DAsync); pitches come from the strides.

    `shape` is the window's (rows, columns) in elements, by default all that lies behind the starts of
    `src`; `dst_start` and `src_start` are the (row, column) where it begins in each. The elements of a
    row are contiguous in both. Otherwise as `memcpy`. Raises ValueError, naming the array, for a window
    that reaches outside it.
    """
    _copy_window(2, dst, src, shape, {"dst": dst_start, "src": src_start}, stream)


def memcpy3d(
    dst: DeviceArray | NDArray[Any],
    src: DeviceArray | NDArray[Any],
    shape: Sequence[int] | None = None,
    *,
    dst_start: Sequence[int] = (0, 0, 0),
    src_start: Sequence[int] = (0, 0, 0),
    stream: Stream | None = None,
) -> None:
    """Copy a box of a 3-D array into a box of another (cuMemcpy3DAsync); pitches come from the strides.

    `shape` is the box's (planes, rows, columns) in elements, by default all that lies behind the starts of `src`;
    `dst_start` and `src_start` are the (plane, row, column) where it begins in each. Otherwise as `memcpy2d`.
    """
    _copy_window(3, dst, src, shape, {"dst": dst_start, "src": src_start}, stream)


def memcpy_peer(dst: DeviceArray, src: DeviceArray, *, stream: Stream | None = None) -> None:
    """Copy an array of one device to an array of another, with or without peer access (cuMemcpyPeerAsync).

    Both are contiguous and have the same size and dtype. With `stream` the copy is queued there; without it, it has
    its place in the default streams of both devices, as cudaMemcpyPeer. The host does not wait.

    Raises TypeError for what is no DeviceArray and for different dtypes, ValueError for different sizes and for
    arrays that are not contiguous.
    """
    call = "memcpy_peer"
    for name, array in (("dst", dst), ("src", src)):
        arguments.opened(call, name, array, DeviceArray)
        if not array.is_contiguous:
            raise ValueError(
                f"{call}: argument {name!r} is not contiguous: copy it in one piece, or enable peer access and use "
                "memcpy"
            )
    to, source = _side(call, "dst", dst, writes=True), _side(call, "src", src)
    _check_same(call, to, source)
    handle = stream_handle(call, stream)
    if captures:
        hold_copy(handle, dst, src)
    if not src.nbytes:
        return
    places = (to.address, dst.device.context, source.address, src.device.context, src.nbytes)
    if stream is not None:
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


def _copy_window(
    ndim: int, dst: Any, src: Any, shape: Sequence[int] | None, starts: dict[str, Sequence[int]], stream: Stream | None
) -> None:
    call = f"memcpy{ndim}d"
    handle = stream_handle(call, stream)
    to, source = _side(call, "dst", dst, writes=True), _side(call, "src", src)
    for name, side in (("dst", to), ("src", source)):
        if len(side.shape) != ndim:
            raise ValueError(f"{call}: argument {name!r} must have {ndim} dimensions, not {len(side.shape)}")
    places = {name: arguments.integers(call, f"{name}_start", start, ndim, least=0) for name, start in starts.items()}
    if shape is None:
        sizes = tuple(size - start for size, start in zip(source.shape, places["src"], strict=True))
    else:
        sizes = arguments.integers(call, "shape", shape, ndim)
    window = {}
    for name, side in (("dst", to), ("src", source)):
        start = places[name]
        if any(
            first < 0 or size < 0 or first + size > whole
            for first, size, whole in zip(start, sizes, side.shape, strict=True)
        ):
            raise ValueError(
                f"{call}: the window of {' x '.join(map(str, sizes))} elements at {start} reaches outside {name} "
                f"of shape {side.shape}"
            )
        itemsize = side.dtype.itemsize
        if 0 not in sizes and sizes[-1] > 1 and side.strides[-1] != itemsize:
            raise ValueError(
                f"{call}: the elements of a row of {name} are {side.strides[-1]} bytes apart, not {itemsize}; "
                "use memcpy"
            )
        offset = 0 if 0 in sizes else sum(first * step for first, step in zip(start, side.strides, strict=True))
        window[name] = side.at(offset)._replace(shape=sizes)
    _check_same(call, window["dst"], window["src"])
    if captures:
        hold_copy(handle, dst, src)
    _queue(window["dst"], window["src"], stream, handle)


def check_end(call: str, name: str, host: NDArray[Any], like: DeviceArray, *, writes: bool = False) -> None:
    """Check the host's end of a copy of a whole array, in the name of another call's argument."""
    _side(call, name, host, writes=writes)
    if host.shape != like.shape:
        raise arguments.wrong_value(call, name, f"of the array's shape {like.shape}", host)
    if host.dtype != like.dtype:
        raise arguments.wrong_type(call, name, f"of the array's dtype {like.dtype}", host)


def _side(call: str, name: str, array: Any, *, writes: bool = False) -> _Side:
    if isinstance(array, DeviceArray):
        arguments.opened(call, name, array, DeviceArray)
        return _Side(array.pointer, array.shape, array.strides, True, array.dtype)
    arguments.instance(call, name, array, np.ndarray, "a DeviceArray or a NumPy array")
    if array.dtype.hasobject:
        raise TypeError(
            f"{call}: argument {name!r} has dtype {array.dtype}: Python objects cannot live in device memory"
        )
    if writes and not array.flags.writeable:
        raise ValueError(f"{call}: argument {name!r} is read-only")
    if array.size and any(step <= 0 and size > 1 for size, step in zip(array.shape, array.strides, strict=True)):
        raise ValueError(
            f"{call}: argument {name!r} has the strides {array.strides}, which a copy cannot follow; "
            "use numpy.ascontiguousarray"
        )
    return _Side(array.ctypes.data, array.shape, array.strides, False, array.dtype)


def _check_same(call: str, dst: _Side, src: _Side) -> None:
    if dst.dtype != src.dtype:
        raise TypeError(
            f"{call}: dst is {dst.dtype} and src {src.dtype}: a copy converts nothing; use .view(dtype) to copy bytes"
        )
    if dst.shape == src.shape:
        return
    flat = all(_shapes.is_contiguous(side.shape, side.strides, side.dtype.itemsize) for side in (dst, src))
    if not flat or np.prod(dst.shape, dtype=object) != np.prod(src.shape, dtype=object):
        raise ValueError(f"{call}: dst has shape {dst.shape} and src {src.shape}")


def _queue(dst: _Side, src: _Side, stream: Stream | None, handle: int) -> None:
    where = legacy_default if stream is None else stream
    with activated(where.device):
        _transfer(dst, src, handle)
        if stream is None and not (dst.on_device and src.on_device):
            where.synchronize()


def _transfer(dst: _Side, src: _Side, stream: int) -> None:
    """Queue the copies that make `dst` equal to `src`: as few and as wide as the strides allow."""
    width = dst.dtype.itemsize
    if 0 in dst.shape:
        return
    if dst.shape != src.shape:  # both contiguous
        size = int(np.prod(dst.shape, dtype=np.int64))
        dst, src = dst._replace(shape=(size,), strides=(width,)), src._replace(shape=(size,), strides=(width,))
    axes = [
        (size, to, source) for size, to, source in zip(dst.shape, dst.strides, src.strides, strict=True) if size > 1
    ]
    while axes and axes[-1][1] == axes[-1][2] == width:
        width *= axes.pop()[0]
    merged: list[tuple[int, int, int]] = []
    for size, to, source in axes:
        if merged and merged[-1][1] == size * to and merged[-1][2] == size * source:
            merged[-1] = (merged[-1][0] * size, to, source)
        else:
            merged.append((size, to, source))
    rows = merged.pop() if merged and max(merged[-1][1:]) <= _MAX_PITCH else None
    planes = merged.pop() if rows is not None and merged and _is_box(width, rows, merged[-1]) else None
    for position in itertools.product(*(range(size) for size, _, _ in merged)):
        to = sum(p * axis[1] for p, axis in zip(position, merged, strict=True))
        source = sum(p * axis[2] for p, axis in zip(position, merged, strict=True))
        if rows is None:
            _copy(dst.at(to), src.at(source), width, stream)
        elif planes is None:
            _copy_rows(dst.at(to), src.at(source), width, rows, stream)
        else:
            _copy_planes(dst.at(to), src.at(source), width, rows, planes, stream)


def _copy(dst: _Side, src: _Side, nbytes: int, stream: int) -> None:
    if dst.on_device and src.on_device:
        api.cuMemcpyDtoDAsync(dst.address, src.address, nbytes, stream)
    elif dst.on_device:
        if nbytes < staging.THRESHOLD or not staging.upload(dst.address, src.address, nbytes, stream):
            api.cuMemcpyHtoDAsync(dst.address, src.address, nbytes, stream)
    elif src.on_device:
        if nbytes < staging.THRESHOLD or not staging.download(dst.address, src.address, nbytes, stream):
            api.cuMemcpyDtoHAsync(dst.address, src.address, nbytes, stream)
    else:
        api.cuMemcpyAsync(dst.address, src.address, nbytes, stream)


def _copy_rows(dst: _Side, src: _Side, width: int, rows: tuple[int, int, int], stream: int) -> None:
    from cuda.bindings import driver as enums

    height, to_pitch, from_pitch = rows
    for pitch, side in ((to_pitch, "dst"), (from_pitch, "src")):
        if pitch < width:
            raise errors.InvalidValueError(
                f"the rows of {side} overlap: they begin {pitch} bytes apart, and each has {width}"
            )
    copy = enums.CUDA_MEMCPY2D()
    _set_ends(copy, dst, src)
    copy.srcPitch, copy.dstPitch = from_pitch, to_pitch
    copy.WidthInBytes, copy.Height = width, height
    api.cuMemcpy2DAsync(copy, stream)


def _is_box(width: int, rows: tuple[int, int, int], planes: tuple[int, int, int]) -> bool:
    """Tell whether cuMemcpy3D can express these axes: planes begin a whole number of rows apart."""
    height = rows[0]
    return all(
        pitch >= width and step % pitch == 0 and step // pitch >= height
        for pitch, step in zip(rows[1:], planes[1:], strict=True)
    )


def _copy_planes(
    dst: _Side, src: _Side, width: int, rows: tuple[int, int, int], planes: tuple[int, int, int], stream: int
) -> None:
    from cuda.bindings import driver as enums

    copy = enums.CUDA_MEMCPY3D()
    _set_ends(copy, dst, src)
    copy.dstPitch, copy.srcPitch = rows[1:]
    copy.dstHeight, copy.srcHeight = planes[1] // rows[1], planes[2] // rows[2]
    copy.WidthInBytes, copy.Height, copy.Depth = width, rows[0], planes[0]
    api.cuMemcpy3DAsync(copy, stream)


def _set_ends(copy: Any, dst: _Side, src: _Side) -> None:
    from cuda.bindings import driver as enums

    kinds = enums.CUmemorytype
    if src.on_device:
        copy.srcMemoryType, copy.srcDevice = kinds.CU_MEMORYTYPE_DEVICE, src.address
    else:
        copy.srcMemoryType, copy.srcHost = kinds.CU_MEMORYTYPE_HOST, src.address
    if dst.on_device:
        copy.dstMemoryType, copy.dstDevice = kinds.CU_MEMORYTYPE_DEVICE, dst.address
    else:
        copy.dstMemoryType, copy.dstHost = kinds.CU_MEMORYTYPE_HOST, dst.address

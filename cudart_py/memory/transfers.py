"""Transfers: the driver's copies that make one strided piece of memory equal to another.

A `StridedRegion` describes each end, so this module does not depend on device arrays.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import errors
from ..base import arguments, shapes
from ..context.capture import captures, find, hold, hold_node
from ..context.current import activated
from ..driver import enums
from ..driver.calls import api
from ..streams.stream import Stream
from . import staging
from .host_memory import freed_owner, pinned_owner

# The maximum pitch of cuMemcpy2D in bytes (CU_DEVICE_ATTRIBUTE_MAX_PITCH), the same on every device so far.
_MAX_PITCH = 2**31 - 1

# The types of objects that have bytes but no dtype.
_BYTES = (bytes, bytearray, memoryview, ctypes.Array, ctypes.Structure, ctypes.Union, ctypes._SimpleCData)


class StridedRegion(NamedTuple):
    """The source or destination of a copy: its address, shape, strides in bytes, dtype, and whether it is on a device.

    `array` is the object that a graph keeps alive with a captured copy.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    on_device: bool
    array: Any

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are contiguous in C order."""
        return shapes.is_contiguous(self.shape, self.strides, self.dtype.itemsize)

    def at(self, offset: int) -> StridedRegion:
        """Return the same region, moved by `offset` bytes."""
        return self._replace(address=self.address + offset) if offset else self


class _Axis(NamedTuple):
    """An axis that both regions share, with the bytes from one element to the next in each region."""

    size: int
    dst_step: int
    src_step: int

    @property
    def is_pitch(self) -> bool:
        """Whether a copy of rows can repeat along the axis: it only goes forward, and not too far."""
        return max(self.dst_step, self.src_step) <= _MAX_PITCH and self.src_step >= 0


def host_region(call: str, name: str, array: Any, *, writes: bool) -> StridedRegion:
    """Return the region of a call's argument, a NumPy array; TypeError or ValueError if it cannot be copied."""
    arguments.instance(call, name, array, np.ndarray, "a DeviceArray or a NumPy array")
    if array.dtype.hasobject:
        raise TypeError(
            f"{call}: argument {name!r} has dtype {array.dtype}: Python objects cannot be stored in device memory"
        )
    if writes and not array.flags.writeable:
        raise ValueError(f"{call}: argument {name!r} is read-only")
    freed = freed_owner(array)
    if freed is not None:
        raise arguments.wrong_value(call, name, "open", array, f"its {type(freed).__name__} was closed")
    if array.size and any(step <= 0 and size > 1 for size, step in zip(array.shape, array.strides, strict=True)):
        strides = f"strides of {array.strides} bytes"
        raise arguments.unusable(call, name, "have positive strides", strides, "use numpy.ascontiguousarray")
    return StridedRegion(array.ctypes.data, array.shape, array.strides, array.dtype, False, array)


def raw_bytes(call: str, name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """View bytes, a bytearray, a memoryview or a ctypes object as an array; return other objects unchanged.

    The array has the given shape and dtype. Raises ValueError if the object does not have that many bytes, or if they
    are not contiguous.
    """
    if not isinstance(value, _BYTES):
        return value
    try:
        flat = np.frombuffer(memoryview(value), np.uint8)
    except (BufferError, ValueError) as error:  # a memoryview with gaps
        raise arguments.wrong_value(call, name, "contiguous", value) from error
    nbytes = math.prod(shape) * dtype.itemsize
    if flat.size != nbytes:
        raise arguments.unusable(call, name, f"have {nbytes} bytes, like the array", flat.size)
    return flat.view(dtype).reshape(shape) if nbytes else np.empty(shape, dtype)


def structure_bytes(host: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the bytes of a structured array if `dtype` is uint8; return other arrays unchanged.

    This allows copies to a module's variable whose type is a structure: such a variable is an array of bytes.
    """
    if host.dtype.names and dtype == np.uint8:
        return host.ravel().view(np.uint8)
    return host


def wrong_element_type(call: str, name: str, array: Any, dtype: np.dtype[Any], other: str = "the array") -> TypeError:
    """Return the exception for a copy from or to a host or device array whose dtype differs from the other array's.

    `dtype` is that of the other array, which `other` names in the message. The remedy is how to convert the elements,
    since copies do not.
    """
    if array.dtype.names or dtype.names:
        remedy = "view(dtype) views the same memory as another dtype"
    elif not isinstance(array, np.ndarray):
        remedy = f"copies do not convert elements, but {name}.to_host().astype(np.{dtype}) converts them on the host"
    elif not array.shape:
        remedy = f"write fill({array.item()!r}) to convert a number"
    elif name == "out":
        remedy = f"make it with dtype=np.{dtype}"
    else:
        remedy = f"copies do not convert elements, but np.array({name}, np.{dtype}) converts them"
    return arguments.wrong_dtype(call, name, f"{dtype}, like {other}", array.dtype, remedy)


def check_same(call: str, dst: StridedRegion, src: StridedRegion) -> None:
    """Raise TypeError for regions of different dtypes, and ValueError for regions whose shapes do not match.

    The shapes match if they are equal, or if both regions are contiguous and have the same number of elements.
    """
    if dst.dtype != src.dtype:
        raise wrong_element_type(call, "src", src if src.on_device else src.array, dst.dtype, "'dst'")
    if dst.shape == src.shape:
        return
    if math.prod(dst.shape) != math.prod(src.shape) or not (dst.is_contiguous and src.is_contiguous):
        raise arguments.unusable(call, "dst", f"have shape {src.shape} like 'src'", dst.shape)


def transfer(dst: StridedRegion, src: StridedRegion, stream: Stream) -> None:
    """Queue the copies that make `dst` equal to `src`: as few and as wide as the strides allow.

    Both must have passed `check_same`. If the stream records into a graph, the graph keeps both arrays alive, and
    pageable host memory raises CaptureError.
    """
    owners = page_locked_owners(stream.handle, dst.array, src.array) if captures else ()
    dst, src = _along_destination(dst, src)
    width, axes = _bytes_and_axes(dst, src)
    if not width:
        return
    axes.sort(key=lambda axis: axis.src_step >= 0)  # the driver's copies repeat along the last axes, forward only
    rows = axes.pop() if axes and axes[-1].is_pitch else None
    planes = axes.pop() if rows is not None and axes and _are_planes(width, rows, axes[-1]) else None
    with activated(stream.device):
        for position in itertools.product(*(range(axis.size) for axis in axes)):
            to = dst.at(sum(place * axis.dst_step for place, axis in zip(position, axes, strict=True)))
            source = src.at(sum(place * axis.src_step for place, axis in zip(position, axes, strict=True)))
            if rows is None:
                _copy(to, source, width, stream)
            elif planes is None:
                _copy_rows(to, source, width, rows, stream)
            else:
                _copy_planes(to, source, width, rows, planes, stream)
    if captures:
        (hold if axes else hold_node)(stream.handle, "a copy", (dst.array, src.array, *owners))


def page_locked_owners(handle: int, dst: Any, src: Any) -> tuple[Any, ...]:
    """Return the page-locked memory of a copy's host arrays if the stream records into a graph, otherwise nothing.

    Raises CaptureError for pageable host memory, because it may have changed by the time the graph runs.
    """
    if find(handle) is None:
        return ()
    owners = []
    for array in (dst, src):
        if isinstance(array, np.ndarray) and array.size:
            owner = pinned_owner(array)
            if owner is None:
                raise errors.CaptureError(
                    "a copy of pageable host memory cannot be captured, since the memory may have changed by the "
                    "time it runs; use arrays from pinned_empty"
                )
            owners.append(owner)
    return tuple(owners)


def _along_destination(dst: StridedRegion, src: StridedRegion) -> tuple[StridedRegion, StridedRegion]:
    """Reverse, in both regions, the axes along which the destination goes backward."""
    backward = [step < 0 for step in dst.strides]
    if True not in backward or 0 in dst.shape:
        return dst, src
    return _reversed(dst, backward), _reversed(src, backward)


def _reversed(region: StridedRegion, backward: list[bool]) -> StridedRegion:
    axes = list(zip(backward, region.shape, region.strides, strict=True))
    offset = sum((size - 1) * step for turned, size, step in axes if turned)
    return region.at(offset)._replace(strides=tuple(-step if turned else step for turned, _, step in axes))


def _bytes_and_axes(dst: StridedRegion, src: StridedRegion) -> tuple[int, list[_Axis]]:
    """Return the bytes per piece that is contiguous in both regions, and the axes along which the pieces repeat."""
    width = dst.dtype.itemsize
    if dst.is_contiguous and src.is_contiguous:
        return width * math.prod(dst.shape), []
    axes = [_Axis(*axis) for axis in zip(dst.shape, dst.strides, src.strides, strict=True) if axis[0] > 1]
    while axes and axes[-1].dst_step == axes[-1].src_step == width:
        width *= axes.pop().size
    merged: list[_Axis] = []
    for axis in axes:
        if merged and merged[-1][1:] == (axis.size * axis.dst_step, axis.size * axis.src_step):
            axis = axis._replace(size=merged.pop().size * axis.size)
        merged.append(axis)
    return width, merged


def _copy(dst: StridedRegion, src: StridedRegion, nbytes: int, stream: Stream) -> None:
    handle, native = stream.handle, stream.native
    if dst.on_device and src.on_device:
        api.cuMemcpyDtoDAsync(dst.address, src.address, nbytes, native)
    elif dst.on_device:
        if nbytes < staging.THRESHOLD or not staging.upload(dst.address, src.address, nbytes, handle):
            api.cuMemcpyHtoDAsync(dst.address, src.address, nbytes, native)
    elif src.on_device:
        if nbytes < staging.THRESHOLD or not staging.download(dst.address, src.address, nbytes, handle):
            api.cuMemcpyDtoHAsync(dst.address, src.address, nbytes, native)
    else:
        api.cuMemcpyAsync(dst.address, src.address, nbytes, native)


def _copy_rows(dst: StridedRegion, src: StridedRegion, width: int, rows: _Axis, stream: Stream) -> None:
    for pitch, name in ((rows.dst_step, "dst"), (rows.src_step, "src")):
        if pitch < width:
            raise errors.InvalidValueError(
                f"the rows of {name} overlap: they begin {pitch} bytes apart, but each has {width} bytes"
            )
    copy = enums.CUDA_MEMCPY2D()
    set_regions(copy, dst, src, enums.CUmemorytype)
    copy.dstPitch, copy.srcPitch = rows.dst_step, rows.src_step
    copy.WidthInBytes, copy.Height = width, rows.size
    api.cuMemcpy2DAsync(copy, stream.native)


def _are_planes(width: int, rows: _Axis, axis: _Axis) -> bool:
    """Return whether cuMemcpy3D can express an axis: in both regions, planes begin a whole number of rows apart."""
    return all(
        pitch >= width and step % pitch == 0 and step // pitch >= rows.size
        for pitch, step in zip(rows[1:], axis[1:], strict=True)
    )


def _copy_planes(
    dst: StridedRegion, src: StridedRegion, width: int, rows: _Axis, planes: _Axis, stream: Stream
) -> None:
    copy = enums.CUDA_MEMCPY3D()
    set_regions(copy, dst, src, enums.CUmemorytype)
    copy.dstPitch, copy.srcPitch = rows.dst_step, rows.src_step
    copy.dstHeight, copy.srcHeight = planes.dst_step // rows.dst_step, planes.src_step // rows.src_step
    copy.WidthInBytes, copy.Height, copy.Depth = width, rows.size, planes.size
    api.cuMemcpy3DAsync(copy, stream.native)


def set_regions(copy: Any, dst: StridedRegion, src: StridedRegion, kinds: Any) -> None:
    """Set the memory types and start addresses of a CUDA_MEMCPY2D or CUDA_MEMCPY3D; `kinds` is CUmemorytype."""
    if src.on_device:
        copy.srcMemoryType, copy.srcDevice = kinds.CU_MEMORYTYPE_DEVICE, src.address
    else:
        copy.srcMemoryType, copy.srcHost = kinds.CU_MEMORYTYPE_HOST, src.address
    if dst.on_device:
        copy.dstMemoryType, copy.dstDevice = kinds.CU_MEMORYTYPE_DEVICE, dst.address
    else:
        copy.dstMemoryType, copy.dstHost = kinds.CU_MEMORYTYPE_HOST, dst.address

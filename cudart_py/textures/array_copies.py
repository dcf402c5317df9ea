"""Copies to and from CUDA arrays, which have no addresses: the other end is linear memory or another CUDA array."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..base import arguments, shapes
from ..context.capture import captures, hold, hold_node
from ..context.current import activated
from ..driver import enums
from ..driver.calls import api
from ..memory.transfers import StridedRegion, page_locked_owners
from ..streams.stream import Stream


class ArrayEnd(NamedTuple):
    """A CUDA array, or a box inside it, as one end of a copy.

    `extents` are the driver's depth, height and width, 0 for dimensions that do not exist. `shape` and `dtype` describe
    a NumPy or device array with the same elements. `array` is the object that a graph keeps alive with a captured copy.
    `start` is the plane or layer, the row and the column where the box begins.
    """

    handle: int
    extents: tuple[int, int, int]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    array: Any
    start: tuple[int, int, int] = (0, 0, 0)

    def part(self, start: tuple[int, ...], sizes: tuple[int, ...]) -> ArrayEnd:
        """Return the box of these sizes that begins at `start` inside this one, with all channels."""
        place, size = iter(start), iter(sizes)
        z, y, x = (next(place) if extent else 0 for extent in self.extents)
        depth, height, width = (next(size) if extent else 0 for extent in self.extents)
        shape = (*sizes[: len(self.shape) - len(self.channels)], *self.channels)
        return self._replace(extents=(depth, height, width), shape=shape, start=(z, y, x))

    @property
    def channels(self) -> tuple[int, ...]:
        """The channel axis of `shape`, as a tuple; empty if elements have one channel."""
        return self.shape[len([extent for extent in self.extents if extent]) :]

    @property
    def box(self) -> tuple[int, int, int]:
        """The number of planes or layers, the rows per plane, and the bytes per row."""
        depth, height, width = (max(extent, 1) for extent in self.extents)
        channels = math.prod(self.shape) // (depth * height * width)
        return depth, height, width * channels * self.dtype.itemsize


class _Rows(NamedTuple):
    """Linear memory as one end of a copy, with the bytes from one row and plane of the array's box to the next."""

    region: StridedRegion
    pitch: int
    plane: int


def copy_array(
    call: str, dst: ArrayEnd | StridedRegion, src: ArrayEnd | StridedRegion, names: tuple[str, str], stream: Stream
) -> None:
    """Queue the copy that makes `dst` equal to `src`; at least one of them is a CUDA array.

    `names` are the names of `dst` and `src` in errors. If the stream records into a graph, the graph keeps both alive,
    and pageable host memory raises CaptureError. Raises TypeError for different dtypes, and ValueError for different
    shapes and for memory whose rows are not contiguous.
    """
    end = dst if isinstance(dst, ArrayEnd) else src
    assert isinstance(end, ArrayEnd)
    to, source = (_prepared(call, name, one, end) for name, one in zip(names, (dst, src), strict=True))
    owners = page_locked_owners(stream.handle, dst.array, src.array) if captures else ()
    depth, height, width = end.box
    keep = hold_node
    with activated(stream.device):
        if not end.extents[0]:
            _copy(enums.CUDA_MEMCPY2D(), to, source, (1, height, width), stream)
        elif all(isinstance(one, ArrayEnd) or _fit_planes(one, height) for one in (to, source)):
            _copy(enums.CUDA_MEMCPY3D(), to, source, (depth, height, width), stream)
        else:
            keep = hold
            for plane in range(depth):
                _copy(enums.CUDA_MEMCPY3D(), to, source, (1, height, width), stream, plane)
    if captures:
        keep(stream.handle, "a copy", (dst.array, src.array, *owners))


def _prepared(call: str, name: str, one: ArrayEnd | StridedRegion, end: ArrayEnd) -> ArrayEnd | _Rows:
    """Return one end of a copy, after checking that its dtype, shape and strides suit the CUDA array `end`."""
    if one.dtype != end.dtype:
        raise arguments.wrong_dtype(
            call, name, f"{end.dtype} like the CudaArray", one.dtype, "copies do not convert elements"
        )
    if isinstance(one, ArrayEnd):
        if one.shape != end.shape:
            raise arguments.unusable(call, name, f"have shape {end.shape} like the other CudaArray", one.shape)
        if one.extents != end.extents:
            raise arguments.unusable(call, name, "be layered if and only if the other CudaArray is")
        return one
    strides = one.strides
    if one.shape != end.shape:
        if math.prod(one.shape) != math.prod(end.shape) or not one.is_contiguous:
            raise arguments.unusable(call, name, f"have shape {end.shape} like the CudaArray", one.shape)
        strides = shapes.contiguous_strides(end.shape, end.dtype.itemsize)
    depth, height, _ = end.extents
    above = len([extent for extent in (depth, height) if extent])
    inner = shapes.contiguous_strides(end.shape[above:], end.dtype.itemsize)
    if any(
        size > 1 and step != want for size, step, want in zip(end.shape[above:], strides[above:], inner, strict=True)
    ):
        raise arguments.unusable(call, name, "have contiguous rows", f"strides of {strides} bytes")
    if min(strides, default=0) < 0:
        raise arguments.unusable(call, name, "have strides that are not negative", f"strides of {strides} bytes")
    row = end.box[2]
    if height > 1:
        pitch = strides[above - 1]
    elif depth > 1 and not height:
        # Between device memory and layers of one row, the driver uses only the pitch as the distance between layers.
        pitch = max(strides[0], row)
    else:
        pitch = row
    return _Rows(one, pitch, strides[0] if depth > 1 else pitch * max(height, 1))


def _fit_planes(rows: _Rows, height: int) -> bool:
    """Return whether planes begin a whole number of rows apart, as cuMemcpy3D requires."""
    return rows.plane % rows.pitch == 0 and rows.plane // rows.pitch >= height


def _copy(
    copy: Any,
    to: ArrayEnd | _Rows,
    source: ArrayEnd | _Rows,
    box: tuple[int, int, int],
    stream: Stream,
    plane: int = 0,
) -> None:
    kinds = enums.CUmemorytype
    three = isinstance(copy, enums.CUDA_MEMCPY3D)
    for which, one in (("dst", to), ("src", source)):
        if isinstance(one, ArrayEnd):
            z, y, x = one.start
            texel = one.box[2] // one.extents[2]
            values = {"MemoryType": kinds.CU_MEMORYTYPE_ARRAY, "Array": enums.CUarray(one.handle)}
            values |= {"XInBytes": x * texel, "Y": y}
            depths = {"Z": z + plane}
        else:
            place, kind = ("Device", "DEVICE") if one.region.on_device else ("Host", "HOST")
            address = one.region.address + plane * one.plane
            values = {"MemoryType": getattr(kinds, f"CU_MEMORYTYPE_{kind}"), place: address, "Pitch": one.pitch}
            depths = {"Height": one.plane // one.pitch if box[0] > 1 else box[1]}
        for name, value in (values | depths if three else values).items():
            setattr(copy, f"{which}{name}", value)
    copy.WidthInBytes, copy.Height = box[2], box[1]
    if three:
        copy.Depth = box[0]
        api.cuMemcpy3DAsync(copy, stream.native)
    else:
        api.cuMemcpy2DAsync(copy, stream.native)

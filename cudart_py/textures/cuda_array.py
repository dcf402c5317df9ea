"""CUDA arrays: memory in a layout that only the driver knows, which textures and surfaces access by coordinates."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..base import arguments
from ..base.shapes import Shape
from ..context.current import activated
from ..context.device import Device, current_device
from ..context.lifetimes import WaitingHandle
from ..driver import enums
from ..driver.calls import api
from ..memory.array import DeviceArray, region_of
from ..memory.host_memory import is_pinned
from ..memory.protocols import UnreadByNumPy
from ..memory.transfers import StridedRegion, raw_bytes
from ..streams.stream import Stream, stream_of
from .array_copies import ArrayEnd, copy_array
from .formats import check_channels, check_format, format_of


class CudaArray(UnreadByNumPy, WaitingHandle):
    """An uninitialised array on the current device in a layout optimised for textures (cuArray3DCreate).

        volume = cuda.textures.CudaArray(host.shape, np.float32).copy_from(host)
        result = cuda.textures.CudaArray(host.shape, np.float32, surface=True)
        with cuda.textures.Texture(volume) as texture, cuda.textures.Surface(result) as surface:
            smooth[grid, block](texture, surface)  # by tex3D<float> and surf3Dwrite
        out = result.to_host()

    `shape` is in elements: (width,), (height, width) or (depth, height, width). With `layered`, it is (layers, width)
    or (layers, height, width), and each layer is a separate texture. An element has 1, 2 or 4 `channels` of `dtype`:
    integers of 8, 16 or 32 bits, float16 or float32. Host and device arrays that are copied to or from it have the same
    shape, with an additional last axis for the channels if there are several. With `surface`, kernels can also write
    the array, through a `Surface`.

    A CudaArray has no address and no strides. Besides textures and surfaces, only copies can access it: its own
    methods, `memcpy`, `memcpy2d` and `memcpy3d`. Destroying it, with `close` or when the last reference is dropped,
    waits for all work on the device.

    Raises TypeError for other dtypes, ValueError for sizes that the device does not support and for other numbers of
    channels, and OutOfMemoryError if there is not enough memory.
    """

    __slots__ = ("_channels", "_device", "_dtype", "_layered", "_shape", "_surface")

    def __init__(
        self, shape: Shape, dtype: DTypeLike, *, channels: int = 1, layered: bool = False, surface: bool = False
    ) -> None:
        self._value = None
        self._owned = True
        call = "CudaArray"
        self._shape = arguments.shape(call, "shape", shape)
        self._dtype = arguments.dtype(call, "dtype", dtype)
        check_format(call, "dtype", self._dtype)
        self._channels = check_channels(call, "channels", arguments.integer(call, "channels", channels, 1, 4))
        self._layered = arguments.flag(call, "layered", layered)
        self._surface = arguments.flag(call, "surface", surface)
        self._device = current_device()
        self._check_shape()
        depth, height, width = self._extents()
        description = enums.CUDA_ARRAY3D_DESCRIPTOR()
        description.Width, description.Height, description.Depth = width, height, depth
        description.Format, description.NumChannels = format_of(self._dtype), self._channels
        description.Flags = (enums.CUDA_ARRAY3D_LAYERED if layered else 0) | (
            enums.CUDA_ARRAY3D_SURFACE_LDST if surface else 0
        )
        with activated(self._device):
            self._value = int(api.cuArray3DCreate(description))

    def _extents(self) -> tuple[int, int, int]:
        """Return the driver's depth, height and width, 0 for dimensions that do not exist."""
        if self._layered and len(self._shape) == 2:
            return self._shape[0], 0, self._shape[1]
        depth, height, width = (0, 0, 0, *self._shape)[-3:]
        return depth, height, width

    def _check_shape(self) -> None:
        """Raise ValueError for a shape with another number of dimensions, or outside the device's limits."""
        least, wanted = (2, "two or three") if self._layered else (1, "one to three")
        if not least <= len(self._shape) <= 3:
            raise arguments.wrong_value("CudaArray", "shape", f"one of {wanted} dimensions", self._shape)
        names = ("depth", "height", "width")[-len(self._shape) :]
        kind = f"{len(self._shape)}d"
        if self._layered:
            names, kind = ("layers", *names[1:]), f"{len(self._shape) - 1}d_layered"
        unit = "surface" if self._surface else "texture"
        limits = [self._device.attribute(f"maximum_{unit}{kind}_{name}") for name in names]
        if kind == "3d" and not self._surface:
            others = [self._device.attribute(f"maximum_texture3d_{name}_alternate") for name in names]
            if all(1 <= size <= most for size, most in zip(self._shape, others, strict=True)):
                return
        for name, size, most in zip(names, self._shape, limits, strict=True):
            if not 1 <= size <= most:
                raise ValueError(
                    f"CudaArray: argument 'shape' is {self._shape}: the {name} must be from 1 to {most}, not {size}"
                )

    # -- attributes ----------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of elements along each axis, without the channels."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of each channel."""
        return self._dtype

    @property
    def channels(self) -> int:
        """The number of channels per element: 1, 2 or 4."""
        return self._channels

    @property
    def layered(self) -> bool:
        """Whether the first axis counts layers."""
        return self._layered

    @property
    def surface(self) -> bool:
        """Whether surfaces can access the array."""
        return self._surface

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes; the driver may allocate more memory."""
        return math.prod(self._shape) * self._channels * self._dtype.itemsize

    @property
    def device(self) -> Device:
        """The device that the memory belongs to."""
        return self._device

    def __repr__(self) -> str:
        layers = " layered" if self._layered else ""
        state = "closed" if self.closed else f"{self._shape} {self._dtype} x {self._channels}{layers}"
        return f"<CudaArray {state}>"

    # -- data ----------------------------------------------------------------------------------

    def copy_from(self, source: Any, *, stream: Stream | None = None) -> Self:
        """Copy into this array, and return it (cuMemcpy2DAsync, cuMemcpy3DAsync).

        `source` is a host array, an object that NumPy converts to one, a DeviceArray or another CudaArray. It must have
        this array's dtype and shape; a contiguous host array or DeviceArray may also have another shape with the same
        number of elements. If it is bytes, a bytearray, a memoryview or a ctypes object, its bytes are copied.

        Returns once a host source may be changed again, unless both a `stream` and a pinned source are given: the
        source must then not change until that stream is synchronised. A copy from a device is queued, by default in the
        legacy default stream.
        """
        call = "CudaArray.copy_from"
        queue, pinned = stream_of(call, stream), False
        if not isinstance(source, DeviceArray | CudaArray):
            host = raw_bytes(call, "source", source, self._end.shape, self._dtype)
            source = arguments.host_array(call, "source", host)
            if source.shape == self._end.shape:  # others are refused below; a copy might not fit in memory
                source = np.ascontiguousarray(source)
            pinned = is_pinned(source)
        with activated(self._device if stream is None else stream.device):
            copy_array(call, self._end, end_of(call, "source", source), ("array", "source"), queue)
            if stream is None and pinned:
                queue.synchronize()
        return self

    def to_host(self, out: NDArray[Any] | None = None, *, stream: Stream | None = None) -> NDArray[Any]:
        """Copy to the host and return the NumPy array: `out`, or a new array (cuMemcpy2DAsync, cuMemcpy3DAsync).

        Waits for the copy, unless both a `stream` and a pinned `out` are given: the data are then complete once that
        stream is synchronised.
        """
        call = "CudaArray.to_host"
        queue, end = stream_of(call, stream), self._end
        if out is None:
            out = np.empty(end.shape, self._dtype)
        arguments.instance(call, "out", out, np.ndarray, "a NumPy array")
        with activated(self._device if stream is None else stream.device):
            copy_array(call, end_of(call, "out", out, writes=True), end, ("out", "array"), queue)
            if stream is None or not is_pinned(out):
                queue.synchronize()
        return out

    @property
    def _end(self) -> ArrayEnd:
        """The array as the source or destination of a copy; ValueError when closed."""
        channels = (self._channels,) if self._channels > 1 else ()
        return ArrayEnd(self.handle, self._extents(), (*self._shape, *channels), self._dtype, self)

    @property
    def _resource(self) -> Any:
        """The array as the resource of textures and surfaces (CUDA_RESOURCE_DESC); ValueError when closed."""
        resource = enums.CUDA_RESOURCE_DESC()
        resource.resType = enums.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
        resource.res.array.hArray = enums.CUarray(self.handle)
        return resource

    # -- lifetime ------------------------------------------------------------------------------

    def _destroy(self, value: Any) -> None:
        api.cuArrayDestroy(value)


def end_of(call: str, name: str, array: Any, *, writes: bool = False) -> ArrayEnd | StridedRegion:
    """Return a call's argument, a CudaArray, DeviceArray or NumPy array, as one end of a copy, after checking it."""
    if isinstance(array, CudaArray):
        return arguments.opened(call, name, array, CudaArray)._end
    return region_of(call, name, array, writes=writes)

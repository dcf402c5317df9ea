"""Textures: arrays of up to three dimensions that kernels read by coordinates through the texture units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from ..base import arguments, shapes
from ..context.capture import relaxed
from ..context.current import activated
from ..driver import enums
from ..driver.calls import api
from ..memory.array import DeviceArray
from .array_object import ArrayObject
from .cuda_array import CudaArray
from .formats import check_channels, check_format, format_of

AddressMode = Literal["wrap", "clamp", "mirror", "border"]

_ADDRESS_MODES: tuple[AddressMode, ...] = get_args(AddressMode)
_FILTERS = ("point", "linear")
_FLOAT32_MAX = float(np.finfo(np.float32).max)
_READS = ("element", "normalized_float")
_FOR_EACH_AXIS = {1: "", 2: ", or one for x and one for y", 3: ", or one for each of x, y and z"}


@dataclass(frozen=True)
class TextureOptions:
    """The options that determine how kernels read a texture.

    - `address`: the address mode for coordinates outside the texture, either one mode for all axes or a tuple with one
      mode for each of (x, y) or (x, y, z). "clamp" repeats the edge, and "border" returns `border`. "wrap" and "mirror"
      repeat the texture and require `normalized`.
    - `normalized`: coordinates run from 0 to 1 instead of to the width, height and depth.
    - `filter`: "point" reads the nearest element. "linear" interpolates between the nearest two, four or eight elements
      with 8-bit weights. It requires a texture that returns floats.
    - `read`: "element" returns elements unchanged. "normalized_float" returns integers of 8 and 16 bits as floats from
      0 to 1, or from -1 to 1 if the integers are signed.
    - `border`: the four numbers, one per channel, that the address mode "border" returns.
    """

    address: AddressMode | tuple[AddressMode, ...]
    filter: Literal["point", "linear"]
    normalized: bool
    read: Literal["element", "normalized_float"]
    border: tuple[float, float, float, float]

    @property
    def addresses(self) -> tuple[str, str, str]:
        """The address modes of x, y and z; an axis without its own mode has the mode of the previous axis."""
        modes = (self.address,) if isinstance(self.address, str) else tuple(self.address)
        x, y, z = (*modes, modes[-1], modes[-1])[:3]
        return x, y, z

    def check(self, dtype: np.dtype[Any], axes: int) -> None:
        """Raise TypeError or ValueError unless these options are valid for this dtype and this number of axes."""
        call = "Texture"
        wanted = f"one mode{_FOR_EACH_AXIS[axes]}"
        if not isinstance(self.address, str | tuple | list):
            raise arguments.wrong_type(call, "address", wanted, self.address)
        if not isinstance(self.address, str) and len(self.address) != axes:
            raise arguments.wrong_value(call, "address", wanted, self.address)
        for mode in self.addresses:
            arguments.choice(call, "address", mode, _ADDRESS_MODES)
        arguments.choice(call, "filter", self.filter, _FILTERS)
        arguments.choice(call, "read", self.read, _READS)
        arguments.flag(call, "normalized", self.normalized)
        for mode in self.addresses:
            if mode in ("wrap", "mirror") and not self.normalized:
                # The driver would silently clamp.
                raise arguments.wrong_value(call, "normalized", f"True with address={mode!r}", self.normalized)
        floats = self.read == "normalized_float" or dtype.kind == "f"
        if self.read == "normalized_float" and (dtype.kind == "f" or dtype.itemsize > 2):
            rule = "be 'element' unless the elements are integers of 8 or 16 bits"
            raise arguments.unusable(call, "read", rule, f"'normalized_float' for {dtype}")
        if self.filter == "linear" and not floats:
            rule = "be 'point' unless the texture returns floats"
            raise arguments.unusable(call, "filter", rule, f"'linear' for {dtype}")
        if not isinstance(self.border, tuple | list):
            raise arguments.wrong_type(call, "border", "four numbers, one for each channel", self.border)
        if len(self.border) != 4:
            raise arguments.wrong_value(call, "border", "four numbers, one for each channel", self.border)
        for channel, part in enumerate(self.border):
            arguments.number(call, f"border[{channel}]", part, -_FLOAT32_MAX, _FLOAT32_MAX)


class Texture(ArrayObject):
    """A texture object over a CUDA array or over the memory of a device array (cuTexObjectCreate).

    Kernels take it as a `cudaTextureObject_t`, which is an unsigned long long in C++. `array` is kept alive. The other
    arguments are those of `TextureOptions`.

    From a `CudaArray`, kernels read elements of type T with `tex1D<T>`, `tex2D<T>` or `tex3D<T>`, or with
    `tex1DLayered<T>` or `tex2DLayered<T>` if the array has layers. Layers are selected by index, and there is no
    interpolation between them.

    A `DeviceArray` must have the shape (height, width), or (height, width, channels) with 1, 2 or 4 channels. Kernels
    read it with `tex2D<T>`. Allocate it with `empty_pitched`, so that its rows have the alignment that texture units
    need. With `dimensions=1`, the default for a one-dimensional array, it must be contiguous and have the shape
    (width,) or (width, channels). Kernels then read it by index, with `tex1Dfetch<T>(texture, i)`. Reads outside the
    array return zeros. With `dimensions=1`, `read` is the only option that may be given.

    A kernel reads the contents that the array had when the kernel began. Destroying a texture, with `close` or when the
    last reference is dropped, waits for all work on the device, since kernels may still use the texture.

    Raises TypeError for anything that is not a DeviceArray or CudaArray, or for dtypes that textures do not support,
    and ValueError for shapes or strides that they do not support.
    """

    __slots__ = ("_options",)

    def __init__(
        self,
        array: CudaArray | DeviceArray,
        *,
        dimensions: Literal[1, 2] | None = None,
        address: AddressMode | tuple[AddressMode, ...] = "clamp",
        filter: Literal["point", "linear"] = "point",
        normalized: bool = False,
        read: Literal["element", "normalized_float"] = "element",
        border: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0),
    ) -> None:
        self._value = None
        self._owned = True
        arguments.instance("Texture", "array", array, (DeviceArray, CudaArray), "a DeviceArray or a CudaArray")
        if array.closed:
            raise arguments.wrong_value("Texture", "array", "open", array)
        self._options = TextureOptions(address, filter, normalized, read, border)
        self._array = array
        with activated(array.device), relaxed():  # no captured work depends on it
            if isinstance(array, CudaArray):
                if dimensions is not None:
                    wanted = "left out for a CudaArray, which has its own dimensions"
                    raise arguments.wrong_value("Texture", "dimensions", wanted, dimensions)
                self._options.check(array.dtype, len(array.shape) - array.layered)
                resource = array._resource
            else:
                resource = self._resource_of(array, dimensions)
            self._value = int(api.cuTexObjectCreate(resource, _description(self._options, array.dtype), None))

    def _resource_of(self, array: DeviceArray, dimensions: int | None) -> Any:
        """Return the CUDA_RESOURCE_DESC of a texture over a device array, after checking array and options."""
        if dimensions is None:
            dimensions = 1 if array.ndim == 1 else 2
        dimensions = arguments.integer("Texture", "dimensions", dimensions, 1, 2)
        check_format("Texture", "array", array.dtype)
        self._options.check(array.dtype, dimensions)
        if dimensions == 1:
            self._options = _by_number(self._options)
            return _linear_resource(array)
        return _pitched_resource(array)

    @property
    def array(self) -> CudaArray | DeviceArray:
        """The array that the texture reads."""
        return self._array

    @property
    def options(self) -> TextureOptions:
        """The options that determine how kernels read the texture."""
        return self._options

    def _destroy(self, value: Any) -> None:
        api.cuTexObjectDestroy(value)


def _by_number(options: TextureOptions) -> TextureOptions:
    """Return the options of a texture with dimensions=1, after checking that only `read` differs from the defaults."""
    fixed = {"address": "clamp", "filter": "point", "normalized": False, "border": (0.0, 0.0, 0.0, 0.0)}
    for name, value in fixed.items():
        if getattr(options, name) != value:
            wanted = "left out with dimensions=1, as elements are then read by index"
            raise arguments.wrong_value("Texture", name, wanted, getattr(options, name))
    return TextureOptions("border", "point", False, options.read, (0.0, 0.0, 0.0, 0.0))


def _linear_resource(array: DeviceArray) -> Any:
    """Return the CUDA_RESOURCE_DESC of a texture with dimensions=1, after checking that the array is suitable."""
    call, name = "Texture", "array"
    if array.ndim not in (1, 2):
        rule = "have shape (width,) or (width, channels) with dimensions=1"
        raise arguments.unusable(call, name, rule, array.shape)
    channels = check_channels("Texture", "array", array.shape[1] if array.ndim == 2 else 1, " with dimensions=1")
    format = format_of(array.dtype)
    most = int(api.cuDeviceGetTexture1DLinearMaxWidth(format, channels, array.device.handle))
    if not 1 <= array.shape[0] <= most:
        raise arguments.unusable(call, name, f"have a width from 1 to {most}", array.shape[0])
    contiguous = shapes.contiguous_strides(array.shape, array.itemsize)
    if any(size > 1 and step != want for size, step, want in zip(array.shape, array.strides, contiguous, strict=True)):
        raise arguments.unusable(call, name, "be contiguous", f"of shape {array.shape} with strides {array.strides}")
    _check_start(array, "a whole array")
    resource = enums.CUDA_RESOURCE_DESC()
    resource.resType = enums.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
    place = resource.res.linear
    place.devPtr = enums.CUdeviceptr(array.pointer)
    place.format = format
    place.numChannels = channels
    place.sizeInBytes = array.nbytes
    return resource


def _check_start(array: DeviceArray, whole: str) -> None:
    start = array.device.properties.texture_alignment
    if array.pointer % start:
        rule, remedy = f"begin at a multiple of {start} bytes", f"use {whole}, not a slice"
        raise arguments.unusable("Texture", "array", rule, f"at {array.pointer:#x}", remedy)


def _pitched_resource(array: DeviceArray) -> Any:
    """Return the CUDA_RESOURCE_DESC of a texture with dimensions=2, after checking that the array is suitable."""
    call, name = "Texture", "array"
    if array.ndim not in (2, 3):
        rule = "have shape (height, width) or (height, width, channels)"
        raise arguments.unusable(call, name, rule, array.shape)
    channels = check_channels("Texture", "array", array.shape[2] if array.ndim == 3 else 1)
    height, width = array.shape[:2]
    attributes = enums.CUdevice_attribute

    def limit(name: str) -> int:
        attribute = getattr(attributes, f"CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_{name}")
        return int(api.cuDeviceGetAttribute(attribute, array.device.handle))

    for side, size in (("WIDTH", width), ("HEIGHT", height)):
        if not 1 <= size <= limit(side):
            raise arguments.unusable(call, name, f"have a {side.lower()} from 1 to {limit(side)}", size)
    inner = shapes.contiguous_strides(array.shape[1:], array.itemsize)
    if any(
        size > 1 and step != want for size, step, want in zip(array.shape[1:], array.strides[1:], inner, strict=True)
    ):
        raise arguments.unusable(call, name, "have rows of adjacent elements", f"strides of {array.strides} bytes")
    alignment = array.device.properties.texture_pitch_alignment
    # An array of one row has no pitch, but the driver still requires a valid one.
    row = width * channels * array.itemsize
    pitch = array.strides[0] if height > 1 else -(-row // alignment) * alignment
    if pitch % alignment or not 0 < pitch <= limit("PITCH"):
        rule = f"have a pitch that is a multiple of {alignment} bytes and at most {limit('PITCH')}"
        raise arguments.unusable(call, name, rule, pitch, "make the array with empty_pitched")
    _check_start(array, "a whole array from empty_pitched")
    resource = enums.CUDA_RESOURCE_DESC()
    resource.resType = enums.CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
    plane = resource.res.pitch2D
    plane.devPtr = enums.CUdeviceptr(array.pointer)
    plane.format = format_of(array.dtype)
    plane.numChannels = channels
    plane.width, plane.height, plane.pitchInBytes = width, height, pitch
    return resource


def _description(options: TextureOptions, dtype: np.dtype[Any]) -> Any:
    description = enums.CUDA_TEXTURE_DESC()
    description.addressMode = [
        getattr(enums.CUaddress_mode, f"CU_TR_ADDRESS_MODE_{mode.upper()}") for mode in options.addresses
    ]
    description.filterMode = getattr(enums.CUfilter_mode, f"CU_TR_FILTER_MODE_{options.filter.upper()}")
    description.borderColor = [float(number) for number in options.border]
    flags = enums.CU_TRSF_NORMALIZED_COORDINATES if options.normalized else 0
    if options.read == "element" and dtype.kind != "f":
        # Without this flag, the driver converts integers to floats.
        flags |= enums.CU_TRSF_READ_AS_INTEGER
    description.flags = flags
    return description

"""CUDA arrays, texture objects and surface objects, from the runtime's descriptions to the driver's."""

from __future__ import annotations

import ctypes
from typing import Any

from cuda.bindings.driver import (
    CUDA_ARRAY3D_DESCRIPTOR,
    CUDA_RESOURCE_DESC,
    CUDA_TEXTURE_DESC,
    CUaddress_mode,
    CUarray,
    CUarray_format,
    CUfilter_mode,
    CUmipmappedArray,
    CUresourcetype,
)

from ...c_types import Extent
from ...foreign_memory import write, write_structure
from ..calls import INVALID_VALUE, SUCCESS, Out, driver

_INVALID_CHANNEL_DESCRIPTOR = 20
_SIGNED, _UNSIGNED, _FLOAT = range(3)  # cudaChannelFormatKind
_FORMATS = {
    (_UNSIGNED, 8): CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8,
    (_UNSIGNED, 16): CUarray_format.CU_AD_FORMAT_UNSIGNED_INT16,
    (_UNSIGNED, 32): CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32,
    (_SIGNED, 8): CUarray_format.CU_AD_FORMAT_SIGNED_INT8,
    (_SIGNED, 16): CUarray_format.CU_AD_FORMAT_SIGNED_INT16,
    (_SIGNED, 32): CUarray_format.CU_AD_FORMAT_SIGNED_INT32,
    (_FLOAT, 16): CUarray_format.CU_AD_FORMAT_HALF,
    (_FLOAT, 32): CUarray_format.CU_AD_FORMAT_FLOAT,
}
_CHANNELS = {int(texel): kind_and_bits for kind_and_bits, texel in _FORMATS.items()}
_ARRAY, _MIPMAPPED, _LINEAR, _PITCHED = range(4)  # cudaResourceType and CUresourcetype
# Flags of CUDA_TEXTURE_DESC.
_READ_AS_INTEGER, _NORMALIZED_COORDINATES, _SRGB, _DISABLE_TRILINEAR, _SEAMLESS_CUBEMAP = 0x01, 0x02, 0x10, 0x20, 0x40


class Channel(ctypes.Structure):
    """cudaChannelFormatDesc: the bits of four channels, and their kind."""

    _fields_ = [(name, ctypes.c_int) for name in ("x", "y", "z", "w", "kind")]

    @property
    def channels(self) -> int:
        """Return how many channels have bits."""
        return sum(bits > 0 for bits in (self.x, self.y, self.z, self.w))

    @property
    def format(self) -> CUarray_format | None:
        """Return the driver's format; None if there is none."""
        return _FORMATS.get((self.kind, self.x))


class _Linear(ctypes.Structure):
    _fields_ = [("address", ctypes.c_size_t), ("channel", Channel), ("size", ctypes.c_size_t)]


class _Pitched(ctypes.Structure):
    _fields_ = [
        ("address", ctypes.c_size_t),
        ("channel", Channel),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("pitch", ctypes.c_size_t),
    ]


class _Resource(ctypes.Union):
    _fields_ = [("array", ctypes.c_size_t), ("linear", _Linear), ("pitched", _Pitched), ("reserved", ctypes.c_int * 32)]


class ResourceDescription(ctypes.Structure):
    """cudaResourceDesc."""

    _fields_ = [("type", ctypes.c_int), ("resource", _Resource)]


class TextureDescription(ctypes.Structure):
    """cudaTextureDesc."""

    _fields_ = [
        ("address_mode", ctypes.c_int * 3),
        ("filter_mode", ctypes.c_int),
        ("read_mode", ctypes.c_int),
        ("srgb", ctypes.c_int),
        ("border_color", ctypes.c_float * 4),
        ("normalized_coordinates", ctypes.c_int),
        ("max_anisotropy", ctypes.c_uint),
        ("mipmap_filter_mode", ctypes.c_int),
        ("mipmap_level_bias", ctypes.c_float),
        ("min_mipmap_level", ctypes.c_float),
        ("max_mipmap_level", ctypes.c_float),
        ("disable_trilinear", ctypes.c_int),
        ("seamless_cubemap", ctypes.c_int),
    ]


# Arrays


def _descriptor(channel: int, extent: tuple[int, int, int], flags: int) -> Any:
    given = Channel.from_address(channel)
    if given.format is None:
        return None
    result = CUDA_ARRAY3D_DESCRIPTOR()
    result.Width, result.Height, result.Depth = extent
    result.Format, result.NumChannels, result.Flags = given.format, given.channels, flags
    return result


def allocate_array(array: int, channel: int, width: int, height: int, flags: int) -> int:
    """Allocate an array of one or two dimensions (cudaMallocArray)."""
    return _allocate(array, channel, (width, height, 0), flags)


def allocate_array_3d(array: int, channel: int, extent: Extent, flags: int) -> int:
    """Allocate an array of up to three dimensions, or with layers (cudaMalloc3DArray)."""
    return _allocate(array, channel, (extent.width, extent.height, extent.depth), flags)


def _allocate(array: int, channel: int, extent: tuple[int, int, int], flags: int) -> int:
    if not array or not channel:
        return INVALID_VALUE
    descriptor = _descriptor(channel, extent, flags)
    if descriptor is None:
        return _INVALID_CHANNEL_DESCRIPTOR
    return driver("cuArray3DCreate_v2")(array, descriptor.getPtr())


def allocate_mipmapped(array: int, channel: int, extent: Extent, levels: int, flags: int) -> int:
    """Allocate an array with mipmap levels (cudaMallocMipmappedArray)."""
    if not array or not channel:
        return INVALID_VALUE
    descriptor = _descriptor(channel, (extent.width, extent.height, extent.depth), flags)
    if descriptor is None:
        return _INVALID_CHANNEL_DESCRIPTOR
    return driver("cuMipmappedArrayCreate")(array, descriptor.getPtr(), levels)


def _array_descriptor(array: int) -> Any:
    """Return an array's description, or None if there is no array at the address."""
    descriptor = CUDA_ARRAY3D_DESCRIPTOR()
    return None if driver("cuArray3DGetDescriptor_v2")(descriptor.getPtr(), array) else descriptor


def array_element_bytes(array: int) -> int:
    """Return the size of an array's elements in bytes; 1 without an array."""
    descriptor = _array_descriptor(array) if array else None
    return 1 if descriptor is None else _CHANNELS[int(descriptor.Format)][1] // 8 * descriptor.NumChannels


def array_row_bytes(array: int) -> int:
    """Return the size of an array's rows in bytes; 0 for an unknown handle."""
    descriptor = _array_descriptor(array)
    return 0 if descriptor is None else descriptor.Width * array_element_bytes(array)


def _write_channel(place: int, descriptor: Any) -> None:
    kind, bits = _CHANNELS[int(descriptor.Format)]
    sizes = [bits if channel < descriptor.NumChannels else 0 for channel in range(4)]
    write_structure(place, Channel(*sizes, kind))


def channel_of_array(place: int, array: int) -> int:
    """Write the format of an array (cudaGetChannelDesc)."""
    descriptor = _array_descriptor(array)
    if descriptor is None:
        return INVALID_VALUE
    _write_channel(place, descriptor)
    return SUCCESS


def array_info(channel: int, extent: int, flags: int, array: int) -> int:
    """Write the format, the extent and the flags of an array (cudaArrayGetInfo)."""
    descriptor = _array_descriptor(array)
    if descriptor is None:
        return INVALID_VALUE
    if channel:
        _write_channel(channel, descriptor)
    write_structure(extent, Extent(descriptor.Width, descriptor.Height, descriptor.Depth))
    write(flags, descriptor.Flags, ctypes.c_uint)
    return SUCCESS


# Objects


def _resource(address: int) -> tuple[Any, Channel | None]:
    """Return the driver's description of a resource, and the format where the resource itself has none."""
    given = ResourceDescription.from_address(address)
    result = CUDA_RESOURCE_DESC()
    result.resType = CUresourcetype(given.type)
    channel: Channel | None = None
    if given.type == _ARRAY:
        result.res.array.hArray = CUarray(given.resource.array)
    elif given.type == _MIPMAPPED:
        result.res.mipmap.hMipmappedArray = CUmipmappedArray(given.resource.array)
    elif given.type == _LINEAR:
        linear, target = given.resource.linear, result.res.linear
        channel = linear.channel
        target.devPtr, target.sizeInBytes = linear.address, linear.size
        target.format, target.numChannels = channel.format, channel.channels
    else:
        pitched, target = given.resource.pitched, result.res.pitch2D
        channel = pitched.channel
        target.devPtr, target.width, target.height = pitched.address, pitched.width, pitched.height
        target.pitchInBytes = pitched.pitch
        target.format, target.numChannels = channel.format, channel.channels
    return result, channel


def _texture(address: int) -> Any:
    given = TextureDescription.from_address(address)
    result = CUDA_TEXTURE_DESC()
    result.addressMode = [CUaddress_mode(mode) for mode in given.address_mode]
    result.filterMode = CUfilter_mode(given.filter_mode)
    result.mipmapFilterMode = CUfilter_mode(given.mipmap_filter_mode)
    result.maxAnisotropy = given.max_anisotropy
    result.mipmapLevelBias = given.mipmap_level_bias
    result.minMipmapLevelClamp, result.maxMipmapLevelClamp = given.min_mipmap_level, given.max_mipmap_level
    result.borderColor = list(given.border_color)
    # Reading as the element's own type is the runtime's first mode, 0.
    result.flags = (
        (0 if given.read_mode else _READ_AS_INTEGER)
        | (_NORMALIZED_COORDINATES if given.normalized_coordinates else 0)
        | (_SRGB if given.srgb else 0)
        | (_DISABLE_TRILINEAR if given.disable_trilinear else 0)
        | (_SEAMLESS_CUBEMAP if given.seamless_cubemap else 0)
    )
    return result


def create_texture(place: int, resource: int, texture: int, view: int) -> int:
    """Create a texture object (cudaCreateTextureObject)."""
    if not (place and resource and texture):
        return INVALID_VALUE
    described, channel = _resource(resource)
    if channel is not None and channel.format is None:
        return _INVALID_CHANNEL_DESCRIPTOR
    reading = _texture(texture)
    # The runtime's description of a view has the members and the values of the driver's.
    return driver("cuTexObjectCreate")(place, described.getPtr(), reading.getPtr(), view)


def create_surface(place: int, resource: int) -> int:
    """Create a surface object (cudaCreateSurfaceObject)."""
    if not (place and resource):
        return INVALID_VALUE
    described, _ = _resource(resource)
    return driver("cuSurfObjectCreate")(place, described.getPtr())


def linear_width(width: int, channel: int, device: int) -> int:
    """Write the largest width of a linear texture (cudaDeviceGetTexture1DLinearMaxWidth)."""
    given = Channel.from_address(channel)
    if given.format is None:
        return _INVALID_CHANNEL_DESCRIPTOR
    found = Out()
    status = driver("cuDeviceGetTexture1DLinearMaxWidth")(found.address, int(given.format), given.channels, device)
    write(width, found.value)
    return status


FUNCTIONS: dict[str, Any] = {
    "cudaArrayGetInfo": array_info,
    "cudaCreateSurfaceObject": create_surface,
    "cudaCreateTextureObject": create_texture,
    "cudaDeviceGetTexture1DLinearMaxWidth": linear_width,
    "cudaGetChannelDesc": channel_of_array,
    "cudaMalloc3DArray": allocate_array_3d,
    "cudaMallocArray": allocate_array,
    "cudaMallocMipmappedArray": allocate_mipmapped,
}

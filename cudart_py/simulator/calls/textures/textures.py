"""Textures: texture objects over rows of device memory and over CUDA arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cuda.bindings.driver import (
    CU_TRSF_NORMALIZED_COORDINATES,
    CU_TRSF_READ_AS_INTEGER,
    CU_TRSF_SRGB,
    CUDA_TEXTURE_DESC,
    CUaddress_mode,
    CUfilter_mode,
    CUresourcetype,
    CUresult,
    CUtexObject,
)

from ...ptx.operations.textures import Texture
from ...state import memory
from ...state.arguments import number
from ...state.attributes import attribute
from ...state.contexts import current
from ...state.errors import StatusError, invalid_value
from ...state.handles import next_handle
from ..entry import entry
from ..memory.cuda_arrays import FORMATS, given_array, linear_width
from .mipmaps import mipmapped_arrays

_MODES = {
    CUaddress_mode.CU_TR_ADDRESS_MODE_WRAP: "wrap",
    CUaddress_mode.CU_TR_ADDRESS_MODE_CLAMP: "clamp",
    CUaddress_mode.CU_TR_ADDRESS_MODE_MIRROR: "mirror",
    CUaddress_mode.CU_TR_ADDRESS_MODE_BORDER: "border",
}


def _layout(resource: Any) -> dict[str, Any]:
    """Return the layout of a resource's texels, checked as the driver does."""
    if resource.resType == CUresourcetype.CU_RESOURCE_TYPE_ARRAY:
        return _array_layout(resource.res.array.hArray)
    if resource.resType == CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        return _array_layout(mipmapped_arrays.find(resource.res.mipmap.hMipmappedArray).levels[0])
    if resource.resType == CUresourcetype.CU_RESOURCE_TYPE_PITCH2D:
        found = resource.res.pitch2D
        width, height, pitch = found.width, found.height, found.pitchInBytes
        limits = attribute("MAXIMUM_TEXTURE2D_LINEAR_WIDTH"), attribute("MAXIMUM_TEXTURE2D_LINEAR_HEIGHT")
        if not (0 < width <= limits[0] and 0 < height <= limits[1]):
            raise invalid_value()
        if pitch % attribute("TEXTURE_PITCH_ALIGNMENT") or pitch > attribute("MAXIMUM_TEXTURE2D_LINEAR_PITCH"):
            raise invalid_value()
    elif resource.resType == CUresourcetype.CU_RESOURCE_TYPE_LINEAR:
        found = resource.res.linear
        width, height, pitch = 0, 0, found.sizeInBytes
    else:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    dtype = FORMATS.get(found.format)
    if dtype is None or found.numChannels not in (1, 2, 4):
        raise invalid_value()
    texel = int(dtype[1]) * found.numChannels
    if not height:
        width = pitch // texel
        if not 0 < width <= linear_width(texel):
            raise invalid_value()
    address = number(found.devPtr)
    if address % attribute("TEXTURE_ALIGNMENT") or pitch < width * texel:
        raise invalid_value()
    return {
        "address": address,
        "width": width,
        "height": height,
        "pitch": pitch,
        "channels": found.numChannels,
        "dtype": dtype,
    }


def _array_layout(handle: Any) -> dict[str, Any]:
    array = given_array(handle)
    return {
        "address": array.allocation.address,
        "width": array.width,
        "height": array.height,
        "depth": array.depth,
        "pitch": array.pitch,
        "slice_pitch": array.slice_pitch,
        "layered": array.layered,
        "cube": array.cube,
        "channels": array.channels,
        "dtype": array.dtype,
        "tiled": bool(array.height) and not array.depth,
    }


def _by_number(flags: int) -> Any:
    description = CUDA_TEXTURE_DESC()
    description.addressMode = [CUaddress_mode.CU_TR_ADDRESS_MODE_BORDER] * 3
    description.flags = flags & ~CU_TRSF_NORMALIZED_COORDINATES
    return description


def _with_levels(texture: Texture, handle: Any, description: Any) -> Texture:
    """Return the texture of a mipmap's first level together with the other levels."""
    levels = tuple(replace(texture, **_array_layout(level)) for level in mipmapped_arrays.find(handle).levels)
    return replace(
        texture,
        levels=levels,
        blends_levels=description.mipmapFilterMode == CUfilter_mode.CU_TR_FILTER_MODE_LINEAR,
        level_bias=float(description.mipmapLevelBias),
        level_limits=(float(description.minMipmapLevelClamp), float(description.maxMipmapLevelClamp)),
    )


@entry(values=1, unsafe=True)
def cuTexObjectCreate(pResDesc: Any, pTexDesc: Any, pResViewDesc: Any) -> Any:
    """Create a texture object over device memory, a CUDA array or a mipmapped array (cuTexObjectCreate)."""
    context = current()
    if pResDesc is None or pTexDesc is None or pResViewDesc is not None:
        raise invalid_value()
    layout = _layout(pResDesc)
    # Elements of linear memory are read only by index: the modes are ignored, and elements outside are zeros.
    linear_memory = pResDesc.resType == CUresourcetype.CU_RESOURCE_TYPE_LINEAR
    description = _by_number(number(pTexDesc.flags)) if linear_memory else pTexDesc
    flags = number(description.flags)
    if flags & CU_TRSF_SRGB:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    linear = description.filterMode == CUfilter_mode.CU_TR_FILTER_MODE_LINEAR
    integer = layout["dtype"][0] in "ui"
    # The hardware converts integers of 8 and 16 bits to [0, 1] or [-1, 1], and filters only floating-point values.
    promoted = integer and int(layout["dtype"][1]) < 4 and not flags & CU_TRSF_READ_AS_INTEGER
    if linear and integer and not promoted:
        raise invalid_value()
    x, y, z = (_MODES[mode] for mode in description.addressMode)
    red, green, blue, alpha = description.borderColor
    texture = Texture(
        **layout,
        address_modes=(x, y, z),
        linear=linear,
        normalized_coordinates=bool(flags & CU_TRSF_NORMALIZED_COORDINATES),
        normalized_read=promoted,
        border=(red, green, blue, alpha),
    )
    if memory.find(texture.address, texture.size) is None:
        raise invalid_value()
    if pResDesc.resType == CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        # CUDA requires normalized coordinates, because the extents differ from level to level.
        if not texture.normalized_coordinates:
            raise invalid_value()
        texture = _with_levels(texture, pResDesc.res.mipmap.hMipmappedArray, description)
    handle = next_handle()
    context.textures[handle] = texture
    return CUtexObject(handle)


@entry(frees=True, unsafe=True)
def cuTexObjectDestroy(texObject: Any) -> None:
    """Destroy a texture object (cuTexObjectDestroy)."""
    textures = current().textures
    handle = number(texObject)
    if handle not in textures:
        raise invalid_value()
    del textures[handle]

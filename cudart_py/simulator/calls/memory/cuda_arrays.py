"""CUDA arrays: memory whose layout the driver chooses; copies, textures and surfaces address it by coordinates.

Here, the elements of a row are contiguous. Rows follow one another at a fixed pitch, and so do planes or layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import (
    CUDA_ARRAY3D_CUBEMAP,
    CUDA_ARRAY3D_DESCRIPTOR,
    CUDA_ARRAY3D_LAYERED,
    CUDA_ARRAY3D_SURFACE_LDST,
    CUDA_ARRAY3D_TEXTURE_GATHER,
    CUDA_ARRAY_DESCRIPTOR,
    CUarray,
    CUarray_format,
    CUresult,
)

from ...state import memory
from ...state.arguments import number
from ...state.attributes import attribute
from ...state.contexts import current
from ...state.errors import StatusError, invalid_value
from ...state.handles import Handles
from ...state.queue.scheduling import complete_context
from ..entry import entry

if TYPE_CHECKING:
    from ...state.contexts import Context
    from ...state.memory import Allocation

# The NumPy type of a channel.
FORMATS = {
    CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8: "u1",
    CUarray_format.CU_AD_FORMAT_UNSIGNED_INT16: "u2",
    CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32: "u4",
    CUarray_format.CU_AD_FORMAT_SIGNED_INT8: "i1",
    CUarray_format.CU_AD_FORMAT_SIGNED_INT16: "i2",
    CUarray_format.CU_AD_FORMAT_SIGNED_INT32: "i4",
    CUarray_format.CU_AD_FORMAT_HALF: "f2",
    CUarray_format.CU_AD_FORMAT_FLOAT: "f4",
}
# Rows are aligned to the size of the widest access to a surface, in bytes.
_ROW_ALIGNMENT = 32
_KNOWN_FLAGS = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER
_FACES = 6
_MOST_LINEAR_TEXELS, _MOST_LINEAR_BYTES = 1 << 30, 1 << 32


@dataclass(frozen=True)
class CudaArray:
    """A CUDA array; `width`, `height` and `depth` are those of its descriptor, 0 for dimensions that it lacks.

    `depth` is the number of layers if the flags say that the array is layered, and of faces if it is a cube map.
    """

    context: Context
    allocation: Allocation
    width: int
    height: int
    depth: int
    format: Any
    channels: int
    flags: int

    @property
    def dtype(self) -> str:
        """Return the NumPy type of a channel."""
        return FORMATS[self.format]

    @property
    def texel(self) -> int:
        """Return the size of an element in bytes."""
        return int(self.dtype[1]) * self.channels

    @property
    def layered(self) -> bool:
        """Return whether the depth counts layers, or six faces for each layer of cube maps."""
        return bool(self.flags & CUDA_ARRAY3D_LAYERED)

    @property
    def cube(self) -> bool:
        """Return whether the array is a cube map, or has layers of cube maps."""
        return bool(self.flags & CUDA_ARRAY3D_CUBEMAP)

    @property
    def pitch(self) -> int:
        """Return the number of bytes from one row to the next."""
        return _pitch(self.width * self.texel)

    @property
    def slice_pitch(self) -> int:
        """Return the number of bytes from one plane or layer to the next."""
        return self.pitch * max(self.height, 1)


cuda_arrays: Handles[CudaArray] = Handles()


def given_array(handle: Any) -> CudaArray:
    """Return the array that a copy or a texture names; a null handle raises CUDA_ERROR_INVALID_VALUE."""
    if not number(handle):
        raise invalid_value()
    return cuda_arrays.find(handle)


def linear_width(texel_bytes: int) -> int:
    """Return the largest number of texels of a texture of linear memory."""
    return min(_MOST_LINEAR_TEXELS, _MOST_LINEAR_BYTES // texel_bytes)


def _pitch(width: int) -> int:
    return -(-width // _ROW_ALIGNMENT) * _ROW_ALIGNMENT


def _fits(sizes: tuple[int, ...], names: tuple[str, ...]) -> bool:
    return all(0 < size <= attribute(f"MAXIMUM_{name}") for size, name in zip(sizes, names, strict=True))


def _extents_fit(width: int, height: int, depth: int, flags: int) -> bool:
    """Return whether an array may have these extents, whose limits depend on the kind of array."""
    unit = "SURFACE" if flags & CUDA_ARRAY3D_SURFACE_LDST else "TEXTURE"
    if flags & CUDA_ARRAY3D_CUBEMAP:
        if width != height or depth % _FACES or (depth != _FACES and not flags & CUDA_ARRAY3D_LAYERED):
            return False
        if flags & CUDA_ARRAY3D_LAYERED:
            return _fits((width, depth), (f"{unit}CUBEMAP_LAYERED_WIDTH", f"{unit}CUBEMAP_LAYERED_LAYERS"))
        return _fits((width,), (f"{unit}CUBEMAP_WIDTH",))
    if flags & CUDA_ARRAY3D_LAYERED:
        if not height:
            kind = f"{unit}1D_LAYERED"
            return _fits((width, depth), (f"{kind}_WIDTH", f"{kind}_LAYERS"))
        kind = f"{unit}2D_LAYERED"
        return _fits((width, height, depth), (f"{kind}_WIDTH", f"{kind}_HEIGHT", f"{kind}_LAYERS"))
    if depth:
        names = (f"{unit}3D_WIDTH", f"{unit}3D_HEIGHT", f"{unit}3D_DEPTH")
        alternate = unit == "TEXTURE" and _fits((width, height, depth), tuple(f"{name}_ALTERNATE" for name in names))
        return alternate or _fits((width, height, depth), names)
    if height:
        return _fits((width, height), (f"{unit}2D_WIDTH", f"{unit}2D_HEIGHT"))
    return _fits((width,), (f"{unit}1D_WIDTH",))


def create_array(description: Any, depth: int, flags: int, level: int = 0) -> int:
    """Create an array with the extents of a description, or of a level of a mipmap, and return its handle."""
    context = current()
    try:
        format_ = description.Format
    except ValueError:
        raise invalid_value() from None  # the bindings raise for a format that was never set
    width, height, channels = number(description.Width), number(description.Height), number(description.NumChannels)
    if flags & ~_KNOWN_FLAGS:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    if flags & CUDA_ARRAY3D_TEXTURE_GATHER and (not height or depth):
        raise invalid_value()
    if format_ not in FORMATS or channels not in (1, 2, 4) or not _extents_fit(width, height, depth, flags):
        raise invalid_value()
    width, height = max(width >> level, 1), max(height >> level, 1 if height else 0)
    if not flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP):
        depth = max(depth >> level, 1 if depth else 0)
    row = _pitch(width * int(FORMATS[format_][1]) * channels)
    size = row * max(height, 1) * max(depth, 1)
    allocation = memory.allocate(size, memory.ARRAY, context, counted=True)
    array = CudaArray(context, allocation, width, height, depth, format_, channels, flags)
    return cuda_arrays.add(array)


@entry(values=1, unsafe=True)
def cuArrayCreate(pAllocateArray: Any) -> Any:
    """Create a CUDA array of one or two dimensions (cuArrayCreate)."""
    if pAllocateArray is None:
        raise invalid_value()
    return CUarray(create_array(pAllocateArray, 0, 0))


@entry(values=1, unsafe=True)
def cuArray3DCreate(pAllocateArray: Any) -> Any:
    """Create a CUDA array of up to three dimensions, a layered one or a cube map (cuArray3DCreate)."""
    if pAllocateArray is None:
        raise invalid_value()
    return CUarray(create_array(pAllocateArray, number(pAllocateArray.Depth), number(pAllocateArray.Flags)))


def _describe(array: CudaArray, description: Any) -> Any:
    description.Width, description.Height = array.width, array.height
    description.Format, description.NumChannels = array.format, array.channels
    return description


@entry(values=1)
def cuArrayGetDescriptor(hArray: Any) -> Any:
    """Return the width, height and element format of a CUDA array (cuArrayGetDescriptor)."""
    current()
    return _describe(cuda_arrays.find(hArray), CUDA_ARRAY_DESCRIPTOR())


@entry(values=1)
def cuArray3DGetDescriptor(hArray: Any) -> Any:
    """Return the extents, element format and flags of a CUDA array (cuArray3DGetDescriptor)."""
    current()
    array = cuda_arrays.find(hArray)
    description = _describe(array, CUDA_ARRAY3D_DESCRIPTOR())
    description.Depth, description.Flags = array.depth, array.flags
    return description


@entry(frees=True, unsafe=True)
def cuArrayDestroy(hArray: Any) -> None:
    """Complete the context's work and free a CUDA array (cuArrayDestroy)."""
    current()
    destroy_array(number(hArray))


def destroy_array(handle: int) -> None:
    """Complete the work of an array's context and free the array."""
    array = cuda_arrays.find(handle)
    cuda_arrays.remove(handle)
    complete_context(array.context, freeing=True)
    memory.free(array.allocation, counted=True)


def end_context(context: Context) -> None:
    """Forget the arrays of a context, whose memory is freed with the context's other memory."""
    cuda_arrays.remove_all(lambda array: array.context is context)

"""Mipmapped arrays: a CUDA array for each level, with half the extents of the level before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import (
    CUDA_ARRAY3D_CUBEMAP,
    CUDA_ARRAY3D_LAYERED,
    CUarray,
    CUmipmappedArray,
)

from ...state.arguments import number
from ...state.contexts import current
from ...state.errors import StatusError, invalid_value
from ...state.handles import Handles
from ..entry import entry
from ..memory.cuda_arrays import create_array, destroy_array

if TYPE_CHECKING:
    from ...state.contexts import Context


@dataclass(frozen=True)
class MipmappedArray:
    """A mipmapped array: the handles of the CUDA arrays of its levels, the largest first."""

    context: Context
    levels: tuple[int, ...]


mipmapped_arrays: Handles[MipmappedArray] = Handles()


@entry(values=1, unsafe=True)
def cuMipmappedArrayCreate(pMipmappedArrayDesc: Any, numMipmapLevels: Any) -> Any:
    """Create a mipmapped array (cuMipmappedArrayCreate).

    There are at least one level, and at most as many as lead to a single element.
    """
    context = current()
    if pMipmappedArrayDesc is None:
        raise invalid_value()
    depth, flags = number(pMipmappedArrayDesc.Depth), number(pMipmappedArrayDesc.Flags)
    extents = [number(pMipmappedArrayDesc.Width), number(pMipmappedArrayDesc.Height)]
    if not flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP):
        extents.append(depth)
    count = min(max(number(numMipmapLevels), 1), max(extents).bit_length())
    levels: list[int] = []
    try:
        # Those that were created before an error are destroyed.
        levels.extend(create_array(pMipmappedArrayDesc, depth, flags, level) for level in range(max(count, 1)))
    except StatusError:
        for handle in levels:
            destroy_array(handle)
        raise
    return CUmipmappedArray(mipmapped_arrays.add(MipmappedArray(context, tuple(levels))))


@entry(values=1)
def cuMipmappedArrayGetLevel(hMipmappedArray: Any, level: Any) -> Any:
    """Return the CUDA array of a level, which belongs to the mipmapped array (cuMipmappedArrayGetLevel)."""
    current()
    levels = mipmapped_arrays.find(hMipmappedArray).levels
    if not 0 <= number(level) < len(levels):
        raise invalid_value()
    return CUarray(levels[number(level)])


@entry(frees=True, unsafe=True)
def cuMipmappedArrayDestroy(hMipmappedArray: Any) -> None:
    """Complete the context's work and free a mipmapped array with its levels (cuMipmappedArrayDestroy)."""
    current()
    array = mipmapped_arrays.find(hMipmappedArray)
    mipmapped_arrays.remove(number(hMipmappedArray))
    for handle in array.levels:
        destroy_array(handle)


def end_context(context: Context) -> None:
    """Forget the mipmapped arrays of a context, whose levels end with its CUDA arrays."""
    mipmapped_arrays.remove_all(lambda array: array.context is context)

"""Surfaces: surface objects over CUDA arrays that were created for them."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CUDA_ARRAY3D_SURFACE_LDST, CUresourcetype, CUsurfObject

from ...ptx.operations.surfaces import Surface
from ...state.arguments import number
from ...state.contexts import current
from ...state.errors import invalid_value
from ...state.handles import next_handle
from ..entry import entry
from ..memory.cuda_arrays import cuda_arrays


@entry(values=1, unsafe=True)
def cuSurfObjectCreate(pResDesc: Any) -> Any:
    """Create a surface object over a CUDA array (cuSurfObjectCreate)."""
    context = current()
    if pResDesc is None or pResDesc.resType != CUresourcetype.CU_RESOURCE_TYPE_ARRAY:
        raise invalid_value()
    array = cuda_arrays.find(pResDesc.res.array.hArray)
    if not array.flags & CUDA_ARRAY3D_SURFACE_LDST:
        raise invalid_value()
    handle = next_handle()
    context.surfaces[handle] = Surface(
        array.allocation.address,
        array.width * array.texel,
        array.height,
        array.depth,
        array.pitch,
        array.slice_pitch,
        array.layered,
    )
    return CUsurfObject(handle)


@entry(frees=True, unsafe=True)
def cuSurfObjectDestroy(surfObject: Any) -> None:
    """Destroy a surface object (cuSurfObjectDestroy)."""
    surfaces = current().surfaces
    handle = number(surfObject)
    if handle not in surfaces:
        raise invalid_value()
    del surfaces[handle]

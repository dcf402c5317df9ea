"""A kernel's own memory and textures."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.state import memory
from tests.simulator.kernels import INVALID, function, launch
from tests.simulator.support import Status, compile_ptx, download, ok, upload

HEAP = r"""
extern "C" __global__ void take(unsigned long long *out, int size) {
    char *p = (char *)malloc(size);
    if (p) p[0] = 7;
    *out = (unsigned long long)p;
}
extern "C" __global__ void give(unsigned long long *out) { free((void *)*out); }
extern "C" __global__ void sample(unsigned long long texture, float *out) {
    out[threadIdx.x] = tex2D<float>(texture, threadIdx.x + 0.5f, 1.5f);
}
"""


@pytest.fixture
def heap_module(context: Any) -> Any:
    return ok(driver.cuModuleLoadData(compile_ptx(HEAP)))


def test_a_kernels_malloc_lives_until_its_free(heap_module: Any) -> None:
    out = upload(np.zeros(1, np.uint64))
    launch(function(heap_module, "take"), ctypes.c_void_p(out), ctypes.c_int(100))
    address = int(download(out, 1, np.uint64)[0])
    assert memory.describe(address).startswith("0 bytes into the 100-byte heap allocation")
    assert driver.cuMemsetD8(address, 0, 1) == (INVALID,)
    launch(function(heap_module, "give"), ctypes.c_void_p(out))
    ok(driver.cuCtxSynchronize())
    assert "which was freed" in memory.describe(address)


def test_a_kernels_malloc_beyond_the_heap_gives_null(heap_module: Any) -> None:
    out = upload(np.ones(1, np.uint64))
    launch(function(heap_module, "take"), ctypes.c_void_p(out), ctypes.c_int(9 << 20))
    assert download(out, 1, np.uint64)[0] == 0


def texture(address: int, width: int, height: int, pitch: int, **settings: Any) -> Any:
    """Return the result of making a texture of float32 over pitched memory."""
    resource, description = bindings.CUDA_RESOURCE_DESC(), bindings.CUDA_TEXTURE_DESC()
    resource.resType = bindings.CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
    place = resource.res.pitch2D
    place.devPtr, place.width, place.height = bindings.CUdeviceptr(address), width, height
    place.pitchInBytes, place.numChannels = pitch, 1
    place.format = settings.pop("format", bindings.CUarray_format.CU_AD_FORMAT_FLOAT)
    description.addressMode = [bindings.CUaddress_mode.CU_TR_ADDRESS_MODE_CLAMP] * 3
    for name, value in settings.items():
        setattr(description, name, value)
    return driver.cuTexObjectCreate(resource, description, None)


def test_a_kernel_samples_a_texture(heap_module: Any) -> None:
    image = np.arange(128, dtype=np.float32).reshape(2, 64)
    handle = ok(texture(upload(image), 64, 2, 256))
    out = upload(np.zeros(4, np.float32))
    launch(function(heap_module, "sample"), ctypes.c_ulonglong(int(handle)), ctypes.c_void_p(out), block=(4, 1, 1))
    assert download(out, 4, np.float32).tolist() == [64, 65, 66, 67]
    ok(driver.cuTexObjectDestroy(handle))
    assert driver.cuTexObjectDestroy(handle) == (INVALID,)


def texture_of_array(*extents: int, flags: int = 0) -> tuple[Any, Any]:
    """Return an array of float32 and a texture object over it."""
    description = bindings.CUDA_ARRAY3D_DESCRIPTOR()
    description.Width, description.Height, description.Depth = (*extents, 0, 0)[:3]
    description.Format, description.NumChannels = bindings.CUarray_format.CU_AD_FORMAT_FLOAT, 1
    description.Flags = flags
    array = ok(driver.cuArray3DCreate(description))
    resource, how = bindings.CUDA_RESOURCE_DESC(), bindings.CUDA_TEXTURE_DESC()
    resource.resType, resource.res.array.hArray = bindings.CUresourcetype.CU_RESOURCE_TYPE_ARRAY, array
    how.addressMode = [bindings.CUaddress_mode.CU_TR_ADDRESS_MODE_CLAMP] * 3
    return array, ok(driver.cuTexObjectCreate(resource, how, None))


@pytest.mark.parametrize(
    ("extents", "flags", "has"),
    [
        ((8,), 0, "one dimension"),
        ((8, 2, 2), 0, "three dimensions"),
        ((8, 0, 2), bindings.CUDA_ARRAY3D_LAYERED, "layers of one dimension"),
        ((8, 2, 2), bindings.CUDA_ARRAY3D_LAYERED, "layers of two dimensions"),
    ],
)
def test_a_fetch_of_other_dimensions_is_named(heap_module: Any, extents: tuple[int, ...], flags: int, has: str) -> None:
    _, handle = texture_of_array(*extents, flags=flags)
    out = upload(np.zeros(4, np.float32))
    launch(function(heap_module, "sample"), ctypes.c_ulonglong(int(handle)), ctypes.c_void_p(out))
    assert driver.cuCtxSynchronize() == (Status.CUDA_ERROR_NOT_SUPPORTED,)
    assert f"an access to a texture of two dimensions, and this one has {has}" in driver.take_report()


def test_a_fetch_from_an_array_that_is_gone_is_a_fault(heap_module: Any) -> None:
    array, handle = texture_of_array(8, 2)
    ok(driver.cuArrayDestroy(array))
    out = upload(np.zeros(4, np.float32))
    launch(function(heap_module, "sample"), ctypes.c_ulonglong(int(handle)), ctypes.c_void_p(out))
    assert driver.cuCtxSynchronize() == (Status.CUDA_ERROR_ILLEGAL_ADDRESS,)
    assert "array allocation" in driver.take_report()


def test_textures_have_the_drivers_limits(context: Any) -> None:
    address = upload(np.zeros((4, 64), np.float32))
    invalid = (INVALID, None)
    assert texture(address + 4, 16, 2, 256) == invalid
    assert texture(address, 16, 2, 100) == invalid
    assert texture(address, 65, 2, 256) == invalid
    assert texture(address, 64, 5, 256) == invalid
    linear = bindings.CUfilter_mode.CU_TR_FILTER_MODE_LINEAR
    integers = bindings.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32
    assert texture(address, 64, 4, 256, filterMode=linear, format=integers) == invalid
    assert texture(address, 64, 4, 256, filterMode=linear)[0] == Status.CUDA_SUCCESS

import ctypes
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.kernels import INVALID, function, launch, loaded
from tests.simulator.support import Player, Status, create_array, download, ok, struct, upload

SOURCE = r"""
extern "C" __global__ void take(unsigned long long *out, int size) {
    char *p = (char *)malloc(size);
    if (p) p[0] = 7;
    *out = (unsigned long long)p;
}
extern "C" __global__ void sample(unsigned long long texture, float *out) {
    out[threadIdx.x] = tex2D<float>(texture, threadIdx.x + 0.5f, 1.5f);
}
extern "C" __global__ void write(unsigned long long surface, int x, int y) {
    surf2Dwrite(1.0f, surface, x + (int)threadIdx.x, y);
}
extern "C" __global__ void layer(unsigned long long surface, int x, int y) {
    surf2DLayeredwrite(1.0f, surface, x, 0, y + threadIdx.x);
}
"""
FLOAT = bindings.CUarray_format.CU_AD_FORMAT_FLOAT
SURFACE, LAYERED = bindings.CUDA_ARRAY3D_SURFACE_LDST, bindings.CUDA_ARRAY3D_LAYERED
KIND = bindings.CUresourcetype
CLAMP = [bindings.CUaddress_mode.CU_TR_ADDRESS_MODE_CLAMP] * 3


@pytest.fixture
def kernels(context: Any) -> Any:
    return loaded(SOURCE)


def test_a_kernels_malloc_is_not_the_hosts_and_beyond_the_heap_gives_null(kernels: Any) -> None:
    out = upload(np.ones(1, np.uint64))
    launch(function(kernels, "take"), ctypes.c_void_p(out), ctypes.c_int(100))
    assert driver.cuMemsetD8(int(download(out, 1, np.uint64)[0]), 0, 1) == (INVALID,)
    launch(function(kernels, "take"), ctypes.c_void_p(out), ctypes.c_int(9 << 20))
    assert download(out, 1, np.uint64)[0] == 0


def texture(address: int, width: int, height: int, pitch: int, **settings: Any) -> Any:
    place = {"devPtr": bindings.CUdeviceptr(address), "width": width, "height": height, "pitchInBytes": pitch}
    place |= {"numChannels": 1, "format": settings.pop("format", FLOAT)}
    fields = {f"res__pitch2D__{name}": value for name, value in place.items()}
    resource = struct("CUDA_RESOURCE_DESC", resType=KIND.CU_RESOURCE_TYPE_PITCH2D, **fields)
    return driver.cuTexObjectCreate(resource, struct("CUDA_TEXTURE_DESC", addressMode=CLAMP, **settings), None)


def over_array(kind: str, *extents: int, flags: int = 0) -> tuple[Any, Any]:
    array = ok(create_array(*extents, flags=flags))
    resource = struct("CUDA_RESOURCE_DESC", resType=KIND.CU_RESOURCE_TYPE_ARRAY, res__array__hArray=array)
    if kind == "surface":
        return array, driver.cuSurfObjectCreate(resource)
    return array, driver.cuTexObjectCreate(resource, struct("CUDA_TEXTURE_DESC", addressMode=CLAMP), None)


WRITE_FLOATS, ILLEGAL = ("write", (4, 4), 0, (0, 0)), "ILLEGAL_ADDRESS"
FAULTS = [
    ("layer", (4, 4, 3), LAYERED, (8, 2), None, ILLEGAL, "layer = 3, x = 8, y = 0; block (0, 0, 0), thread (1"),
    (*WRITE_FLOATS, None, "MISALIGNED_ADDRESS", "4 bytes to a surface, at x = 1, y = 0: x counts bytes"),
    ("write", (8,), 0, (0, 0), None, "NOT_SUPPORTED", "of two dimensions, and this one has one dimension"),
    ("sample", (8, 2), 0, (), driver.cuArrayDestroy, ILLEGAL, "array allocation"),
    (*WRITE_FLOATS, driver.cuArrayDestroy, ILLEGAL, "the memory of surface"),
    (*WRITE_FLOATS, driver.cuSurfObjectDestroy, ILLEGAL, "is not a surface object"),
]


@pytest.mark.parametrize(("kernel", "extents", "flags", "place", "end", "error", "words"), FAULTS)
def test_a_wrong_use_of_an_array_is_a_fault(kernels, kernel, extents, flags, place, end, error, words):
    """The access is out of range, misaligned or of the wrong dimension, or its array or surface was destroyed."""
    array, result = over_array("texture" if kernel == "sample" else "surface", *extents, flags=flags | SURFACE)
    handle = ok(result)
    if end is not None:
        ok(end(array if end is driver.cuArrayDestroy else handle))
    numbers = map(ctypes.c_int, place) if place else [ctypes.c_void_p(upload(np.zeros(4, np.float32)))]
    launch(function(kernels, kernel), ctypes.c_ulonglong(int(handle)), *numbers, block=(2, 1, 1))
    assert driver.cuCtxSynchronize()[0].name == f"CUDA_ERROR_{error}"
    assert words in (driver.take_report() or "")


def test_only_arrays_that_were_made_for_it_have_surfaces(context: Any) -> None:
    assert over_array("surface", 4, 4)[1] == (INVALID, None)
    surface = ok(over_array("surface", 4, 4, flags=SURFACE)[1])
    ok(driver.cuSurfObjectDestroy(surface))
    assert driver.cuSurfObjectDestroy(surface) == (INVALID,)
    address = bindings.CUdeviceptr(upload(np.zeros(4, np.float32)))
    linear = struct("CUDA_RESOURCE_DESC", resType=KIND.CU_RESOURCE_TYPE_LINEAR, res__linear__devPtr=address)
    assert driver.cuSurfObjectCreate(linear) == (INVALID, None)


def test_textures_have_the_drivers_limits(context: Any) -> None:
    address = upload(np.zeros((4, 64), np.float32))
    linear = bindings.CUfilter_mode.CU_TR_FILTER_MODE_LINEAR
    integers = bindings.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32
    for wrong in ((address + 4, 16, 2, 256), (address, 16, 2, 100), (address, 65, 2, 256), (address, 64, 5, 256)):
        assert texture(*wrong) == (INVALID, None)
    assert texture(address, 64, 4, 256, filterMode=linear, format=integers) == (INVALID, None)
    assert texture(address, 64, 4, 256, filterMode=linear)[0] == Status.CUDA_SUCCESS


def from_device(address: int, array: Any, shape: tuple[int, int, int], **settings: Any) -> Any:
    kinds = bindings.CUmemorytype
    given = dict(zip(("Depth", "Height", "WidthInBytes"), shape, strict=True))
    given |= {"srcMemoryType": kinds.CU_MEMORYTYPE_DEVICE, "srcPitch": shape[2], "srcHeight": shape[1]}
    given |= {"srcDevice": address, "dstMemoryType": kinds.CU_MEMORYTYPE_ARRAY, "dstArray": array}
    return struct("CUDA_MEMCPY3D", **{**given, **settings})


ARRAYS = [
    ((131072,), 0, True),
    ((131073,), 0, False),
    ((32769,), SURFACE, False),
    ((8, 65536), 0, True),
    ((8, 65537), 0, False),
    ((8, 8, 16385), 0, True),  # the other limits of a 3-D array allow it
    ((8192, 2, 16385), SURFACE, False),
    ((8, 0, 8), 0, False),
    ((8, 0, 2048), LAYERED, True),
    ((8, 0, 2049), LAYERED, False),
    ((8, 8, 2048), LAYERED | SURFACE, True),
    ((8, 8), LAYERED, False),
    ((0, 8), 0, False),
]


def test_each_kind_of_array_has_its_limits(context: Any) -> None:
    for extents, flags, exists in ARRAYS:
        result = create_array(*extents, flags=flags)
        assert result[0] == (Status.CUDA_SUCCESS if exists else INVALID), (extents, flags)
        if exists:
            ok(driver.cuArrayDestroy(result[1]))


def test_an_array_is_described_as_it_was_asked_for_until_its_end(context: Any) -> None:
    gone = Status.CUDA_ERROR_INVALID_HANDLE
    array, other = ok(create_array(5, 4, 3, flags=SURFACE, channels=2)), ok(create_array(5))
    found = ok(driver.cuArray3DGetDescriptor(array))
    assert (found.Width, found.Height, found.Depth) == (5, 4, 3)
    assert (found.Format, found.NumChannels, found.Flags) == (FLOAT, 2, SURFACE)
    assert ok(driver.cuArrayGetDescriptor(array)).Height == 4
    ok(driver.cuArrayDestroy(array))
    assert driver.cuArrayDestroy(array) == (gone,)
    ok(driver.cuDevicePrimaryCtxReset(0))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
    assert driver.cuArray3DGetDescriptor(other)[0] == gone


def test_a_copy_stays_within_the_array(context: Any) -> None:
    array, source = ok(create_array(5, 4, 3)), upload(np.zeros(60, np.float32))
    ok(driver.cuMemcpy3D(from_device(source, array, (3, 4, 20), WidthInBytes=18, dstXInBytes=2)))
    for settings in ({"dstXInBytes": 2}, {"dstXInBytes": 4}, {"dstY": 1}, {"dstZ": 1}):
        assert driver.cuMemcpy3D(from_device(source, array, (3, 4, 20), **settings)) == (INVALID,), settings


def test_a_queued_copy_to_an_array_that_is_gone_is_a_fault_of_the_graph(play: Player) -> None:
    array, source = ok(create_array(5)), upload(np.zeros(5, np.float32))
    play("begin s relaxed")
    ok(driver.cuMemcpy3DAsync(from_device(source, array, (1, 1, 20)), play["s"]))
    executable = ok(driver.cuGraphInstantiate(play("end s"), 0))
    ok(driver.cuArrayDestroy(array))
    ok(driver.cuGraphLaunch(executable, play["s"]))
    play("sync s -> ILLEGAL_ADDRESS")
    assert "array allocation" in driver.take_report()


def test_a_texture_of_a_mipmap_needs_normalized_coordinates(context: Any) -> None:
    """As the documentation of CUDA_TEXTURE_DESC says; an H200 creates the texture without them too."""
    layout = struct("CUDA_ARRAY3D_DESCRIPTOR", Width=8, Height=4, NumChannels=1, Format=FLOAT)
    mipmap = ok(driver.cuMipmappedArrayCreate(layout, 2))
    kind = KIND.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
    resource = struct("CUDA_RESOURCE_DESC", resType=kind, res__mipmap__hMipmappedArray=mipmap)
    description = struct("CUDA_TEXTURE_DESC", addressMode=CLAMP)
    assert driver.cuTexObjectCreate(resource, description, None)[0] == INVALID
    description.flags = bindings.CU_TRSF_NORMALIZED_COORDINATES
    assert ok(driver.cuTexObjectCreate(resource, description, None))

"""CUDA arrays: which exist, what the driver says of them, and copies to and from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.kernels import INVALID
from tests.simulator.support import Status, download, ok, upload

FLOAT = bindings.CUarray_format.CU_AD_FORMAT_FLOAT
LAYERED, SURFACE = bindings.CUDA_ARRAY3D_LAYERED, bindings.CUDA_ARRAY3D_SURFACE_LDST
KIND = bindings.CUmemorytype


def made(width: int, height: int = 0, depth: int = 0, flags: int = 0, channels: int = 1) -> Any:
    """Return the result of making an array of floats."""
    description = bindings.CUDA_ARRAY3D_DESCRIPTOR()
    description.Width, description.Height, description.Depth = width, height, depth
    description.Format, description.NumChannels, description.Flags = FLOAT, channels, flags
    return driver.cuArray3DCreate(description)


def box(shape: tuple[int, int, int], **settings: Any) -> Any:
    """Return the parameters of a copy of depth, height and bytes."""
    copy = bindings.CUDA_MEMCPY3D()
    copy.Depth, copy.Height, copy.WidthInBytes = shape
    for name, value in settings.items():
        setattr(copy, name, value)
    return copy


def from_device(address: int, array: Any, shape: tuple[int, int, int], **settings: Any) -> Any:
    return box(
        shape,
        srcMemoryType=KIND.CU_MEMORYTYPE_DEVICE,
        srcDevice=address,
        srcPitch=shape[2],
        srcHeight=shape[1],
        dstMemoryType=KIND.CU_MEMORYTYPE_ARRAY,
        dstArray=array,
        **settings,
    )


@pytest.mark.parametrize(
    ("extents", "flags", "exists"),
    [
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
    ],
)
def test_each_kind_of_array_has_its_limits(context: Any, extents: tuple[int, ...], flags: int, exists: bool) -> None:
    result = made(*extents, flags=flags)
    assert result[0] == (Status.CUDA_SUCCESS if exists else INVALID)
    if exists:
        ok(driver.cuArrayDestroy(result[1]))


def test_an_array_is_described_as_it_was_asked_for(context: Any) -> None:
    array = ok(made(5, 4, 3, SURFACE, 2))
    found = ok(driver.cuArray3DGetDescriptor(array))
    assert (found.Width, found.Height, found.Depth) == (5, 4, 3)
    assert (found.Format, found.NumChannels, found.Flags) == (FLOAT, 2, SURFACE)
    assert ok(driver.cuArrayGetDescriptor(array)).Height == 4
    ok(driver.cuArrayDestroy(array))
    assert driver.cuArrayDestroy(array) == (Status.CUDA_ERROR_INVALID_HANDLE,)


def test_three_channels_and_unknown_formats_are_refused(context: Any) -> None:
    assert made(4, channels=3) == (INVALID, None)
    description = bindings.CUDA_ARRAY_DESCRIPTOR()
    description.Width, description.NumChannels = 4, 1
    assert driver.cuArrayCreate(description) == (INVALID, None)
    description.Format = FLOAT
    ok(driver.cuArrayDestroy(ok(driver.cuArrayCreate(description))))


def test_an_array_takes_the_devices_memory(context: Any) -> None:
    before = ok(driver.cuMemGetInfo())[0]
    array = ok(made(256, 256))
    assert before - ok(driver.cuMemGetInfo())[0] == 256 * 1024
    ok(driver.cuArrayDestroy(array))
    assert ok(driver.cuMemGetInfo())[0] == before


def test_a_box_inside_an_array_is_copied(context: Any) -> None:
    host = np.arange(24, dtype=np.float32)
    array, source, zeros = ok(made(5, 4, 3)), upload(host), upload(np.zeros(60, np.float32))
    ok(driver.cuMemcpy3D(from_device(zeros, array, (3, 4, 20))))
    ok(driver.cuMemcpy3D(from_device(source, array, (2, 3, 16), dstXInBytes=4, dstY=1, dstZ=1)))
    out = upload(np.zeros(60, np.float32))
    back = box(
        (3, 4, 20),
        srcMemoryType=KIND.CU_MEMORYTYPE_ARRAY,
        srcArray=array,
        dstMemoryType=KIND.CU_MEMORYTYPE_DEVICE,
        dstDevice=out,
        dstPitch=20,
        dstHeight=4,
    )
    ok(driver.cuMemcpy3D(back))
    found = download(out, 60, np.float32).reshape(3, 4, 5)
    assert (found[1:, 1:, 1:] == host.reshape(2, 3, 4)).all()
    assert found.sum() == host.sum()


@pytest.mark.parametrize(
    "settings",
    [{"dstXInBytes": 2}, {"dstXInBytes": 4}, {"dstY": 1}, {"dstZ": 1}, {"WidthInBytes": 18}],
)
def test_a_copy_stays_within_the_array_and_its_elements(context: Any, settings: dict[str, int]) -> None:
    array, source = ok(made(5, 4, 3)), upload(np.zeros(60, np.float32))
    assert driver.cuMemcpy3D(from_device(source, array, (3, 4, 20), **settings)) == (INVALID,)


def test_a_copy_of_two_dimensions_takes_no_array_of_three(context: Any) -> None:
    copy = bindings.CUDA_MEMCPY2D()
    copy.srcMemoryType, copy.srcDevice = KIND.CU_MEMORYTYPE_DEVICE, upload(np.zeros(60, np.float32))
    copy.dstMemoryType = KIND.CU_MEMORYTYPE_ARRAY
    copy.srcPitch, copy.WidthInBytes, copy.Height = 20, 20, 4
    copy.dstArray = ok(made(5, 4, 3))
    assert driver.cuMemcpy2D(copy) == (INVALID,)
    copy.dstArray = ok(made(5, 4))
    ok(driver.cuMemcpy2D(copy))


def test_a_queued_copy_to_an_array_that_is_gone_is_a_fault_of_the_graph(context: Any) -> None:
    array, source = ok(made(5)), upload(np.zeros(5, np.float32))
    stream = ok(driver.cuStreamCreate(1))
    ok(driver.cuStreamBeginCapture(stream, bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    ok(driver.cuMemcpy3DAsync(from_device(source, array, (1, 1, 20)), stream))
    graph = ok(driver.cuStreamEndCapture(stream))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuArrayDestroy(array))
    ok(driver.cuGraphLaunch(executable, stream))
    assert driver.cuStreamSynchronize(stream) == (Status.CUDA_ERROR_ILLEGAL_ADDRESS,)
    assert "array allocation" in driver.take_report()


def test_a_context_forgets_its_arrays_at_its_end(context: Any) -> None:
    array = ok(made(5))
    device = ok(driver.cuCtxGetDevice())
    ok(driver.cuDevicePrimaryCtxReset(device))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(device))))
    assert driver.cuArray3DGetDescriptor(array)[0] == Status.CUDA_ERROR_INVALID_HANDLE

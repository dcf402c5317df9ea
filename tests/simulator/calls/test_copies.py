"""Copies: results, bounds, and when a source is read."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings
from hypothesis import given
from hypothesis import strategies as st

from cudart_py.simulator import driver
from tests.simulator.support import Status, download, fresh_devices, ok, upload

INVALID = (Status.CUDA_ERROR_INVALID_VALUE,)
SIZE = 1000


def pinned(size: int) -> np.ndarray[Any, Any]:
    """Return pinned memory as an array."""
    address = ok(driver.cuMemHostAlloc(size, 0))
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


@pytest.fixture
def stream(context: Any) -> Any:
    return ok(driver.cuStreamCreate(1))


def test_bytes_go_up_and_down(context: Any) -> None:
    data = np.random.default_rng(1).integers(0, 256, SIZE, np.uint8)
    assert (download(upload(data), SIZE) == data).all()


@pytest.mark.parametrize("host", ["bytes", "array", "address"])
def test_the_host_side_is_a_buffer_or_an_address(context: Any, host: str) -> None:
    data = np.arange(256, dtype=np.uint8)
    address = ok(driver.cuMemAlloc(256))
    source = {"bytes": data.tobytes(), "array": data, "address": data.ctypes.data}[host]
    ok(driver.cuMemcpyHtoD(address, source, 256))
    assert (download(int(address), 256) == data).all()


@pytest.mark.parametrize(("offset", "size"), [(0, SIZE + 1), (1, SIZE), (-1, 5), (SIZE, 1), (SIZE + 200, 1)])
def test_bytes_outside_an_allocation_are_an_invalid_value(context: Any, offset: int, size: int) -> None:
    device = upload(np.zeros(SIZE, np.uint8))
    other = upload(np.zeros(2 * SIZE, np.uint8))
    host = np.zeros(2 * SIZE, np.uint8)
    assert driver.cuMemcpyHtoD(device + offset, host.ctypes.data, size) == INVALID
    assert driver.cuMemcpyDtoH(host.ctypes.data, device + offset, size) == INVALID
    assert driver.cuMemcpyDtoD(device + offset, other, size) == INVALID
    assert driver.cuMemcpyDtoD(other, device + offset, size) == INVALID
    assert driver.cuMemcpy(device + offset, host.ctypes.data, size) == INVALID
    assert driver.cuMemsetD8(device + offset, 0, size) == INVALID


def test_sides_may_not_be_exchanged(context: Any) -> None:
    device, host = upload(np.zeros(SIZE, np.uint8)), np.zeros(SIZE, np.uint8)
    assert driver.cuMemcpyHtoD(host.ctypes.data, device, SIZE) == INVALID
    assert driver.cuMemcpyDtoH(device, host.ctypes.data, SIZE) == INVALID


def test_null_is_an_invalid_value_and_no_bytes_are_none(context: Any) -> None:
    device, host = upload(np.zeros(SIZE, np.uint8)), np.zeros(SIZE, np.uint8)
    assert driver.cuMemcpyHtoD(device, None, SIZE) == INVALID
    assert driver.cuMemcpyHtoD(0, host, SIZE) == INVALID
    ok(driver.cuMemcpyHtoD(0, None, 0))


def test_unified_copies_find_the_direction(context: Any) -> None:
    data = np.arange(100, dtype=np.uint8)
    result = np.zeros(100, np.uint8)
    first, second = ok(driver.cuMemAlloc(100)), ok(driver.cuMemAlloc(100))
    ok(driver.cuMemcpy(first, data.ctypes.data, 100))
    ok(driver.cuMemcpy(second, first, 100))
    ok(driver.cuMemcpy(result.ctypes.data, second, 100))
    assert (result == data).all()


def test_a_pageable_source_is_read_at_the_call(stream: Any) -> None:
    data = np.full(SIZE, 1, np.uint8)
    device = ok(driver.cuMemAlloc(SIZE))
    ok(driver.cuMemcpyHtoDAsync(device, data, SIZE, stream))
    data[:] = 2
    assert (download(int(device), SIZE) == 1).all()


def test_a_pinned_source_is_read_when_the_copy_runs(stream: Any) -> None:
    data = pinned(SIZE)
    data[:] = 1
    device = ok(driver.cuMemAlloc(SIZE))
    ok(driver.cuMemcpyHtoDAsync(device, data.ctypes.data, SIZE, stream))
    data[:] = 2
    assert (download(int(device), SIZE) == 2).all()


def test_a_registered_source_is_read_when_the_copy_runs(stream: Any) -> None:
    data = np.full(SIZE, 1, np.uint8)
    ok(driver.cuMemHostRegister(data, SIZE, 0))
    device = ok(driver.cuMemAlloc(SIZE))
    ok(driver.cuMemcpyHtoDAsync(device, data, SIZE, stream))
    data[:] = 2
    assert (download(int(device), SIZE) == 2).all()


def test_a_pinned_result_is_there_only_after_a_synchronise(stream: Any) -> None:
    device, result = upload(np.full(SIZE, 7, np.uint8)), pinned(SIZE)
    ok(driver.cuMemcpyDtoHAsync(result.ctypes.data, device, SIZE, stream))
    assert (result == 0).all()
    ok(driver.cuStreamSynchronize(stream))
    assert (result == 7).all()


def test_a_pageable_result_is_there_when_the_call_returns(stream: Any) -> None:
    device, result = ok(driver.cuMemAlloc(SIZE)), np.zeros(SIZE, np.uint8)
    ok(driver.cuMemsetD8Async(device, 9, SIZE, stream))
    ok(driver.cuMemcpyDtoHAsync(result, device, SIZE, stream))
    assert (result == 9).all()


def test_a_copy_between_host_memories_is_done_when_the_call_returns(stream: Any) -> None:
    source, result = pinned(SIZE), pinned(SIZE)
    source[:] = 5
    ok(driver.cuMemcpyAsync(result.ctypes.data, source.ctypes.data, SIZE, stream))
    assert (result == 5).all()


def test_a_fill_of_memory_that_the_host_sees_is_waited_for(context: Any) -> None:
    managed = int(ok(driver.cuMemAllocManaged(SIZE, 1)))
    view = np.ctypeslib.as_array((ctypes.c_uint8 * SIZE).from_address(managed))
    ok(driver.cuMemsetD8Async(managed, 3, SIZE, 0))
    assert (view == 0).all()
    ok(driver.cuMemsetD8(managed, 4, SIZE))
    assert (view == 4).all()


def test_a_copy_between_devices_is_not_waited_for(context: Any) -> None:
    source, destination = upload(np.ones(SIZE, np.uint8)), upload(np.zeros(SIZE, np.uint8))
    view = np.ctypeslib.as_array((ctypes.c_uint8 * SIZE).from_address(destination))
    ok(driver.cuMemcpyDtoD(destination, source, SIZE))
    assert (view == 0).all()


def test_a_forgotten_synchronise_shows_as_stale_data(stream: Any) -> None:
    device, result = upload(np.zeros(SIZE, np.uint8)), np.zeros(SIZE, np.uint8)
    ok(driver.cuMemsetD8Async(device, 9, SIZE, stream))
    ok(driver.cuMemcpyDtoH(result, device, SIZE))
    assert (result == 0).all()


def _two_dimensions(**fields: Any) -> Any:
    parameters = bindings.CUDA_MEMCPY2D()
    kinds = bindings.CUmemorytype
    for end in ("src", "dst"):
        setattr(parameters, f"{end}MemoryType", getattr(kinds, f"CU_MEMORYTYPE_{fields.pop(end).upper()}"))
    for name, value in fields.items():
        setattr(parameters, name, bindings.CUdeviceptr(value) if name.endswith("Device") else value)
    return parameters


@pytest.fixture(scope="module")
def own_device() -> Iterator[None]:
    restore = fresh_devices(1, 64 << 20)
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
    yield
    restore()


boxes = st.tuples(st.integers(1, 20), st.integers(1, 20), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))


@given(boxes, st.integers(0, 9), st.integers(0, 9), st.booleans())
def test_rows_of_any_shape_arrive_as_with_slices(
    own_device: None, box: tuple[int, ...], x: int, y: int, waits: bool
) -> None:
    height, width, source_x, source_y, more = box
    source = np.random.default_rng(3).integers(0, 256, (source_y + height, source_x + width + more), np.uint8)
    expected = np.zeros((y + height + 1, x + width + 2), np.uint8)
    expected[y : y + height, x : x + width] = source[source_y:, source_x : source_x + width]
    device = upload(np.zeros_like(expected))
    parameters = _two_dimensions(
        src="host",
        srcHost=source.ctypes.data,
        srcPitch=source.shape[1],
        srcXInBytes=source_x,
        srcY=source_y,
        dst="device",
        dstDevice=device,
        dstPitch=expected.shape[1],
        dstXInBytes=x,
        dstY=y,
        WidthInBytes=width,
        Height=height,
    )
    ok(driver.cuMemcpy2D(parameters) if waits else driver.cuMemcpy2DAsync(parameters, 0))
    source[:] = 0
    assert (download(device, expected.size).reshape(expected.shape) == expected).all()
    ok(driver.cuMemFree(device))


@pytest.mark.parametrize(
    "wrong",
    [
        {"srcPitch": 15},
        {"dstPitch": 15},
        {"Height": 11},
        {"dstY": 1},
        {"dstXInBytes": 1},
        {"srcHost": 0},
        {"dstDevice": 0},
        {"srcXInBytes": 17},
    ],
    ids=str,
)
def test_rows_outside_or_with_a_small_pitch_are_an_invalid_value(context: Any, wrong: dict[str, int]) -> None:
    source = np.zeros(160, np.uint8)
    device = upload(source)
    fields = {"srcHost": source.ctypes.data, "srcPitch": 16, "dstDevice": device, "dstPitch": 16, "WidthInBytes": 16}
    parameters = _two_dimensions(src="host", dst="device", **{**fields, "Height": 10, **wrong})
    assert driver.cuMemcpy2D(parameters) == INVALID


def test_a_copy_without_kinds_of_memory_is_an_invalid_value(context: Any) -> None:
    parameters = bindings.CUDA_MEMCPY2D()
    parameters.WidthInBytes = parameters.Height = 1
    assert driver.cuMemcpy2D(parameters) == INVALID
    assert driver.cuMemcpy2D(None) == INVALID


def test_a_box_goes_down_as_with_slices(context: Any) -> None:
    cube = np.random.default_rng(5).integers(0, 256, (6, 7, 8), np.uint8)
    device = upload(cube)
    result = np.zeros((4, 5, 9), np.uint8)
    parameters = bindings.CUDA_MEMCPY3D()
    parameters.srcMemoryType = bindings.CUmemorytype.CU_MEMORYTYPE_DEVICE
    parameters.dstMemoryType = bindings.CUmemorytype.CU_MEMORYTYPE_HOST
    parameters.srcDevice, parameters.dstHost = bindings.CUdeviceptr(device), result.ctypes.data
    parameters.srcPitch, parameters.srcHeight, parameters.dstPitch, parameters.dstHeight = 8, 7, 9, 5
    parameters.srcXInBytes, parameters.srcY, parameters.srcZ = 1, 2, 3
    parameters.dstXInBytes, parameters.dstY, parameters.dstZ = 2, 1, 1
    parameters.WidthInBytes, parameters.Height, parameters.Depth = 6, 4, 3
    expected = np.zeros_like(result)
    expected[1:4, 1:5, 2:8] = cube[3:6, 2:6, 1:7]
    ok(driver.cuMemcpy3D(parameters))
    assert (result == expected).all()
    parameters.srcZ = 4
    assert driver.cuMemcpy3D(parameters) == INVALID


@pytest.mark.parametrize("end", ["src", "dst"])
@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ({"Y": 3, "height": 4, "depth": 2}, True),
        ({"Y": 4, "height": 4, "depth": 2}, False),  # a slice has 7 rows
        ({"Y": 4, "height": 4, "Z": 1}, False),
        ({"Y": 4, "height": 4}, True),  # the only slice may be higher than is said
        ({"Y": 3, "height": 5, "depth": 2}, False),
        ({"XInBytes": 2, "width": 6}, True),
        ({"XInBytes": 3, "width": 6}, False),
        ({"Y": 1, "Pitch": 0}, False),
        ({"Z": 1, "Pitch": 0}, False),
        ({"Pitch": 0}, True),
    ],
    ids=str,
)
def test_each_end_of_a_box_is_checked_against_its_pitch_and_height(
    context: Any, end: str, fields: dict[str, int], fits: bool
) -> None:
    device, host = upload(np.zeros(1000, np.uint8)), np.zeros(1000, np.uint8)
    parameters = bindings.CUDA_MEMCPY3D()
    other = "dst" if end == "src" else "src"
    setattr(parameters, f"{end}MemoryType", bindings.CUmemorytype.CU_MEMORYTYPE_DEVICE)
    setattr(parameters, f"{other}MemoryType", bindings.CUmemorytype.CU_MEMORYTYPE_HOST)
    setattr(parameters, f"{end}Device", bindings.CUdeviceptr(device))
    setattr(parameters, f"{other}Host", host.ctypes.data)
    for name, value in {"Pitch": 8, "Height": 7, **fields}.items():
        if name[0].isupper():
            setattr(parameters, f"{end}{name}", value)
    setattr(parameters, f"{other}Pitch", 10)
    setattr(parameters, f"{other}Height", 10)
    parameters.WidthInBytes = fields.get("width", 4)
    parameters.Height = fields.get("height", 1)
    parameters.Depth = fields.get("depth", 1)
    assert driver.cuMemcpy3D(parameters) == ((Status.CUDA_SUCCESS,) if fits else INVALID)


@given(st.sampled_from([1, 2, 4]), st.integers(0, 5), st.integers(1, 6), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_fills_set_what_slices_would(own_device: None, element: int, first: int, height: int, gap: int, v: int) -> None:
    dtype = np.dtype(f"u{element}")
    value = v % (1 << 8 * element)
    width = 5
    expected = np.zeros((height, first + width + gap), dtype)
    expected[:, first : first + width] = value
    device = upload(np.zeros_like(expected))
    bits = 8 * element
    pitch = expected.shape[1] * element
    fill = getattr(driver, f"cuMemsetD2D{bits}Async")
    ok(fill(device + first * element, pitch, value, width, height, 0))
    assert (download(device, expected.size, dtype).reshape(expected.shape) == expected).all()
    ok(driver.cuMemFree(device))


def test_misaligned_fills_are_an_invalid_value(context: Any) -> None:
    device = upload(np.zeros(100, np.uint8))
    assert driver.cuMemsetD16(device + 1, 0, 4) == INVALID
    assert driver.cuMemsetD32(device + 2, 0, 4) == INVALID
    assert driver.cuMemsetD2D32(device, 10, 0, 2, 2) == INVALID


def test_fills_outside_are_an_invalid_value(context: Any) -> None:
    device = upload(np.zeros(100, np.uint8))
    assert driver.cuMemsetD32(device, 0, 26) == INVALID
    assert driver.cuMemsetD2D8(device, 10, 0, 10, 11) == INVALID
    assert driver.cuMemsetD2D8(device, 5, 0, 6, 2) == INVALID
    ok(driver.cuMemsetD8(device, 0, 0))


def test_a_fill_reaches_no_other_devices_memory(two_devices: list[Any]) -> None:
    array, stream = upload(np.arange(100, dtype=np.uint8)), ok(driver.cuStreamCreate(1))
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    for default in (0, 1, 2):
        assert driver.cuMemsetD8Async(array, 7, 100, default) == INVALID
    assert driver.cuMemsetD8(array, 7, 100) == INVALID
    # A stream of the memory's own device is good whatever is current.
    ok(driver.cuMemsetD8Async(array, 9, 50, stream))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuCtxSetCurrent(two_devices[0]))
    assert (download(array, 100) == [*[9] * 50, *range(50, 100)]).all()

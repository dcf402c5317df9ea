from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.support import Status, download, ok, struct, upload

INVALID = (Status.CUDA_ERROR_INVALID_VALUE,)
SIZE = 1000
DEVICE = bindings.CUmemorytype.CU_MEMORYTYPE_DEVICE
HOST = bindings.CUmemorytype.CU_MEMORYTYPE_HOST


def seen(address: int) -> np.ndarray[Any, Any]:
    """Return memory as an array, without waiting for anything."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * SIZE).from_address(address))


@pytest.mark.parametrize("host", ["bytes", "array", "address"])
def test_the_host_side_is_a_buffer_or_an_address(context: Any, host: str) -> None:
    data = np.random.default_rng(1).integers(0, 256, SIZE, np.uint8)
    address = ok(driver.cuMemAlloc(SIZE))
    source = {"bytes": data.tobytes(), "array": data, "address": data.ctypes.data}[host]
    ok(driver.cuMemcpyHtoD(address, source, SIZE))
    assert (download(int(address), SIZE) == data).all()


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


def test_sides_may_not_be_exchanged_or_null(context: Any) -> None:
    device, host = upload(np.zeros(SIZE, np.uint8)), np.zeros(SIZE, np.uint8)
    assert driver.cuMemcpyHtoD(host.ctypes.data, device, SIZE) == INVALID
    assert driver.cuMemcpyDtoH(device, host.ctypes.data, SIZE) == INVALID
    assert driver.cuMemcpyHtoD(device, None, SIZE) == INVALID
    assert driver.cuMemcpyHtoD(0, host, SIZE) == INVALID
    ok(driver.cuMemcpyHtoD(0, None, 0))


def test_a_fill_of_memory_that_the_host_sees_is_waited_for(context: Any) -> None:
    managed = int(ok(driver.cuMemAllocManaged(SIZE, 1)))
    ok(driver.cuMemsetD8Async(managed, 3, SIZE, 0))
    assert (seen(managed) == 0).all()
    ok(driver.cuMemsetD8(managed, 4, SIZE))
    assert (seen(managed) == 4).all()


def test_a_copy_between_devices_is_not_waited_for(context: Any) -> None:
    source, destination = upload(np.ones(SIZE, np.uint8)), upload(np.zeros(SIZE, np.uint8))
    ok(driver.cuMemcpyDtoD(destination, source, SIZE))
    assert (seen(destination) == 0).all()


def test_a_forgotten_synchronise_shows_as_stale_data(stream: Any) -> None:
    device, result = upload(np.zeros(SIZE, np.uint8)), np.zeros(SIZE, np.uint8)
    ok(driver.cuMemsetD8Async(device, 9, SIZE, stream))
    ok(driver.cuMemcpyDtoH(result, device, SIZE))
    assert (result == 0).all()


WRONG: list[dict[str, Any]] = [
    {"srcPitch": 15},
    {"dstPitch": 15},
    {"Height": 11},
    {"dstY": 1},
    {"dstXInBytes": 1},
    {"srcHost": 0},
    {"dstDevice": 0},
    {"srcXInBytes": 17},
]


def test_rows_outside_or_with_a_small_pitch_are_an_invalid_value(context: Any) -> None:
    host = np.zeros(160, np.uint8)
    source = {"srcMemoryType": HOST, "srcHost": host.ctypes.data, "srcPitch": 16}
    end = {"dstMemoryType": DEVICE, "dstDevice": upload(host), "dstPitch": 16}
    right = {**source, **end, "WidthInBytes": 16, "Height": 10}
    ok(driver.cuMemcpy2D(struct("CUDA_MEMCPY2D", **right)))
    for wrong in WRONG:
        assert driver.cuMemcpy2D(struct("CUDA_MEMCPY2D", **{**right, **wrong})) == INVALID, wrong
    assert driver.cuMemcpy2D(struct("CUDA_MEMCPY2D", WidthInBytes=1, Height=1)) == INVALID
    assert driver.cuMemcpy2D(None) == INVALID


ENDS = [
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
]


@pytest.mark.parametrize(("end", "other"), [("src", "dst"), ("dst", "src")])
def test_each_end_of_a_box_is_checked_against_its_pitch_and_height(context: Any, end: str, other: str) -> None:
    device, host = upload(np.zeros(1000, np.uint8)), np.zeros(1000, np.uint8)
    there = {"MemoryType": HOST, "Host": host.ctypes.data, "Pitch": 10, "Height": 10}
    for fields, fits in ENDS:
        here = {"MemoryType": DEVICE, "Device": device, "Pitch": 8, "Height": 7}
        here.update((name, value) for name, value in fields.items() if name[0].isupper())
        sides = {f"{side}{name}": value for side, of in ((end, here), (other, there)) for name, value in of.items()}
        size = {"WidthInBytes": fields.get("width", 4), "Height": fields.get("height", 1)}
        parameters = struct("CUDA_MEMCPY3D", **sides, **size, Depth=fields.get("depth", 1))
        assert driver.cuMemcpy3D(parameters) == ((Status.CUDA_SUCCESS,) if fits else INVALID), fields


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

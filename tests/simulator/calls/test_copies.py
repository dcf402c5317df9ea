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


def test_the_host_side_is_a_buffer_or_an_address(context: Any) -> None:
    data, address = np.random.default_rng(1).integers(0, 256, SIZE, np.uint8), int(ok(driver.cuMemAlloc(SIZE)))
    for source in (data.tobytes(), data, data.ctypes.data):
        ok(driver.cuMemsetD8(address, 0, SIZE))
        ok(driver.cuMemcpyHtoD(address, source, SIZE))
        assert (download(address, SIZE) == data).all()


def test_bytes_outside_an_allocation_and_sides_exchanged_or_null_are_an_invalid_value(context: Any) -> None:
    device, other = upload(np.zeros(SIZE, np.uint8)), upload(np.zeros(2 * SIZE, np.uint8))
    host = np.zeros(2 * SIZE, np.uint8).ctypes.data
    for offset, size in ((0, SIZE + 1), (1, SIZE), (-1, 5), (SIZE, 1), (SIZE + 200, 1)):
        assert driver.cuMemcpyHtoD(device + offset, host, size) == INVALID
        assert driver.cuMemcpyDtoH(host, device + offset, size) == INVALID
        assert driver.cuMemcpyDtoD(device + offset, other, size) == INVALID
        assert driver.cuMemcpyDtoD(other, device + offset, size) == INVALID
        assert driver.cuMemcpy(device + offset, host, size) == INVALID
        assert driver.cuMemsetD8(device + offset, 0, size) == INVALID
    for destination, source in ((host, device), (device, None), (0, host)):
        assert driver.cuMemcpyHtoD(destination, source, SIZE) == INVALID
    assert driver.cuMemcpyDtoH(device, host, SIZE) == INVALID
    ok(driver.cuMemcpyHtoD(0, None, 0))


def test_only_a_fill_of_memory_that_the_host_sees_is_waited_for(stream: Any) -> None:
    def seen(address: int) -> set[int]:
        return set((ctypes.c_uint8 * SIZE).from_address(address))

    managed = int(ok(driver.cuMemAllocManaged(SIZE, 1)))
    ok(driver.cuMemsetD8Async(managed, 3, SIZE, 0))
    assert seen(managed) == {0}
    ok(driver.cuMemsetD8(managed, 4, SIZE))
    assert seen(managed) == {4}
    source, destination = upload(np.ones(SIZE, np.uint8)), upload(np.zeros(SIZE, np.uint8))
    ok(driver.cuMemcpyDtoD(destination, source, SIZE))
    assert seen(destination) == {0}
    # A forgotten synchronise shows as stale data.
    result = np.zeros(SIZE, np.uint8)
    ok(driver.cuMemsetD8Async(source, 9, SIZE, stream))
    ok(driver.cuMemcpyDtoH(result, source, SIZE))
    assert (result == 1).all()


ENDS: list[tuple[dict[str, int], bool]] = [
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
    ({"Device": 0}, False),
    ({"Y": 124}, True),
    ({"Y": 125}, False),  # the allocation has 125 rows
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
    assert driver.cuMemcpy2D(struct("CUDA_MEMCPY2D", WidthInBytes=1, Height=1)) == INVALID
    assert driver.cuMemcpy2D(None) == INVALID


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

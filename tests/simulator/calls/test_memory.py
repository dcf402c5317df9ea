"""Allocations: counts, guards, reuse of addresses, descriptions, host and managed memory, pointer attributes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.state import contexts, memory
from tests.simulator.support import SUCCESS, Status, ok, upload

Pointer = bindings.CUpointer_attribute
INVALID = Status.CUDA_ERROR_INVALID_VALUE


def test_counts_return_to_the_start(context: Any) -> None:
    start = ok(driver.cuMemGetInfo())
    addresses = [ok(driver.cuMemAlloc(size)) for size in (1, 511, 512, 513, 100_000, 5_000_000)]
    assert ok(driver.cuMemGetInfo())[0] < start[0]
    for address in addresses:
        ok(driver.cuMemFree(address))
    assert ok(driver.cuMemGetInfo()) == start


def test_too_much_is_out_of_memory_and_takes_nothing(context: Any) -> None:
    start = ok(driver.cuMemGetInfo())
    assert driver.cuMemAlloc((64 << 20) + 1) == (Status.CUDA_ERROR_OUT_OF_MEMORY, None)
    assert ok(driver.cuMemGetInfo()) == start
    ok(driver.cuMemAlloc(64 << 20))
    assert driver.cuMemAlloc(1) == (Status.CUDA_ERROR_OUT_OF_MEMORY, None)


@pytest.mark.parametrize("size", [0, -1])
def test_no_bytes_are_an_invalid_value(context: Any, size: int) -> None:
    assert driver.cuMemAlloc(size) == (INVALID, None)
    assert driver.cuMemAllocAsync(size, 0) == (INVALID, None)
    assert driver.cuMemHostAlloc(size, 0) == (INVALID, None)


def test_freeing_twice_is_an_invalid_value(context: Any) -> None:
    address = ok(driver.cuMemAlloc(100))
    ok(driver.cuMemFree(address))
    assert driver.cuMemFree(address) == (INVALID,)
    assert driver.cuMemFree(12345) == (INVALID,)
    ok(driver.cuMemFree(0))


@pytest.mark.parametrize("size", [100, 1_000_000])
def test_an_address_is_not_given_again_after_its_end(context: Any, size: int) -> None:
    seen = set()
    for _ in range(200):
        address = int(ok(driver.cuMemAlloc(size)))
        ok(driver.cuMemFree(address))
        seen.add(address)
    assert len(seen) == 200


@pytest.mark.parametrize("size", [1, 100, 512, 40_000, 3_000_000])
def test_nothing_lies_right_behind_an_allocation(context: Any, size: int) -> None:
    for _ in range(20):
        address = int(ok(driver.cuMemAlloc(size)))
        assert address % 512 == 0
        assert memory.live.find(address - 1) is None
        assert memory.live.find(address + size) is None


def test_pages_of_a_freed_allocation_are_gone_from_the_process(context: Any) -> None:
    address = int(ok(driver.cuMemAlloc(10_000_000)))
    ok(driver.cuMemFree(address))
    assert _access(address) == "---p"


def _access(address: int) -> str:
    with open("/proc/self/maps", encoding="ascii") as lines:
        for line in lines:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            if start <= address < end:
                return line.split()[1]
    return "unmapped"


def test_pitched_rows_begin_at_multiples_of_512(context: Any) -> None:
    address, pitch = ok(driver.cuMemAllocPitch(1000, 7, 4))
    assert pitch == 1024
    assert ok(driver.cuMemGetAddressRange(address))[1] == 7 * 1024


@pytest.mark.parametrize("element", [0, 1, 2, 3, 32])
def test_a_pitched_element_has_4_8_or_16_bytes(context: Any, element: int) -> None:
    assert driver.cuMemAllocPitch(16, 16, element) == (INVALID, None, None)


def test_extents_are_sorted_and_follow_the_generation(context: Any) -> None:
    view = contexts.current().memory
    address = int(ok(driver.cuMemAlloc(100)))
    starts, ends = view.extents()
    assert (np.diff(starts) > 0).all()
    assert ends[starts.tolist().index(address)] == address + 100
    generation = view.generation
    ok(driver.cuMemFree(address))
    assert view.generation != generation
    assert address not in view.extents()[0].tolist()


def test_the_view_holds_the_bytes_of_an_allocation(context: Any) -> None:
    view = contexts.current().memory
    address = upload(np.arange(50, dtype=np.uint8))
    assert (view.bytes[address - view.base :][:50] == np.arange(50)).all()


def test_another_devices_memory_is_in_reach_only_with_peer_access(two_devices: list[Any]) -> None:
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    address = int(ok(driver.cuMemAlloc(100)))
    ok(driver.cuCtxSetCurrent(two_devices[0]))
    view = contexts.current().memory
    assert address not in view.extents()[0].tolist()
    assert "no peer access" in view.describe(address)
    ok(driver.cuCtxEnablePeerAccess(two_devices[1], 0))
    assert address in view.extents()[0].tolist()


def test_addresses_are_described(context: Any) -> None:
    line = inspect.currentframe().f_lineno + 1
    address = int(ok(driver.cuMemAlloc(4096)))
    name = f"the 4096-byte allocation at {address:#x}, allocated at {__file__}:{line}"
    assert memory.describe(address + 4108) == f"12 bytes after the end of {name}"
    assert memory.describe(address + 1) == f"1 byte into {name}"
    assert memory.describe(0) == "the null pointer"
    ok(driver.cuMemFree(address))
    assert memory.describe(address + 8) == f"8 bytes into {name}, which was freed"


def test_pinned_memory_has_one_address_for_both_sides(context: Any) -> None:
    address = ok(driver.cuMemHostAlloc(1000, bindings.CU_MEMHOSTALLOC_DEVICEMAP))
    assert int(ok(driver.cuMemHostGetDevicePointer(address, 0))) == address
    assert ok(driver.cuMemHostGetFlags(address)) == bindings.CU_MEMHOSTALLOC_DEVICEMAP
    assert address in contexts.current().memory.extents()[0].tolist()
    ok(driver.cuMemFreeHost(address))
    assert driver.cuMemFreeHost(address) == (INVALID,)
    assert driver.cuMemHostGetDevicePointer(address, 0) == (INVALID, None)


def test_pinned_memory_takes_none_of_the_device(context: Any) -> None:
    start = ok(driver.cuMemGetInfo())
    ok(driver.cuMemHostAlloc(1 << 20, 0))
    ok(driver.cuMemAllocManaged(1 << 20, 1))
    assert ok(driver.cuMemGetInfo()) == start


def test_kinds_of_memory_are_freed_by_their_own_function(context: Any) -> None:
    pinned, device = ok(driver.cuMemHostAlloc(64, 0)), ok(driver.cuMemAlloc(64))
    assert driver.cuMemFree(pinned) == (INVALID,)
    assert driver.cuMemFreeHost(int(device)) == (INVALID,)


def test_registered_memory_is_in_reach_until_it_is_unregistered(context: Any) -> None:
    array = np.zeros(1000, np.uint8)
    address = array.ctypes.data
    ok(driver.cuMemHostRegister(array, 1000, 0))
    assert address in contexts.current().memory.extents()[0].tolist()
    assert int(ok(driver.cuMemHostGetDevicePointer(address, 0))) == address
    overlapping = driver.cuMemHostRegister(address + 500, 1000, 0)
    assert overlapping == (Status.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,)
    ok(driver.cuMemHostUnregister(address))
    assert address not in contexts.current().memory.extents()[0].tolist()
    assert driver.cuMemHostUnregister(address) == (Status.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,)


def test_advice_and_prefetches_are_kept(context: Any) -> None:
    address = ok(driver.cuMemAllocManaged(4096, 1))
    location = bindings.CUmemLocation()
    location.type = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    location.id = 1
    advice, attributes = bindings.CUmem_advise, bindings.CUmem_range_attribute
    ok(driver.cuMemAdvise(address, 4096, advice.CU_MEM_ADVISE_SET_READ_MOSTLY, location))
    ok(driver.cuMemAdvise(address, 4096, advice.CU_MEM_ADVISE_SET_ACCESSED_BY, location))
    ok(driver.cuMemPrefetchAsync(address, 4096, location, 0, 0))

    def get(name: str, size: int = 4) -> Any:
        attribute = getattr(attributes, f"CU_MEM_RANGE_ATTRIBUTE_{name}")
        return ok(driver.cuMemRangeGetAttribute(size, attribute, address, 4096))

    assert get("READ_MOSTLY") == 1
    assert get("ACCESSED_BY", 12) == [1, -2, -2]
    assert get("PREFERRED_LOCATION") == -2
    assert get("LAST_PREFETCH_LOCATION") == -2
    ok(driver.cuCtxSynchronize())
    assert get("LAST_PREFETCH_LOCATION") == 1


def test_advice_is_for_managed_memory_only(context: Any) -> None:
    address = ok(driver.cuMemAlloc(4096))
    location = bindings.CUmemLocation()
    location.type = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST
    advice = bindings.CUmem_advise.CU_MEM_ADVISE_SET_READ_MOSTLY
    assert driver.cuMemAdvise(address, 4096, advice, location) == (INVALID,)
    assert driver.cuMemPrefetchAsync(address, 4096, location, 0, 0) == (INVALID,)


def test_pointer_attributes_tell_the_kinds_apart(context: Any) -> None:
    device, pinned = ok(driver.cuMemAlloc(64)), ok(driver.cuMemHostAlloc(64, 0))
    managed = ok(driver.cuMemAllocManaged(64, 1))
    types = [ok(driver.cuPointerGetAttribute(Pointer.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p)) for p in (device, pinned)]
    assert types == [2, 1]
    flags = [ok(driver.cuPointerGetAttribute(Pointer.CU_POINTER_ATTRIBUTE_IS_MANAGED, p)) for p in (device, managed)]
    assert flags == [False, True]
    inside = int(device) + 10
    assert int(ok(driver.cuPointerGetAttribute(Pointer.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside))) == int(device)
    assert ok(driver.cuPointerGetAttribute(Pointer.CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside)) == 64
    assert driver.cuPointerGetAttribute(Pointer.CU_POINTER_ATTRIBUTE_HOST_POINTER, device)[0] == INVALID


def test_attributes_of_an_unknown_pointer_are_empty(context: Any) -> None:
    array = np.zeros(10)
    wanted = [Pointer.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, Pointer.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL]
    assert ok(driver.cuPointerGetAttributes(2, wanted, array.ctypes.data)) == [0, -2]
    assert driver.cuPointerGetAttribute(wanted[0], array.ctypes.data) == (INVALID, None)


def test_10000_live_allocations_are_found_and_freed(context: Any) -> None:
    start = ok(driver.cuMemGetInfo())
    addresses = [ok(driver.cuMemAlloc(64)) for _ in range(10_000)]
    assert driver.cuMemGetAddressRange(addresses[5000])[0] == SUCCESS
    for address in addresses[::2] + addresses[1::2]:
        ok(driver.cuMemFree(address))
    assert ok(driver.cuMemGetInfo()) == start

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.state import contexts, memory
from tests.simulator.support import Status, ok, upload

Pointer = bindings.CUpointer_attribute
Place = bindings.CUmemLocationType
INVALID = Status.CUDA_ERROR_INVALID_VALUE


def in_reach(address: int) -> bool:
    return address in contexts.current().memory.extents()[0].tolist()


def test_memory_is_freed_once(context: Any) -> None:
    pinned, device = ok(driver.cuMemHostAlloc(64, 0)), ok(driver.cuMemAlloc(64))
    for free, address in ((driver.cuMemFree, device), (driver.cuMemFreeHost, pinned)):
        ok(free(address))
        assert free(address) == (INVALID,)


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
    with open("/proc/self/maps", encoding="ascii") as lines:
        for line in lines:
            pages, access = line.split()[:2]
            start, end = (int(part, 16) for part in pages.split("-"))
            assert not start <= address < end or access == "---p"


def test_the_view_has_the_bytes_and_sorted_extents_of_the_allocations_of_now(context: Any) -> None:
    view = contexts.current().memory
    address = upload(np.arange(50, dtype=np.uint8))
    assert (view.bytes[address - view.base :][:50] == np.arange(50)).all()
    starts, ends = view.extents()
    assert (np.diff(starts) > 0).all()
    assert ends[starts.tolist().index(address)] == address + 50
    generation = view.generation
    ok(driver.cuMemFree(address))
    assert view.generation != generation
    assert not in_reach(address)


def test_another_devices_memory_is_in_reach_only_with_peer_access(two_devices: list[Any]) -> None:
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    address = int(ok(driver.cuMemAlloc(100)))
    ok(driver.cuCtxSetCurrent(two_devices[0]))
    assert not in_reach(address)
    assert "no peer access" in contexts.current().memory.describe(address)
    ok(driver.cuCtxEnablePeerAccess(two_devices[1], 0))
    assert in_reach(address)


def test_registered_memory_is_in_reach_until_it_is_unregistered(context: Any) -> None:
    array = np.zeros(1000, np.uint8)
    address = array.ctypes.data
    ok(driver.cuMemHostRegister(array, 1000, 0))
    assert in_reach(address)
    assert int(ok(driver.cuMemHostGetDevicePointer(address, 0))) == address
    overlapping = driver.cuMemHostRegister(address + 500, 1000, 0)
    assert overlapping == (Status.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,)
    ok(driver.cuMemHostUnregister(address))
    assert not in_reach(address)
    assert driver.cuMemHostUnregister(address) == (Status.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,)

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.state import contexts, memory
from tests.simulator.kernels import function, launch
from tests.simulator.support import Player, Status, ok, upload

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


MEBIBYTE = 1 << 20


def allocate(size: int, at: int | None = None) -> int:
    """Allocate; `at` is the place of something freed, which is given again when all addresses have been used."""
    if at is not None:
        memory.space.region._cursor = at
    address = int(ok(driver.cuMemAlloc(size)))
    assert at in (None, address)
    return address


def freed(size: int) -> int:
    address = allocate(size)
    ok(driver.cuMemFree(address))
    return address


def describes(pattern: str, address: int) -> bool:
    text = memory.describe(address)
    assert re.match(pattern, text), text
    return True


def test_addresses_are_described(context: Any) -> None:
    address = allocate(4096)
    name = f"the 4096-byte allocation at {address:#x}, allocated at {__file__}:"
    assert memory.describe(address + 4108).startswith(f"12 bytes after the end of {name}")
    assert memory.describe(address + 1).startswith(f"1 byte into {name}")
    assert memory.describe(address - 4).startswith(f"4 bytes before the start of {name}")
    assert memory.describe(0) == "the null pointer"
    assert memory.describe(8).startswith("host memory")
    ok(driver.cuMemFree(address))
    assert describes(f"8 bytes into {name}.*, which was freed$", address + 8)


def test_the_live_allocation_in_freed_ones_place_is_named_first_and_the_last_of_those_second(play: Player) -> None:
    play("take null keep, free null keep, take null a 8192, free null a, take null b 8100, free null b")
    play("take null c 7996, sync null")
    assert play["a"] == play["b"] == play["c"]
    second = "; earlier, it was 8000 bytes into the 8100-byte .*, which was freed$"
    assert describes(f"4 bytes after the end of the 7996-byte allocation .*{second}", play["a"] + 8000)
    assert describes("7995 bytes into the 7996-byte allocation", play["a"] + 7995)


def test_freed_memory_that_nothing_has_taken_is_named_itself(context: Any) -> None:
    address, neighbour = freed(8192), allocate(8192)
    assert describes("100 bytes into the 8192-byte allocation at .* which was freed$", address + 100)
    assert describes("0 bytes after the end of the 8192-byte", neighbour + 8192)


def test_a_large_freed_allocation_is_named_where_the_live_one_in_it_is_far(context: Any) -> None:
    address = freed(8 * MEBIBYTE)
    allocate(MEBIBYTE, at=address)
    near, far = address + MEBIBYTE + 8, address + 3 * MEBIBYTE
    assert describes("8 bytes after the end of the 1048576-byte .* into the 8388608-byte .* which was freed", near)
    assert describes("3145728 bytes into the 8388608-byte allocation at .* which was freed$", far)


def test_an_address_before_a_live_allocation_is_beside_that_one(context: Any) -> None:
    inside = allocate(MEBIBYTE // 4, at=freed(MEBIBYTE) + MEBIBYTE // 2)
    second = "into the 1048576-byte .* which was freed"
    assert describes(f"16 bytes before the start of the 262144-byte .* {second}", inside - 16)


def test_an_address_far_from_everything_names_nothing(context: Any) -> None:
    assert memory.describe(allocate(64 * MEBIBYTE) + 66 * MEBIBYTE) == "no allocation is near it"


@pytest.mark.parametrize("checks", ["off", "warn"])
@pytest.mark.parametrize("engine", ["auto", "numpy", "native"])
def test_a_missing_bound_is_blamed_on_the_allocation_that_was_indexed(
    play: Player, module: Any, monkeypatch: pytest.MonkeyPatch, engine: str, checks: str
) -> None:
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
    monkeypatch.setenv("CUDART_PY_SIMULATOR_CHECKS", checks)
    pool, keep = ok(driver.cuDeviceGetDefaultMemPool(0)), bindings.cuuint64_t(2**40)
    release = bindings.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    ok(driver.cuMemPoolSetAttribute(pool, release, keep))
    for name, size in (("a", 8192), ("b", 7996)):
        play(f"take null {name} {size}, fill null {name} {size}")
        parameters = ctypes.c_void_p(play[name]), ctypes.c_int(1), ctypes.c_uint(2048)
        launch(function(module, "add"), *parameters, grid=(8, 1, 1), block=(256, 1, 1))
        if name == "a":
            play("free null a, sync null")
    play("sync null -> ILLEGAL_ADDRESS")
    report = driver.take_report() or ""
    assert "out of bounds: 0 bytes after the end of the 7996-byte allocation at" in report
    assert re.search(r"; earlier, it was 7996 bytes into the 8192-byte allocation at .* which was freed", report)

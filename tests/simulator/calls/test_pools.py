"""Stream-ordered memory: when a block's address is given again, statistics, limits."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.kernels import function, launch
from tests.simulator.support import HostCalls, Status, ok

Attribute = bindings.CUmemPool_attribute
INVALID = Status.CUDA_ERROR_INVALID_VALUE
SIZE = 1 << 20


@pytest.fixture
def pool(context: Any) -> Any:
    """The default pool, which keeps what it has."""
    found = ok(driver.cuDeviceGetDefaultMemPool(0))
    keep = bindings.cuuint64_t(2**64 - 1)
    ok(driver.cuMemPoolSetAttribute(found, Attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, keep))
    return found


def get(pool: Any, name: str) -> int:
    return int(ok(driver.cuMemPoolGetAttribute(pool, getattr(Attribute, f"CU_MEMPOOL_ATTR_{name}"))))


def switch_off(pool: Any, *names: str) -> None:
    for name in names:
        ok(driver.cuMemPoolSetAttribute(pool, getattr(Attribute, f"CU_MEMPOOL_ATTR_REUSE_{name}"), 0))


def streams(count: int) -> list[Any]:
    return [ok(driver.cuStreamCreate(1)) for _ in range(count)]


def allocate(stream: Any, size: int = SIZE) -> int:
    return int(ok(driver.cuMemAllocAsync(size, stream)))


def test_the_same_stream_gets_its_block_again_at_once(pool: Any) -> None:
    (stream,) = streams(1)
    address = allocate(stream)
    ok(driver.cuMemFreeAsync(address, stream))
    assert allocate(stream) == address


def test_another_stream_gets_it_when_the_free_has_happened(pool: Any) -> None:
    first, second = streams(2)
    address = allocate(first)
    ok(driver.cuMemFreeAsync(address, first))
    assert allocate(second) != address
    ok(driver.cuStreamSynchronize(first))
    assert allocate(second) == address


def test_another_stream_gets_what_was_freed_in_a_stream_that_is_destroyed(pool: Any) -> None:
    first, second = streams(2)
    address = allocate(first)
    ok(driver.cuMemFreeAsync(address, first))
    ok(driver.cuStreamDestroy(first))
    assert allocate(second) == address


def test_a_free_in_a_destroyed_stream_happens_after_the_work_before_it(pool: Any, calls: HostCalls) -> None:
    first, second = streams(2)
    event = ok(driver.cuEventCreate(0))
    address = allocate(first)
    calls.launch(first, "work")
    ok(driver.cuEventRecord(event, first))
    ok(driver.cuMemFreeAsync(address, first))
    ok(driver.cuStreamDestroy(first))
    assert calls.names == []
    assert allocate(second) != address
    ok(driver.cuEventSynchronize(event))
    assert allocate(second) == address


def test_another_stream_gets_it_when_it_waits_for_the_free(pool: Any) -> None:
    first, second = streams(2)
    address = allocate(first)
    ok(driver.cuMemFreeAsync(address, first))
    event = ok(driver.cuEventCreate(0))
    ok(driver.cuEventRecord(event, first))
    ok(driver.cuStreamWaitEvent(second, event, 0))
    assert allocate(second) == address


def test_the_rules_can_be_switched_off(pool: Any) -> None:
    switch_off(pool, "FOLLOW_EVENT_DEPENDENCIES", "ALLOW_OPPORTUNISTIC")
    first, second = streams(2)
    address = allocate(first)
    ok(driver.cuMemFreeAsync(address, first))
    ok(driver.cuStreamSynchronize(first))
    assert allocate(second) != address


def test_a_block_is_given_up_at_a_synchronise_above_the_threshold(context: Any) -> None:
    pool = ok(driver.cuDeviceGetDefaultMemPool(0))
    (stream,) = streams(1)
    start = ok(driver.cuMemGetInfo())
    ok(driver.cuMemFreeAsync(allocate(stream), stream))
    assert get(pool, "RESERVED_MEM_CURRENT") == SIZE
    ok(driver.cuStreamSynchronize(stream))
    assert get(pool, "RESERVED_MEM_CURRENT") == 0
    assert ok(driver.cuMemGetInfo()) == start


def test_statistics_count_used_and_reserved_bytes(pool: Any) -> None:
    (stream,) = streams(1)
    addresses = [allocate(stream) for _ in range(3)]
    assert get(pool, "USED_MEM_CURRENT") == get(pool, "RESERVED_MEM_CURRENT") == 3 * SIZE
    for address in addresses:
        ok(driver.cuMemFreeAsync(address, stream))
    assert get(pool, "USED_MEM_CURRENT") == 0
    assert get(pool, "USED_MEM_HIGH") == get(pool, "RESERVED_MEM_CURRENT") == 3 * SIZE
    ok(driver.cuMemPoolSetAttribute(pool, Attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH, bindings.cuuint64_t(0)))
    assert get(pool, "USED_MEM_HIGH") == 0
    assert driver.cuMemPoolSetAttribute(pool, Attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH, bindings.cuuint64_t(1)) == (
        INVALID,
    )


def test_trimming_gives_up_only_what_the_device_is_done_with(pool: Any) -> None:
    (stream,) = streams(1)
    ok(driver.cuMemFreeAsync(allocate(stream), stream))
    ok(driver.cuMemPoolTrimTo(pool, 0))
    assert get(pool, "RESERVED_MEM_CURRENT") == SIZE
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuMemPoolTrimTo(pool, 0))
    assert get(pool, "RESERVED_MEM_CURRENT") == 0


def test_idle_blocks_make_room_for_an_allocation(pool: Any) -> None:
    (stream,) = streams(1)
    for size in (10 << 20, 50 << 20):
        ok(driver.cuMemFreeAsync(allocate(stream, size), stream))
    ok(driver.cuMemFreeAsync(allocate(stream, 25 << 20), stream))


def test_more_than_the_device_has_is_out_of_memory(pool: Any) -> None:
    start = ok(driver.cuMemGetInfo())
    assert driver.cuMemAllocAsync(65 << 20, 0) == (Status.CUDA_ERROR_OUT_OF_MEMORY, None)
    assert ok(driver.cuMemGetInfo()) == start


def test_a_pointer_is_freed_once(pool: Any) -> None:
    (stream,) = streams(1)
    address = allocate(stream)
    ok(driver.cuMemFreeAsync(address, stream))
    assert driver.cuMemFreeAsync(address, stream) == (INVALID,)
    assert driver.cuMemsetD8Async(address, 0, 10, stream) == (INVALID,)


def test_either_free_takes_either_allocation(pool: Any) -> None:
    start = ok(driver.cuMemGetInfo())
    ok(driver.cuMemFreeAsync(ok(driver.cuMemAlloc(SIZE)), 0))
    ok(driver.cuMemFree(allocate(0)))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuMemPoolTrimTo(pool, 0))
    assert ok(driver.cuMemGetInfo()) == start


def test_a_use_after_the_free_in_another_stream_is_caught(pool: Any) -> None:
    first, second = streams(2)
    address = allocate(first)
    ok(driver.cuMemsetD8Async(address, 0, SIZE, second))
    ok(driver.cuMemFreeAsync(address, first))
    ok(driver.cuStreamSynchronize(first))
    assert driver.cuStreamSynchronize(second) == (Status.CUDA_ERROR_ILLEGAL_ADDRESS,)
    assert "which was freed" in (driver.take_report() or "")


def test_a_use_before_the_free_in_its_stream_is_fine(pool: Any, calls: HostCalls) -> None:
    (stream,) = streams(1)
    address = allocate(stream)
    ok(driver.cuMemsetD8Async(address, 0, SIZE, stream))
    ok(driver.cuMemFreeAsync(address, stream))
    ok(driver.cuMemsetD8Async(allocate(stream), 1, SIZE, stream))
    ok(driver.cuStreamSynchronize(stream))


def make_pool(device: int = 0, most: int = 0) -> Any:
    properties = bindings.CUmemPoolProps()
    properties.allocType = bindings.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = device
    properties.maxSize = most
    return ok(driver.cuMemPoolCreate(properties))


def test_a_pool_of_ones_own_is_used_and_ended(context: Any) -> None:
    start = ok(driver.cuMemGetInfo())
    mine = make_pool()
    address = ok(driver.cuMemAllocFromPoolAsync(SIZE, mine, 0))
    handle = ok(driver.cuPointerGetAttribute(bindings.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address))
    assert int(handle) == int(mine)
    ok(driver.cuMemPoolDestroy(mine))
    assert driver.cuMemAllocFromPoolAsync(SIZE, mine, 0) == (INVALID, None)
    ok(driver.cuMemFreeAsync(address, 0))
    ok(driver.cuCtxSynchronize())
    assert ok(driver.cuMemGetInfo()) == start


def test_a_pool_has_a_greatest_size(context: Any) -> None:
    mine = make_pool(most=2 * SIZE)
    ok(driver.cuMemAllocFromPoolAsync(2 * SIZE, mine, 0))
    assert driver.cuMemAllocFromPoolAsync(1, mine, 0) == (Status.CUDA_ERROR_OUT_OF_MEMORY, None)


def test_the_current_pool_is_chosen_and_falls_back(context: Any) -> None:
    default, mine = ok(driver.cuDeviceGetDefaultMemPool(0)), make_pool()
    ok(driver.cuDeviceSetMemPool(0, mine))
    assert int(ok(driver.cuDeviceGetMemPool(0))) == int(mine)
    allocate(0)
    assert get(mine, "USED_MEM_CURRENT") == SIZE
    ok(driver.cuMemPoolDestroy(mine))
    assert int(ok(driver.cuDeviceGetMemPool(0))) == int(default)


def test_a_device_takes_only_its_own_pool(context: Any) -> None:
    assert driver.cuDeviceSetMemPool(0, make_pool(device=1)) == (INVALID,)


def test_access_to_a_pool_is_given_to_other_devices(two_devices: list[Any]) -> None:
    pool = ok(driver.cuDeviceGetDefaultMemPool(0))
    description = bindings.CUmemAccessDesc()
    description.location.type = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    description.location.id = 1
    flags = bindings.CUmemAccess_flags
    assert ok(driver.cuMemPoolGetAccess(pool, description.location)) == flags.CU_MEM_ACCESS_FLAGS_PROT_NONE
    description.flags = flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    ok(driver.cuMemPoolSetAccess(pool, [description], 1))
    assert ok(driver.cuMemPoolGetAccess(pool, description.location)) == flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE


def test_a_smaller_allocation_in_a_used_block_leaves_the_work_before_it_alone(pool: Any) -> None:
    (stream,) = streams(1)
    address = allocate(stream)
    ok(driver.cuMemsetD8Async(address, 1, SIZE, stream))
    ok(driver.cuMemFreeAsync(address, stream))
    assert allocate(stream, SIZE * 3 // 4) == address
    ok(driver.cuMemsetD8Async(address, 2, SIZE * 3 // 4, stream))
    ok(driver.cuStreamSynchronize(stream))


def test_work_before_the_allocation_names_it_its_stream_and_the_remedy(pool: Any) -> None:
    (second,) = streams(1)
    freed = allocate(0, 512)
    ok(driver.cuMemFreeAsync(freed, 0))
    event = ok(driver.cuEventCreate(0))
    ok(driver.cuEventRecord(event, 0))
    address = allocate(0, 400)
    assert address == freed
    ok(driver.cuStreamWaitEvent(second, event, 0))
    ok(driver.cuMemsetD8Async(address, 0, 400, second))
    assert driver.cuStreamSynchronize(second) == (Status.CUDA_ERROR_ILLEGAL_ADDRESS,)
    report = driver.take_report() or ""
    assert "0 bytes into the 400-byte allocation" in report
    assert "in the legacy default stream, which has not reached the allocation yet" in report
    assert "allocate in the stream of the work (stream=s)" in report


def test_work_that_is_older_than_an_allocation_means_what_was_there_before(pool: Any, module: Any) -> None:
    address = allocate(0, 12)
    launch(function(module, "bounded"), ctypes.c_void_p(address), block=(128, 1, 1))
    ok(driver.cuMemFreeAsync(address, 0))
    assert allocate(0, 400) == address
    assert driver.cuStreamSynchronize(0) == (Status.CUDA_ERROR_ILLEGAL_ADDRESS,)
    assert "0 bytes after the end of the 12-byte allocation" in (driver.take_report() or "")


def test_a_free_in_another_stream_is_named_with_the_remedy(pool: Any) -> None:
    (stream,) = streams(1)
    address = allocate(0)
    ok(driver.cuMemsetD8Async(address, 0, SIZE, stream))
    ok(driver.cuMemFreeAsync(address, 0))
    ok(driver.cuStreamSynchronize(0))
    assert driver.cuStreamSynchronize(stream) == (Status.CUDA_ERROR_ILLEGAL_ADDRESS,)
    report = driver.take_report() or ""
    assert "which was freed in the legacy default stream, and nothing puts that after this work" in report
    assert "(stream=s)" in report

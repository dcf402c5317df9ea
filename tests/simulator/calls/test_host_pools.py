"""Pools of pinned and of managed memory, with the driver's rules."""

import ctypes
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.kernels import function, launch, loaded
from tests.simulator.support import Status, ok, struct

INVALID = Status.CUDA_ERROR_INVALID_VALUE
Place, Kind = bindings.CUmemLocationType, bindings.CUmemAllocationType
PINNED, MANAGED = Kind.CU_MEM_ALLOCATION_TYPE_PINNED, Kind.CU_MEM_ALLOCATION_TYPE_MANAGED
DEVICE, HOST, NUMA = (getattr(Place, f"CU_MEM_LOCATION_TYPE_{name}") for name in ("DEVICE", "HOST", "HOST_NUMA"))
READ_WRITE = bindings.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE


def create(kind: Any, place: Any, most: int = 0) -> Any:
    return driver.cuMemPoolCreate(struct("CUmemPoolProps", allocType=kind, location__type=place, maxSize=most))


def allow(pool: Any, device: int = 0) -> None:
    description = struct("CUmemAccessDesc", location__type=DEVICE, location__id=device, flags=READ_WRITE)
    ok(driver.cuMemPoolSetAccess(pool, [description], 1))


def allocate(pool: Any, stream: Any = 0) -> int:
    address = int(ok(driver.cuMemAllocFromPoolAsync(64, pool, stream)))
    ok(driver.cuStreamSynchronize(stream))
    return address


def values(address: int) -> Any:
    return np.ctypeslib.as_array((ctypes.c_int32 * 16).from_address(address))


@pytest.mark.parametrize("place", [HOST, NUMA])
def test_the_host_and_kernels_share_pinned_memory(context: Any, place: Any) -> None:
    pool = ok(create(PINNED, place))
    allow(pool)
    address = allocate(pool)
    values(address)[:] = 5
    assert not launch(function(loaded(), "bounded"), ctypes.c_void_p(address))
    ok(driver.cuCtxSynchronize())
    assert values(address).tolist() == [1, *[5] * 15]


def test_a_device_reaches_a_pinned_pool_only_with_access(context: Any) -> None:
    pool = ok(create(PINNED, HOST))
    for place, access in ((HOST, 3), (DEVICE, 0)):
        assert ok(driver.cuMemPoolGetAccess(pool, struct("CUmemLocation", type=place))) == access
    assert not launch(function(loaded(), "bounded"), ctypes.c_void_p(allocate(pool)))
    assert driver.cuCtxSynchronize() == (Status.CUDA_ERROR_ILLEGAL_ADDRESS,)
    assert "cuMemPoolSetAccess has not been called" in (driver.take_report() or "")


def test_an_address_that_kernels_cannot_access_has_no_device_pointer(context: Any) -> None:
    address = allocate(ok(create(PINNED, HOST)))
    attribute = bindings.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_POINTER
    assert driver.cuPointerGetAttribute(attribute, address) == (INVALID, None)
    allow(pool := ok(create(PINNED, HOST)))
    address = allocate(pool)
    assert int(ok(driver.cuPointerGetAttribute(attribute, address))) == address


def test_all_devices_reach_managed_memory_of_a_pool(two_devices: list[Any]) -> None:
    address = allocate(ok(create(MANAGED, DEVICE)))
    values(address)[:] = 5
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    assert not launch(function(loaded(), "bounded"), ctypes.c_void_p(address))
    ok(driver.cuCtxSynchronize())
    assert values(address).tolist() == [1, *[5] * 15]
    assert ok(driver.cuPointerGetAttribute(bindings.CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED, address))


@pytest.mark.parametrize(("kind", "place"), [(PINNED, HOST), (MANAGED, DEVICE)])
def test_memory_of_the_host_takes_none_of_the_device_and_is_reused(context: Any, kind: Any, place: Any) -> None:
    (free, _), pool = ok(driver.cuMemGetInfo()), ok(create(kind, place))
    ok(driver.cuMemPoolSetAttribute(pool, bindings.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 1 << 20))
    address = allocate(pool)
    assert ok(driver.cuMemGetInfo())[0] == free
    ok(driver.cuMemFreeAsync(address, 0))
    assert allocate(pool) == address
    ok(driver.cuMemFree(address))
    ok(driver.cuMemPoolDestroy(pool))


def test_pinned_memory_of_a_pool_is_not_that_of_cuMemHostAlloc(context: Any) -> None:
    address = allocate(ok(create(PINNED, HOST)))
    assert driver.cuMemHostGetFlags(address) == driver.cuMemHostGetDevicePointer(address, 0) == (INVALID, None)
    assert driver.cuMemFreeHost(address) == (INVALID,)


def test_pools_that_a_gpu_refuses_are_refused(context: Any) -> None:
    assert create(MANAGED, DEVICE, 1 << 20) == (INVALID, None)
    assert create(PINNED, Place.CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) == (INVALID, None)
    assert driver.cuDeviceSetMemPool(0, ok(create(PINNED, HOST))) == (INVALID,)
    managed = ok(create(MANAGED, DEVICE))
    ok(driver.cuDeviceSetMemPool(0, managed))
    ok(driver.cuMemPoolDestroy(managed))


def place_of(kind: Any, number: int = 0) -> Any:
    return struct("CUmemLocation", type=kind, id=number)


@pytest.mark.parametrize(("kind", "place"), [(PINNED, HOST), (PINNED, NUMA), (MANAGED, HOST), (MANAGED, DEVICE)])
def test_a_location_has_a_default_pool_that_stays_and_a_current_one(context: Any, kind: Any, place: Any) -> None:
    location = place_of(place)
    default = ok(driver.cuMemGetDefaultMemPool(location, kind))
    assert int(ok(driver.cuMemGetMemPool(location, kind))) == int(default)
    assert driver.cuMemPoolDestroy(default) == (INVALID,)
    pool = ok(create(kind, place))
    ok(driver.cuMemSetMemPool(location, kind, pool))
    assert int(ok(driver.cuMemGetMemPool(location, kind))) == int(pool)
    assert int(ok(driver.cuMemGetDefaultMemPool(location, kind))) == int(default)
    ok(driver.cuMemPoolDestroy(pool))
    assert int(ok(driver.cuMemGetMemPool(location, kind))) == int(default)


@pytest.mark.parametrize(("kind", "place"), [(PINNED, DEVICE), (PINNED, NUMA), (MANAGED, HOST), (MANAGED, DEVICE)])
def test_a_thread_without_a_context_finds_the_same_pools(context: Any, kind: Any, place: Any) -> None:
    location = place_of(place)
    default = int(ok(driver.cuMemGetDefaultMemPool(location, kind)))
    own = ok(driver.cuCtxPopCurrent())
    try:
        assert int(ok(driver.cuMemGetDefaultMemPool(location, kind))) == default
        assert int(ok(driver.cuMemGetMemPool(location, kind))) == default
    finally:
        ok(driver.cuCtxPushCurrent(own))


def test_pools_of_managed_memory_need_no_location_and_differ_by_location(context: Any) -> None:
    places = [place_of(Place.CU_MEM_LOCATION_TYPE_INVALID), place_of(HOST), place_of(DEVICE), place_of(DEVICE, 1)]
    handles = [int(ok(driver.cuMemGetMemPool(place, MANAGED))) for place in places]
    assert len(set(handles)) == len(handles)
    values(allocate(handles[0]))[:] = 5


def test_the_pools_of_device_memory_are_those_of_the_device(context: Any) -> None:
    location, default = place_of(DEVICE), int(ok(driver.cuDeviceGetDefaultMemPool(0)))
    assert int(ok(driver.cuMemGetDefaultMemPool(location, PINNED))) == default
    pool = ok(create(PINNED, DEVICE))
    ok(driver.cuMemSetMemPool(location, PINNED, pool))
    assert int(ok(driver.cuDeviceGetMemPool(0))) == int(ok(driver.cuMemGetMemPool(location, PINNED))) == int(pool)


def test_a_pool_is_current_only_for_its_own_kind_and_location(context: Any) -> None:
    pool = ok(create(PINNED, HOST))
    for place, kind in ((NUMA, PINNED), (HOST, MANAGED), (DEVICE, PINNED)):
        assert driver.cuMemSetMemPool(place_of(place), kind, pool) == (INVALID,)
    for place, kind in ((place_of(Place.CU_MEM_LOCATION_TYPE_INVALID), PINNED), (place_of(HOST), 0), (None, PINNED)):
        assert driver.cuMemGetMemPool(place, kind) == (INVALID, None)

"""Physical memory is mapped into reserved addresses, with the driver's rules."""

import ctypes
import os
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.kernels import function, launch, loaded
from tests.simulator.support import Status, download, ok, struct

INVALID, UNSUPPORTED = Status.CUDA_ERROR_INVALID_VALUE, Status.CUDA_ERROR_NOT_SUPPORTED
PIECE = 2 << 20
DEVICE = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
NONE, READ, READ_WRITE = (
    getattr(bindings.CUmemAccess_flags, f"CU_MEM_ACCESS_FLAGS_PROT_{name}") for name in ("NONE", "READ", "READWRITE")
)
FILE = bindings.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR


def properties(device: int = 0, **fields: Any) -> Any:
    kind = bindings.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    return struct("CUmemAllocationProp", **{"type": kind, "location__type": DEVICE, "location__id": device} | fields)


def create(pieces: int = 1, device: int = 0, **fields: Any) -> Any:
    return ok(driver.cuMemCreate(pieces * PIECE, properties(device, **fields), 0))


def reserve(pieces: int) -> int:
    return int(ok(driver.cuMemAddressReserve(pieces * PIECE, 0, 0, 0)))


def allow(address: int, pieces: int, flags: Any = READ_WRITE, device: int = 0) -> Any:
    description = struct("CUmemAccessDesc", location__type=DEVICE, location__id=device, flags=flags)
    return driver.cuMemSetAccess(address, pieces * PIECE, [description], 1)


def mapped(*handles: Any, room: int = 0) -> int:
    """Map physical memory of one piece each, one after another, for device 0; return the address."""
    address = reserve(max(room, len(handles)))
    for index, handle in enumerate(handles):
        ok(driver.cuMemMap(address + index * PIECE, PIECE, 0, handle, 0))
    ok(allow(address, len(handles)))
    return address


def access_of(address: int) -> int:
    location = struct("CUmemLocation", type=DEVICE, id=0)
    return int(ok(driver.cuMemGetAccess(location, address)))


def attribute(name: str, address: int) -> Any:
    return driver.cuPointerGetAttribute(getattr(bindings.CUpointer_attribute, f"CU_POINTER_ATTRIBUTE_{name}"), address)


def test_the_granularity_is_2_mib(context: Any) -> None:
    for option in bindings.CUmemAllocationGranularity_flags:
        assert ok(driver.cuMemGetAllocationGranularity(properties(), option)) == PIECE


def test_two_addresses_of_the_same_memory_have_the_same_bytes(context: Any, rng: np.random.Generator) -> None:
    values, handle = rng.integers(0, 256, 77, np.uint8), create()
    first, second = mapped(handle), mapped(create(), handle)
    ok(driver.cuMemcpyHtoD(first + 5, values, 77))
    assert np.array_equal(download(second + PIECE + 5, 77), values)


def test_memory_lives_while_it_is_mapped_or_referred_to(context: Any, rng: np.random.Generator) -> None:
    values, (free, _) = rng.integers(0, 256, 77, np.uint8), ok(driver.cuMemGetInfo())
    handle = create()
    address = mapped(handle, room=2)
    ok(driver.cuMemcpyHtoD(address, values, 77))
    ok(driver.cuMemRelease(handle))
    assert driver.cuMemRelease(handle) == (INVALID,)
    assert ok(driver.cuMemGetInfo())[0] == free - PIECE
    again = ok(driver.cuMemRetainAllocationHandle(address + 99))
    assert int(again) == int(handle)
    ok(driver.cuMemUnmap(address, PIECE))
    ok(driver.cuMemMap(address + PIECE, PIECE, 0, again, 0))
    ok(allow(address + PIECE, 1))
    assert np.array_equal(download(address + PIECE, 77), values)
    ok(driver.cuMemUnmap(address, 2 * PIECE))
    ok(driver.cuMemRelease(again))
    assert ok(driver.cuMemGetInfo())[0] == free
    assert driver.cuMemGetAllocationPropertiesFromHandle(again) == (INVALID, None)


def test_a_kernels_access_without_cuMemSetAccess_is_a_fault_that_says_so(context: Any) -> None:
    address = reserve(2)
    ok(driver.cuMemMap(address, PIECE, 0, create(), 0))
    assert not launch(function(loaded(), "bounded"), ctypes.c_void_p(address + 16))
    assert driver.cuCtxSynchronize() == (Status.CUDA_ERROR_ILLEGAL_ADDRESS,)
    report = driver.take_report() or ""
    assert f"16 bytes into the {2 * PIECE}-byte range of addresses at {address:#x}" in report
    assert "call cuMemSetAccess" in report


def test_a_call_on_memory_that_is_not_accessible_is_refused_and_says_why(context: Any) -> None:
    address = reserve(2)
    ok(driver.cuMemMap(address, PIECE, 0, create(), 0))
    for offset, reason in ((0, "mapped that no device may access"), (PIECE, "nothing is mapped")):
        assert driver.cuMemsetD8(address + offset, 1, 9) == (INVALID,)
        assert reason in (driver.take_report() or "")


def test_another_device_needs_access_of_its_own(two_devices: list[Any]) -> None:
    address = mapped(create())
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    assert not launch(function(loaded(), "bounded"), ctypes.c_void_p(address))
    assert driver.cuCtxSynchronize() == (Status.CUDA_ERROR_ILLEGAL_ADDRESS,)
    assert "device 1 may not access" in (driver.take_report() or "")
    ok(driver.cuDevicePrimaryCtxReset(1))
    ok(driver.cuDevicePrimaryCtxRetain(1))
    ok(allow(address, 1, device=1))
    assert not launch(function(loaded(), "bounded"), ctypes.c_void_p(address))
    assert download(address, 1, np.int32) == [1]


def test_access_is_set_for_whole_mappings_and_taken_back(context: Any) -> None:
    address = mapped(create(), create(), room=3)
    assert [access_of(address + offset) for offset in (5, PIECE)] == [3, 3]
    ok(allow(address, 1, NONE))
    assert [access_of(address + offset) for offset in (5, PIECE)] == [0, 3]
    assert driver.cuMemsetD8(address, 1, 9) == (INVALID,)
    ok(driver.cuMemsetD8(address + PIECE, 1, 9))
    assert allow(address, 3) == allow(address + 2 * PIECE, 1) == (INVALID,)
    assert allow(address, 1, READ) == (UNSUPPORTED,)


def test_a_mapping_has_the_attributes_of_its_reservation_and_memory(context: Any) -> None:
    address = mapped(create(), create(), room=4)
    inside = address + PIECE + 8
    assert int(ok(attribute("RANGE_START_ADDR", inside))) == address
    assert ok(attribute("RANGE_SIZE", inside)) == 4 * PIECE
    assert int(ok(attribute("MAPPING_BASE_ADDR", inside))) == address + PIECE
    assert ok(attribute("MAPPING_SIZE", inside)) == PIECE
    assert int(ok(attribute("CONTEXT", inside))) == 0
    assert attribute("MEMORY_TYPE", address + 2 * PIECE) == (INVALID, None)
    start, size = ok(driver.cuMemGetAddressRange(inside))
    assert (int(start), size) == (address + PIECE, PIECE)


def test_what_is_mapped_is_not_freed_as_an_allocation(context: Any) -> None:
    address = mapped(create(), room=2)
    for refused in (
        driver.cuMemFree(address),
        driver.cuMemFreeAsync(address, 0),
        driver.cuMemAddressFree(address, 2 * PIECE),
        driver.cuMemUnmap(address, 4096),
    ):
        assert refused == (INVALID,)
    ok(driver.cuMemUnmap(address, PIECE))
    assert driver.cuMemAddressFree(address, PIECE) == (INVALID,)
    ok(driver.cuMemAddressFree(address, 2 * PIECE))
    assert driver.cuMemUnmap(address, PIECE) == driver.cuMemAddressFree(address, 2 * PIECE) == (INVALID,)


def test_mapped_memory_outlives_a_context(context: Any) -> None:
    own = ok(driver.cuCtxCreate(None, 0, 0))
    address = mapped(create())
    ok(driver.cuMemsetD8(address, 7, 9))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuCtxDestroy(own))
    assert download(address, 9).tolist() == [7] * 9


@pytest.mark.parametrize(("size", "offset"), [(2 * PIECE, PIECE), (PIECE, 0), (3 * PIECE, 0)])
def test_a_mapping_covers_all_of_its_memory(context: Any, size: int, offset: int) -> None:
    assert driver.cuMemMap(reserve(4), size, offset, create(2), 0) == (UNSUPPORTED,)


def test_mappings_stay_apart_and_inside_of_reservations(context: Any) -> None:
    handle, address = create(), reserve(2)
    ok(driver.cuMemMap(address, PIECE, 0, handle, 0))
    for where in (address, address + 4096, address + 2 * PIECE, 0):
        assert driver.cuMemMap(where, PIECE, 0, handle, 0) == (INVALID,)


@pytest.mark.parametrize("size", [0, -PIECE, 4096, PIECE + 4096])
def test_sizes_are_multiples_of_the_granularity(context: Any, size: int) -> None:
    assert driver.cuMemAddressReserve(size, 0, 0, 0) == driver.cuMemCreate(size, properties(), 0) == (INVALID, None)


def test_an_alignment_is_a_power_of_two_and_is_kept(context: Any) -> None:
    assert driver.cuMemAddressReserve(PIECE, 3, 0, 0) == (INVALID, None)
    assert int(ok(driver.cuMemAddressReserve(PIECE, 1 << 30, 0, 0))) % (1 << 30) == 0


def test_memory_beyond_the_devices_is_refused(context: Any) -> None:
    assert driver.cuMemCreate(1 << 40, properties(), 0) == (Status.CUDA_ERROR_OUT_OF_MEMORY, None)
    assert driver.cuMemCreate(PIECE, properties(9), 0) == (Status.CUDA_ERROR_INVALID_DEVICE, None)
    assert driver.cuMemCreate(PIECE, None, 0) == (INVALID, None)


def test_the_properties_of_a_handle_are_those_with_which_it_was_created(two_devices: list[Any]) -> None:
    found = ok(driver.cuMemGetAllocationPropertiesFromHandle(create(1, 1, requestedHandleTypes=FILE)))
    assert (found.location.type, found.location.id, found.requestedHandleTypes) == (DEVICE, 1, FILE)


def test_an_exported_file_descriptor_is_the_same_memory(context: Any, rng: np.random.Generator) -> None:
    handle, values = create(requestedHandleTypes=FILE), rng.integers(0, 256, 77, np.uint8)
    descriptor = ok(driver.cuMemExportToShareableHandle(handle, FILE, 0))
    imported = ok(driver.cuMemImportFromShareableHandle(descriptor, FILE))
    os.close(descriptor)
    first, second = mapped(handle), mapped(imported)
    ok(driver.cuMemcpyHtoD(first, values, 77))
    assert np.array_equal(download(second, 77), values)


def test_only_memory_that_was_created_for_it_is_exported(context: Any) -> None:
    assert driver.cuMemExportToShareableHandle(create(), FILE, 0) == (INVALID, None)
    with open(os.devnull) as file:
        assert driver.cuMemImportFromShareableHandle(file.fileno(), FILE) == (INVALID, None)
    assert driver.cuMemImportFromShareableHandle(-1, FILE) == (INVALID, None)


def test_no_capture_forbids_growing(context: Any, stream: Any) -> None:
    address = reserve(2)
    ok(driver.cuStreamBeginCapture(stream, bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    ok(driver.cuMemMap(address, PIECE, 0, create(), 0))
    ok(allow(address, 1))
    ok(driver.cuGraphDestroy(ok(driver.cuStreamEndCapture(stream))))

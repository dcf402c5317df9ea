"""Another process imports allocations of a pool of this process, on the simulator."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.support import Status, download, ok

DESCRIPTOR = bindings.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
BEGIN = """
import ctypes, sys
import numpy as np
from cuda.bindings import driver as bindings
from cudart_py.simulator import driver

def ok(result):
    assert not result[0], result
    return result[1] if len(result) == 2 else None

ok(driver.cuInit(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
kind = bindings.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
pool = ok(driver.cuMemPoolImportFromShareableHandle(int(sys.argv[1]), kind, 0))

def shared(text):
    result = bindings.CUmemPoolPtrExportData()
    ctypes.memmove(result.getPtr(), bytes.fromhex(text), 64)
    return result
"""
ADD = """
address = ok(driver.cuMemPoolImportPointer(pool, shared(sys.argv[2])))
assert int(ok(driver.cuMemPoolImportPointer(pool, shared(sys.argv[2])))) == int(address)
values = np.zeros(99, np.uint8)
ok(driver.cuMemcpyDtoH(values, address, 99))
values += 1
ok(driver.cuMemcpyHtoDAsync(address, values, 99, 0))
ok(driver.cuMemFreeAsync(address, 0))
print(driver.cuMemsetD8(address, 1, 1)[0].name)
again = ok(driver.cuMemPoolImportPointer(pool, shared(sys.argv[2])))
ok(driver.cuMemsetD8(int(again) + 98, 5, 1))
ok(driver.cuMemPoolDestroy(pool))
ok(driver.cuMemFree(again))
print(driver.cuMemFree(again)[0].name)
"""
REFUSE = """
print(driver.cuMemPoolImportPointer(pool, shared(sys.argv[2]))[0].name)
print(driver.cuMemAllocFromPoolAsync(64, pool, 0)[0].name, driver.cuDeviceSetMemPool(0, pool)[0].name)
print(driver.cuMemPoolExportToShareableHandle(pool, kind, 0)[0].name)
"""


def made(handles: Any = DESCRIPTOR) -> Any:
    """Return a new pool of device 0 whose handles other processes can import."""
    properties = bindings.CUmemPoolProps()
    properties.allocType = bindings.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.handleTypes = handles
    return ok(driver.cuMemPoolCreate(properties))


def exported(address: Any) -> bytes:
    return ctypes.string_at(ok(driver.cuMemPoolExportPointer(address)).getPtr(), 64)


@pytest.fixture
def descriptor_of() -> Any:
    """Return a function that exports a pool; the descriptors are closed after the test."""
    descriptors = []

    def export(pool: Any) -> int:
        descriptors.append(ok(driver.cuMemPoolExportToShareableHandle(pool, DESCRIPTOR, 0)))
        return int(descriptors[-1])

    yield export
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.fixture
def other_process() -> Callable[[str, int, bytes], list[str]]:
    """Return a function that runs a program with a pool and an allocation in another process, and returns its lines."""

    def run(program: str, descriptor: int, data: bytes) -> list[str]:
        command = [sys.executable, "-c", BEGIN + program, str(descriptor), data.hex()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, pass_fds=[descriptor])
        return done.stdout.split()

    return run


@pytest.mark.parametrize("size", [99, 3 << 20])
def test_another_process_changes_memory_of_a_pool_in_place(
    context: Any, stream: Any, descriptor_of: Any, other_process: Any, rng: np.random.Generator, size: int
) -> None:
    pool, values = made(), rng.integers(0, 255, 99, np.uint8)
    neighbour = ok(driver.cuMemAllocFromPoolAsync(64, pool, stream))
    address = ok(driver.cuMemAllocFromPoolAsync(size, pool, stream))
    ok(driver.cuMemsetD8Async(neighbour, 9, 64, stream))
    ok(driver.cuMemcpyHtoDAsync(address, values, 99, stream))
    data = exported(address)
    ok(driver.cuStreamSynchronize(stream))
    assert other_process(ADD, descriptor_of(pool), data) == ["CUDA_ERROR_INVALID_VALUE"] * 2
    assert download(address, 99).tolist() == [*(values[:-1] + 1), 5]
    assert download(neighbour, 64).tolist() == [9] * 64
    for each in (neighbour, address):
        ok(driver.cuMemFreeAsync(each, stream))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuMemPoolDestroy(pool))


def test_what_an_imported_pool_cannot_do_is_refused(context: Any, descriptor_of: Any, other_process: Any) -> None:
    pool, other = made(), made()
    address = ok(driver.cuMemAllocFromPoolAsync(64, other, 0))
    answers = other_process(REFUSE, descriptor_of(pool), exported(address))
    assert answers == ["CUDA_ERROR_INVALID_VALUE"] * 4


def test_only_memory_of_pools_made_for_it_is_exported(context: Any, tmp_path: Any) -> None:
    plain, pool = made(bindings.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE), made()
    refused = Status.CUDA_ERROR_INVALID_VALUE, None
    assert driver.cuMemPoolExportToShareableHandle(plain, DESCRIPTOR, 0) == refused
    assert driver.cuMemPoolExportToShareableHandle(pool, DESCRIPTOR, 1) == refused
    for address in (ok(driver.cuMemAllocFromPoolAsync(64, plain, 0)), ok(driver.cuMemAlloc(64)), 0):
        assert driver.cuMemPoolExportPointer(address) == refused
    with (tmp_path / "file").open("w+b") as file:
        assert driver.cuMemPoolImportFromShareableHandle(file.fileno(), DESCRIPTOR, 0) == refused
    assert driver.cuMemPoolImportFromShareableHandle(999, DESCRIPTOR, 0) == refused
    # A pool does not import its own allocations.
    data = ok(driver.cuMemPoolExportPointer(ok(driver.cuMemAllocFromPoolAsync(64, pool, 0))))
    assert driver.cuMemPoolImportPointer(pool, data) == refused

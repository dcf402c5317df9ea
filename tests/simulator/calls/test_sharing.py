"""Another process opens memory and allocations of pools of this one with exported handles, on the simulator."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.support import HostCalls, Status, download, ok, struct, upload

DESCRIPTOR = bindings.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
INVALID = Status.CUDA_ERROR_INVALID_VALUE
REFUSED = (INVALID, None)
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
handle, data = bindings.CUipcMemHandle(), bindings.CUmemPoolPtrExportData()
for each in handle, data:
    ctypes.memmove(each.getPtr(), bytes.fromhex(sys.argv[1]), 64)
"""
ADD = """
address = ok(driver.cuIpcOpenMemHandle(handle, 1))
assert int(ok(driver.cuIpcOpenMemHandle(handle, 1))) == int(address)
assert driver.cuMemFree(address)[0] == bindings.CUresult.CUDA_ERROR_INVALID_VALUE
values = np.zeros(99, np.uint8)
ok(driver.cuMemcpyDtoH(values, address, 99))
values += 1
ok(driver.cuMemcpyHtoD(address, values, 99))
ok(driver.cuIpcCloseMemHandle(address))
ok(driver.cuMemsetD8(int(address) + 98, 5, 1))
ok(driver.cuIpcCloseMemHandle(address))
print(driver.cuMemsetD8(address, 1, 1)[0].name, driver.cuIpcCloseMemHandle(address)[0].name)
"""
TRY = "print(driver.cuIpcOpenMemHandle(handle, 1)[0].name)"
IMPORT = """
kind = bindings.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
pool = ok(driver.cuMemPoolImportFromShareableHandle(int(sys.argv[2]), kind, 0))
"""
ADD_IN_POOL = f"""{IMPORT}
address = ok(driver.cuMemPoolImportPointer(pool, data))
assert int(ok(driver.cuMemPoolImportPointer(pool, data))) == int(address)
values = np.zeros(99, np.uint8)
ok(driver.cuMemcpyDtoH(values, address, 99))
values += 1
ok(driver.cuMemcpyHtoDAsync(address, values, 99, 0))
ok(driver.cuMemFreeAsync(address, 0))
print(driver.cuMemsetD8(address, 1, 1)[0].name)
again = ok(driver.cuMemPoolImportPointer(pool, data))
ok(driver.cuMemsetD8(int(again) + 98, 5, 1))
ok(driver.cuMemPoolDestroy(pool))
ok(driver.cuMemFree(again))
print(driver.cuMemFree(again)[0].name)
"""
REFUSE = f"""{IMPORT}
print(driver.cuMemPoolImportPointer(pool, data)[0].name)
print(driver.cuMemAllocFromPoolAsync(64, pool, 0)[0].name, driver.cuDeviceSetMemPool(0, pool)[0].name)
print(driver.cuMemPoolExportToShareableHandle(pool, kind, 0)[0].name)
"""
Run = Callable[..., list[str]]


def made(handles: Any = DESCRIPTOR) -> Any:
    """Return a new pool of device 0 whose handles other processes can import."""
    device = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    pinned = bindings.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    return ok(
        driver.cuMemPoolCreate(struct("CUmemPoolProps", allocType=pinned, location__type=device, handleTypes=handles))
    )


def data_of(handle: Any) -> bytes:
    return ctypes.string_at(handle.getPtr(), 64)


@pytest.fixture
def descriptor_of() -> Iterator[Callable[[Any], int]]:
    """Return a function that exports a pool; the descriptors are closed after the test."""
    descriptors: list[int] = []

    def export(pool: Any) -> int:
        descriptors.append(ok(driver.cuMemPoolExportToShareableHandle(pool, DESCRIPTOR, 0)))
        return descriptors[-1]

    yield export
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.fixture
def other_process() -> Run:
    """Return a function that runs a program in another process with an allocation's handle, and perhaps a pool's."""

    def run(program: str, data: bytes, *descriptors: int) -> list[str]:
        command = [sys.executable, "-c", BEGIN + program, data.hex(), *map(str, descriptors)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, pass_fds=descriptors)
        return done.stdout.split()

    return run


@pytest.mark.parametrize("size", [99, 3 << 20])
@pytest.mark.parametrize("pooled", [False, True])
def test_another_process_changes_shared_memory_in_place(
    stream: Any, descriptor_of: Any, other_process: Run, rng: np.random.Generator, pooled: bool, size: int
) -> None:
    pool, values = made(), rng.integers(0, 255, 99, np.uint8)

    def allocate(count: int) -> int:
        return int(ok(driver.cuMemAllocFromPoolAsync(count, pool, stream) if pooled else driver.cuMemAlloc(count)))

    neighbour, address = allocate(64), allocate(size)
    ok(driver.cuMemsetD8Async(neighbour, 9, 64, stream))
    ok(driver.cuMemcpyHtoDAsync(address, values, 99, stream))
    ok(driver.cuStreamSynchronize(stream))
    if pooled:
        answers = other_process(ADD_IN_POOL, data_of(ok(driver.cuMemPoolExportPointer(address))), descriptor_of(pool))
    else:
        data = data_of(ok(driver.cuIpcGetMemHandle(address + 5)))
        assert data == data_of(ok(driver.cuIpcGetMemHandle(address)))
        answers = other_process(ADD, data)
    assert answers == [INVALID.name] * 2
    assert download(address, 99).tolist() == [*(values[:-1] + 1), 5]
    assert download(neighbour, 64).tolist() == [9] * 64
    for each in (neighbour, address):
        ok(driver.cuMemFreeAsync(each, stream))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuMemPoolDestroy(pool))


def test_memory_that_has_been_freed_is_not_opened(context: Any, other_process: Run) -> None:
    address = int(ok(driver.cuMemAlloc(3 << 20)))
    data = data_of(ok(driver.cuIpcGetMemHandle(address)))
    ok(driver.cuMemFree(address))
    assert other_process(TRY, data) == [INVALID.name]


# No process has a number with this bit, while one with another low bit may be another worker.
@pytest.mark.parametrize("damaged", [(0, 1), (11, 64), (12, 1)], ids=["magic", "process", "start"])
def test_damaged_handles_are_refused(context: Any, damaged: tuple[int, int]) -> None:
    data = bytearray(data_of(ok(driver.cuIpcGetMemHandle(upload(np.zeros(9))))))
    position, bit = damaged
    data[position] ^= bit
    handle = bindings.CUipcMemHandle()
    ctypes.memmove(handle.getPtr(), bytes(data), 64)
    assert driver.cuIpcOpenMemHandle(handle, 1) == REFUSED


def test_an_event_for_other_processes_is_done_once_it_is_recorded(context: Any, stream: Any, calls: HostCalls) -> None:
    calls.launch(stream, "work")
    event = ok(driver.cuEventCreate(bindings.CUevent_flags.CU_EVENT_INTERPROCESS.value | 2))
    ok(driver.cuEventRecord(event, stream))
    assert calls.names == ["work"]


def test_what_an_imported_pool_cannot_do_is_refused(context: Any, descriptor_of: Any, other_process: Run) -> None:
    pool, other = made(), made()
    data = data_of(ok(driver.cuMemPoolExportPointer(ok(driver.cuMemAllocFromPoolAsync(64, other, 0)))))
    assert other_process(REFUSE, data, descriptor_of(pool)) == [INVALID.name] * 4


def test_only_memory_of_pools_made_for_it_is_exported(context: Any, tmp_path: Any) -> None:
    plain, pool = made(bindings.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE), made()
    assert driver.cuMemPoolExportToShareableHandle(plain, DESCRIPTOR, 0) == REFUSED
    assert driver.cuMemPoolExportToShareableHandle(pool, DESCRIPTOR, 1) == REFUSED
    for address in (ok(driver.cuMemAllocFromPoolAsync(64, plain, 0)), ok(driver.cuMemAlloc(64)), 0):
        assert driver.cuMemPoolExportPointer(address) == REFUSED
    with (tmp_path / "file").open("w+b") as file:
        assert driver.cuMemPoolImportFromShareableHandle(file.fileno(), DESCRIPTOR, 0) == REFUSED
    assert driver.cuMemPoolImportFromShareableHandle(999, DESCRIPTOR, 0) == REFUSED
    # A pool does not import its own allocations.
    data = ok(driver.cuMemPoolExportPointer(ok(driver.cuMemAllocFromPoolAsync(64, pool, 0))))
    assert driver.cuMemPoolImportPointer(pool, data) == REFUSED

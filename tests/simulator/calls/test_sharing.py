"""Another process opens memory of this one with the bytes of its handle, on the simulator."""

import ctypes
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.support import HostCalls, Status, download, ok, upload

OPENED = """
import ctypes, sys
import numpy as np
from cuda.bindings import driver as bindings
from cudart_py.simulator import driver

def ok(result):
    assert not result[0], result
    return result[1] if len(result) == 2 else None

ok(driver.cuInit(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
handle = bindings.CUipcMemHandle()
ctypes.memmove(handle.getPtr(), bytes.fromhex(sys.argv[1]), 64)
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


def data_of(handle: Any) -> bytes:
    return ctypes.string_at(handle.getPtr(), 64)


@pytest.fixture
def other_process() -> Callable[[str, bytes], str]:
    """Return a function that runs a program with a handle in another process, and returns what it prints."""

    def run(program: str, data: bytes) -> str:
        command = [sys.executable, "-c", OPENED + program, data.hex()]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()

    return run


@pytest.mark.parametrize("size", [99, 3 << 20])
def test_another_process_changes_shared_memory_in_place(
    context: Any, other_process: Callable[[str, bytes], str], rng: np.random.Generator, size: int
) -> None:
    neighbour, values = upload(np.full(64, 9, np.uint8)), rng.integers(0, 255, 99, np.uint8)
    address = int(ok(driver.cuMemAlloc(size)))
    ok(driver.cuMemcpyHtoD(address, values, 99))
    data = data_of(ok(driver.cuIpcGetMemHandle(address + 5)))
    assert data == data_of(ok(driver.cuIpcGetMemHandle(address)))
    assert other_process(ADD, data) == "CUDA_ERROR_INVALID_VALUE CUDA_ERROR_INVALID_VALUE"
    assert download(address, 99).tolist() == [*(values[:-1] + 1), 5]
    assert download(neighbour, 64).tolist() == [9] * 64


def test_memory_that_has_been_freed_is_not_opened(context: Any, other_process: Callable[[str, bytes], str]) -> None:
    address = int(ok(driver.cuMemAlloc(3 << 20)))
    data = data_of(ok(driver.cuIpcGetMemHandle(address)))
    ok(driver.cuMemFree(address))
    assert other_process(TRY, data) == "CUDA_ERROR_INVALID_VALUE"


@pytest.mark.parametrize("damage", [0, 8, 12], ids=["magic", "process", "start"])
def test_damaged_handles_are_refused(context: Any, damage: int) -> None:
    data = bytearray(data_of(ok(driver.cuIpcGetMemHandle(upload(np.zeros(9))))))
    data[damage] ^= 1
    handle = bindings.CUipcMemHandle()
    ctypes.memmove(handle.getPtr(), bytes(data), 64)
    assert driver.cuIpcOpenMemHandle(handle, 1) == (Status.CUDA_ERROR_INVALID_VALUE, None)


def test_an_event_for_other_processes_is_done_once_it_is_recorded(context: Any, stream: Any, calls: HostCalls) -> None:
    calls.launch(stream, "work")
    event = ok(driver.cuEventCreate(bindings.CUevent_flags.CU_EVENT_INTERPROCESS.value | 2))
    ok(driver.cuEventRecord(event, stream))
    assert calls.names == ["work"]

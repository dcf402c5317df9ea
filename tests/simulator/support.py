"""What the tests of the software driver share: devices of their own, uploads, downloads, host functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.state import contexts, devices

Status = bindings.CUresult
SUCCESS = Status.CUDA_SUCCESS


def ok(result: tuple[Any, ...]) -> Any:
    """Return the values of a result that must be a success."""
    assert result[0] == SUCCESS, f"{result[0]!r} {driver.take_report()}"
    if len(result) == 1:
        return None
    return result[1] if len(result) == 2 else result[1:]


def fresh_devices(count: int, memory: int) -> Callable[[], None]:
    """Put new devices in the place of those there are; return what puts those back."""
    ok(driver.cuInit(0))
    before = devices.state.devices
    stack = contexts.of_thread.stack
    devices.state.devices = [devices.Device(ordinal, memory) for ordinal in range(count)]
    contexts.of_thread.stack = []

    def restore() -> None:
        for device in devices.state.devices:
            if device.primary is not None:
                ok(driver.cuDevicePrimaryCtxReset(device.ordinal))
        devices.state.devices = before
        contexts.of_thread.stack = stack

    return restore


def upload(array: np.ndarray[Any, Any]) -> int:
    """Allocate memory with the array's bytes and return its address."""
    address = int(ok(driver.cuMemAlloc(array.nbytes)))
    ok(driver.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes))
    return address


def download(address: int, count: int, dtype: Any = np.uint8) -> np.ndarray[Any, Any]:
    """Return the elements at a device address, after all work of the context."""
    result = np.empty(count, dtype)
    ok(driver.cuCtxSynchronize())
    ok(driver.cuMemcpyDtoH(result.ctypes.data, address, result.nbytes))
    return result


class HostCalls:
    """C functions for cuLaunchHostFunc that note in which order they were called."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._held: list[Any] = []

    def make(self, name: str, then: Callable[[], None] = lambda: None) -> Any:
        """Return a function's handle that notes the name."""

        def call(_: int | None) -> None:
            self.names.append(name)
            then()

        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(call)
        self._held.append(function)
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert address
        return bindings.CUhostFn(address)

    def launch(self, stream: Any, name: str, then: Callable[[], None] = lambda: None) -> None:
        """Let a stream note the name when it gets there."""
        ok(driver.cuLaunchHostFunc(stream, self.make(name, then), None))


def compile_ptx(source: str) -> bytes:
    """Return the PTX of CUDA C++."""
    from cuda.bindings import nvrtc

    program = ok(nvrtc.nvrtcCreateProgram(source.encode(), b"test.cu", 0, None, None))
    options = [b"--gpu-architecture=compute_90", b"-lineinfo"]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    assert not status, status
    text = bytes(ok(nvrtc.nvrtcGetPTXSize(program)))
    ok(nvrtc.nvrtcGetPTX(program, text))
    ok(nvrtc.nvrtcDestroyProgram(program))
    return text

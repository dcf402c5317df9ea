import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.state import contexts, devices
from cudart_py.simulator.state.memory import mappings

Status = bindings.CUresult
SUCCESS = Status.CUDA_SUCCESS


def ok(result: tuple[Any, ...]) -> Any:
    """Assert that a call succeeded, and return its values without the status."""
    assert result[0] == SUCCESS, f"{result[0]!r} {driver.take_report()}"
    if len(result) == 1:
        return None
    return result[1] if len(result) == 2 else result[1:]


def struct(kind: str, **fields: Any) -> Any:
    """Return a structure of the bindings; `outer__inner` names a field of a nested structure."""
    made = getattr(bindings, kind)()
    for name, value in fields.items():
        *path, last = name.split("__")
        setattr(functools.reduce(getattr, path, made), last, value)
    return made


def create_array(*extents: int, flags: int = 0, channels: int = 1) -> tuple[Any, ...]:
    sizes = dict(zip(("Width", "Height", "Depth"), extents, strict=False))
    float32 = bindings.CUarray_format.CU_AD_FORMAT_FLOAT
    description = struct("CUDA_ARRAY3D_DESCRIPTOR", Format=float32, NumChannels=channels, Flags=flags, **sizes)
    return driver.cuArray3DCreate(description)


def fresh_devices(count: int, memory: int) -> Callable[[], None]:
    """Replace the driver's devices by new ones; return a function that restores the old ones."""
    ok(driver.cuInit(0))
    before = devices.state.devices
    stack = contexts.of_thread.stack
    devices.state.devices = [devices.Device(ordinal, memory) for ordinal in range(count)]
    contexts.of_thread.stack = []

    def restore() -> None:
        for device in devices.state.devices:
            if device.primary is not None:
                ok(driver.cuDevicePrimaryCtxReset(device.ordinal))
        mappings.drop_all()
        devices.state.devices = before
        contexts.of_thread.stack = stack

    return restore


def upload(array: np.ndarray[Any, Any]) -> int:
    address = int(ok(driver.cuMemAlloc(array.nbytes)))
    ok(driver.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes))
    return address


def download(address: int, count: int, dtype: Any = np.uint8) -> np.ndarray[Any, Any]:
    """Return the elements at a device address, after synchronizing with the context."""
    result = np.empty(count, dtype)
    ok(driver.cuCtxSynchronize())
    ok(driver.cuMemcpyDtoH(result.ctypes.data, address, result.nbytes))
    return result


class HostCalls:
    """C functions for cuLaunchHostFunc that record the order of their calls."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._held: list[Any] = []

    def make(self, name: str, then: Callable[[], None] = lambda: None) -> Any:
        def call(_: int | None) -> None:
            self.names.append(name)
            then()

        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(call)
        self._held.append(function)
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert address
        return bindings.CUhostFn(address)

    def launch(self, stream: Any, name: str, then: Callable[[], None] = lambda: None) -> None:
        ok(driver.cuLaunchHostFunc(stream, self.make(name, then), None))


class Player:
    """Plays steps such as "run s a, record e s, wait t e, sync t" with named streams, events and memory.

    A stream or an event is created when its name is first used. Names of events begin with "e", and names of blocking
    streams with "b"; all other streams are non-blocking. A step that ends in "-> NOT_READY" must fail with that error,
    and all other steps must succeed.
    """

    def __init__(self, calls: HostCalls) -> None:
        self.calls = calls
        self.handles: dict[str, Any] = {
            "null": 0,
            "legacy": bindings.CU_STREAM_LEGACY,
            "thread": bindings.CU_STREAM_PER_THREAD,
        }

    def __getitem__(self, name: str) -> Any:
        if name not in self.handles:
            made = driver.cuEventCreate(0) if name[0] == "e" else driver.cuStreamCreate(int(name[0] != "b"))
            self.handles[name] = ok(made)
        return self.handles[name]

    def __call__(self, steps: str) -> Any:
        """Play the steps, and return the value of the last one."""
        for step in steps.split(", "):
            action, _, error = step.partition(" -> ")
            verb, *names = action.split()
            result = self._play(verb, *names)
            assert result[0].name == (f"CUDA_ERROR_{error}" if error else "CUDA_SUCCESS"), (step, result)
        return result[1] if len(result) > 1 else None

    def _play(self, *step: str) -> Any:
        kind = "Event" if step[1][0] == "e" else "Stream"
        match step:
            case "run", stream, name:
                return driver.cuLaunchHostFunc(self[stream], self.calls.make(name), None)
            case "record", event, stream:
                return driver.cuEventRecord(self[event], self[stream])
            case "wait", stream, event:
                return driver.cuStreamWaitEvent(self[stream], self[event], 0)
            case "sync", "device":
                return driver.cuCtxSynchronize()
            case "sync", name:
                return getattr(driver, f"cu{kind}Synchronize")(self[name])
            case "query" | "destroy", name:
                return getattr(driver, f"cu{kind}{step[0].title()}")(self[name])
            case "begin", stream, *mode:
                name = f"CU_STREAM_CAPTURE_MODE_{mode[0].upper() if mode else 'GLOBAL'}"
                return driver.cuStreamBeginCapture(self[stream], getattr(bindings.CUstreamCaptureMode, name))
            case "end", stream:
                return driver.cuStreamEndCapture(self[stream])
            case "capturing", stream, status:
                result = driver.cuStreamIsCapturing(self[stream])
                assert result[0] != SUCCESS or result[1].name == f"CU_STREAM_CAPTURE_STATUS_{status.upper()}"
                return result
            case "take", stream, name, *size:
                result = driver.cuMemAllocAsync(int(size[0]) if size else 1 << 20, self[stream])
                self.handles[name] = int(result[1] or 0)
                return result
            case "fill", stream, name, *size:
                return driver.cuMemsetD8Async(self[name], 1, int(size[0]) if size else 16, self[stream])
            case "free", stream, name:
                return driver.cuMemFreeAsync(self[name], self[stream])
        raise ValueError(step)


@functools.cache
def compile_ptx(source: str, *further: bytes) -> bytes:
    """Compile CUDA C++ to PTX, with further options, once per source and process."""
    from cuda.bindings import nvrtc

    program = ok(nvrtc.nvrtcCreateProgram(source.encode(), b"test.cu", 0, None, None))
    options = [b"--gpu-architecture=compute_90", b"-lineinfo", *further]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    assert not status, status
    text = bytes(ok(nvrtc.nvrtcGetPTXSize(program)))
    ok(nvrtc.nvrtcGetPTX(program, text))
    ok(nvrtc.nvrtcDestroyProgram(program))
    return text

"""The backend: the CUDA driver that this process uses, and the operations that go beyond the driver's functions.

The driver is chosen at first use, never at import. `CUDART_PY_DRIVER=cuda` or `=simulator` decides. Without it, the
real driver is used, and the simulator only if libcuda is missing or finds no device, which is then reported once on
standard error. No code outside this module depends on which driver it is: code that must know what the driver can do
calls `capabilities()`.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal, Protocol

from .. import errors
from . import enums

ENVIRONMENT_VARIABLE = "CUDART_PY_DRIVER"
_NAMES = ("cuda", "simulator")
_MAJOR = 13

# A status followed by values, as the functions of `cuda.bindings.driver` return them.
Result = tuple[Any, ...]


class Backend(Protocol):
    """A CUDA driver: its functions, and the further operations that this package needs."""

    @property
    def functions(self) -> ModuleType:
        """The driver's functions, with the names, arguments and results of `cuda.bindings.driver`."""

    @property
    def image_kind(self) -> Literal["cubin", "ptx"]:
        """The kind of image that the driver loads."""

    @property
    def can_reset(self) -> bool:
        """Whether `reset` is supported; this may be read after the context is lost."""

    def abilities(self) -> frozenset[str]:
        """Return the capabilities (see `capabilities()`) that do not depend on the devices."""

    def library(self, name: str) -> Any:
        """Return the functions of one of CUDA's libraries; `name` is the name of its module in nvmath's bindings."""

    def device_of(self, address: int) -> Result:
        """Return a status and the ordinal of the device that an address is on (CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)."""

    def in_finalizer(self, give_back: Callable[[], None]) -> None:
        """Call a function from a finalizer, in which errors cannot reach the program."""

    def in_a_call(self) -> bool:
        """Return whether the thread is inside a driver call, for example because Python ran a finalizer during it."""

    @property
    def names_kernels(self) -> bool:
        """Whether the explanation of a fault names the kernel that has failed."""

    def explanation(self, status: int) -> str:
        """Return, only once, the driver's explanation of the failure that this thread's last call has returned.

        `status` is the number of the status. Returns an empty string if the driver has no explanation.
        """

    def lost_by(self) -> str | None:
        """Return the report of the fault that ended the context; None if it is not known."""

    def has_unwaited(self) -> bool:
        """Return whether there is work that has not run, and runs only when something waits for it."""

    def note_exit(self) -> None:
        """Report, at the end of the program, the work that the program never waited for."""

    def set_sanitizer(self, mode: str | None) -> None:
        """Set how mistakes in kernels are reported; None means the mode that the environment variable sets."""

    def begin_profile(self, warp: int | None) -> Result:
        """Start counting what launches do, and recording one warp per launch (None: no warp)."""

    def complete_profile(self) -> Result:
        """Run the queued work, which the latest `begin_profile` counts, too."""

    def end_profile(self) -> Result:
        """Return the counts since the latest `begin_profile` that has not been ended."""

    def host_time(self, event: Any) -> Result:
        """Return the time of an event in nanoseconds of the host's clock; CUDA_ERROR_NOT_SUPPORTED for a GPU's events.

        If there is such a time, it shows the order of the work and not how long a GPU takes.
        """

    def attach_debugger(self, listener: Any) -> Result:
        """Attach a debugger to the launches from now on."""

    def detach_debugger(self) -> Result:
        """Detach the debugger that was attached last."""

    def reset(self, handles: set[int]) -> Result:
        """Reset all devices and invalidate the given handles."""

    def drop_bytes(self, address: int) -> Result:
        """Free page-locked memory that was in use at a reset and no longer is."""


class CudaBackend:
    """NVIDIA's driver, through `cuda.bindings`. Information that the hardware does not report is None."""

    # Not PTX, because a driver rejects PTX from a newer NVRTC.
    image_kind: Literal["cubin", "ptx"] = "cubin"
    can_reset = False
    names_kernels = False

    def __init__(self, functions: ModuleType) -> None:
        self.functions = functions

    def abilities(self) -> frozenset[str]:
        """Return the capabilities of every GPU, and those of CUDA's libraries if they are installed."""
        found = {"checkpoint", "concurrent_host", "coredump", "gpu_timing", "interop"}
        if _found("cublas", "cufft", "cusparse", "cusolver", "curand"):
            found |= {"fused_callbacks", "libraries"}
        if _found("cudss"):
            found.add("cudss")
        return frozenset(found)

    def library(self, name: str) -> Any:
        """Return `nvmath.bindings.<name>`, which loads the library when it is first called."""
        return importlib.import_module(f"nvmath.bindings.{name}")

    def device_of(self, address: int) -> Result:
        """Call the driver directly, because some versions of the bindings return a wrong ordinal."""
        from . import pointer_device  # imported late: it imports the bindings, which takes longer than this package

        return pointer_device.ordinal(address)

    def in_finalizer(self, give_back: Callable[[], None]) -> None:
        """Call the function: later calls return the errors of earlier work anyway."""
        give_back()

    def in_a_call(self) -> bool:
        """Return False: no Python runs inside the driver."""
        return False

    def explanation(self, status: int) -> str:
        """Return what the driver has logged about the failure; nothing with drivers older than CUDA 12.9."""
        from . import error_log  # imported late: only failures need it

        return error_log.explanation(status)

    def lost_by(self) -> str | None:
        """Return None: the hardware reports only a status."""
        return None

    def has_unwaited(self) -> bool:
        """Return False: a GPU runs its work without a wait."""
        return False

    def note_exit(self) -> None:
        """Do nothing: a GPU may have run the work even if the program never waited for it."""

    def set_sanitizer(self, mode: str | None) -> None:
        """Do nothing: the hardware does not check kernels."""

    def begin_profile(self, warp: int | None) -> Result:
        """Return CUDA_ERROR_NOT_SUPPORTED."""
        return self._refused()

    def complete_profile(self) -> Result:
        """Return CUDA_ERROR_NOT_SUPPORTED."""
        return self._refused()

    def end_profile(self) -> Result:
        """Return CUDA_ERROR_NOT_SUPPORTED."""
        return self._refused()

    def host_time(self, event: Any) -> Result:
        """Return CUDA_ERROR_NOT_SUPPORTED: a GPU has a clock of its own."""
        return self._refused()

    def attach_debugger(self, listener: Any) -> Result:
        """Return CUDA_ERROR_NOT_SUPPORTED."""
        return self._refused()

    def detach_debugger(self) -> Result:
        """Return CUDA_ERROR_NOT_SUPPORTED."""
        return self._refused()

    def reset(self, handles: set[int]) -> Result:
        """Return CUDA_ERROR_NOT_SUPPORTED: other libraries in the process would lose the context."""
        return self._refused()

    def drop_bytes(self, address: int) -> Result:
        """Return CUDA_ERROR_NOT_SUPPORTED, like `reset`."""
        return self._refused()

    def _refused(self) -> Result:
        return (enums.CUresult.CUDA_ERROR_NOT_SUPPORTED,)


class SimulatorBackend:
    """The simulator, which is a CUDA driver in software."""

    image_kind: Literal["cubin", "ptx"] = "ptx"
    can_reset = True
    names_kernels = True

    def __init__(self) -> None:
        from ..findings.reports import start_process_report  # imported late: only the simulator has findings
        from ..simulator import driver  # imported late, as above

        start_process_report()
        self.functions: ModuleType = driver
        self._driver = driver
        self.in_finalizer = driver.in_finalizer
        self.in_a_call = driver.in_a_call
        self.lost_by = driver.lost_by
        self.has_unwaited = driver.has_unwaited
        self.note_exit = driver.note_exit
        self.begin_profile = driver.begin_profile
        self.complete_profile = driver.complete_profile
        self.end_profile = driver.end_profile
        self.host_time = driver.host_time
        self.attach_debugger = driver.attach_debugger
        self.detach_debugger = driver.detach_debugger
        self.reset = driver.reset
        self.drop_bytes = driver.drop_bytes

    def abilities(self) -> frozenset[str]:
        """Return the simulator's capabilities, and "libraries" and "cudss" if its versions of the libraries can run."""
        from ..simulator import libraries  # imported late: few programs need it

        always = self._driver.CAPABILITIES
        return always | {"libraries", "cudss"} if libraries.available() else always

    def library(self, name: str) -> Any:
        """Return the simulator's version of a library, which has the same functions as nvmath's bindings."""
        from ..simulator import libraries  # imported late, as above

        return libraries.find(name)

    def explanation(self, status: int) -> str:
        """Return the report of the last fault or refusal, which the simulator's log contains too."""
        return self._driver.take_report() or ""

    def set_sanitizer(self, mode: str | None) -> None:
        """Set the mode for all devices."""
        self._driver.set_sanitizer(mode)

    def device_of(self, address: int) -> Result:
        """Call cuPointerGetAttributes."""
        wanted = [enums.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL]
        status, values = self._driver.cuPointerGetAttributes(1, wanted, address)
        return status, int(values[0]) if values else -1


_lock = threading.RLock()
_used: Backend | None = None
_selected: str | None = None
_is_forked = False


def select(name: str) -> None:
    """Choose the driver by name, "cuda" or "simulator", before any CUDA call.

    Raises ValueError for another name, and RuntimeError if the other driver is already in use.
    """
    global _selected
    if name not in _NAMES:
        raise ValueError(f"driver {name!r} is not one of {', '.join(map(repr, _NAMES))}")
    with _lock:
        if _used is not None and name != _selected:
            raise RuntimeError(
                f"the driver {_selected!r} is already in use; choose {name!r} before the first CUDA call"
            )
        _selected = name


def chosen() -> Backend:
    """Return the backend of this process, choosing and initialising it at the first call."""
    global _selected, _used
    if _is_forked:
        raise errors.InvalidContextError(
            "CUDA was initialised before this process was forked, so the child cannot use it; "
            "start children with multiprocessing's 'spawn' or 'forkserver' method"
        )
    if _used is not None:  # tested without the lock, because a thread that holds it may be waiting for a driver call
        return _used
    with _lock:
        if _used is None:
            if sys.platform != "linux":  # checked before importing modules that other systems lack
                raise errors.NotSupportedError(
                    f"cudart_py runs on Linux, and this is {sys.platform}: use WSL 2 on Windows, a Linux container "
                    "(with Docker, for example), or a notebook on Google Colab"
                )
            name = _selected or os.environ.get(ENVIRONMENT_VARIABLE)
            if name and name not in _NAMES:
                raise ValueError(f"{ENVIRONMENT_VARIABLE}={name!r} is not one of {', '.join(map(repr, _NAMES))}")
            backend = _simulator() if name == "simulator" else _cuda(required=name == "cuda")
            _selected = "cuda" if isinstance(backend, CudaBackend) else "simulator"
            os.register_at_fork(after_in_child=_after_fork)
            _used = backend
        return _used


def in_use() -> Backend | None:
    """Return the backend in use; None if none is chosen yet, and in a forked child, which cannot use it."""
    return _used


def forked() -> bool:
    """Return whether this process was forked from one that had initialised CUDA."""
    return _is_forked


def _after_fork() -> None:
    global _is_forked, _used
    _is_forked, _used = True, None


def _cuda(*, required: bool) -> Backend:
    """Initialise the real driver; fall back to the simulator only if there is no driver or no device."""
    from cuda.bindings import driver  # imported late: it takes longer to import than all of this package
    from cuda.pathfinder import DynamicLibNotFoundError  # imported late, as above

    result = None
    try:
        (result,) = driver.cuInit(0)
    except RuntimeError as error:
        # Bindings before 13.1 raise a plain RuntimeError for a missing library.
        if not isinstance(error, DynamicLibNotFoundError) and "libcuda" not in str(error):
            raise
    if result is None:  # not in the except clause, whose error would be printed before each error from here on
        if required:
            raise errors.NoDeviceError("libcuda.so.1 was not found: install the NVIDIA driver")
        return _fall_back("libcuda.so.1 was not found")
    if result == driver.CUresult.CUDA_ERROR_NO_DEVICE and not required:
        return _fall_back("the driver found no device")
    if result:
        # The driver is not initialised, so only its functions for error texts may be called.
        text = driver.cuGetErrorString(result)[1]
        reason = text.decode() if text else result.name
        from . import error_log  # imported late, as in `CudaBackend.explanation`

        explanation = error_log.explanation(int(result))
        message = f"cuInit: {reason} ({result.name})" + (f"\n{explanation}" if explanation else "")
        raise errors.NoDeviceError(message, status=result, call="cuInit", explanation=explanation)
    _, version = driver.cuDriverGetVersion()
    if version // 1000 < _MAJOR:
        raise errors.NoDeviceError(
            f"this driver supports CUDA {version // 1000}.{version % 1000 // 10}, and cudart_py needs CUDA "
            f"{_MAJOR}: update it to R580 or later"
        )
    return CudaBackend(driver)


def _fall_back(reason: str) -> Backend:
    print(  # noqa: T201  # the fallback is announced once, on standard error
        f"cudart-py: {reason}; kernels run on the simulator ({ENVIRONMENT_VARIABLE}=simulator silences this)",
        file=sys.stderr,
    )
    return _simulator()


def _simulator() -> Backend:
    backend = SimulatorBackend()
    try:
        (status,) = backend.functions.cuInit(0)
    except ValueError as error:  # a setting in the environment; the place where the simulator reads it helps nobody
        raise error.with_traceback(None) from None
    if status:  # `failure` cannot be used: it gets the text from the chosen driver, and none is chosen yet
        raise errors.NoDeviceError(
            f"cuInit: CUDART_PY_SIMULATOR_DEVICES leaves the simulator without a device ({status.name})",
            status=status,
            call="cuInit",
        )
    return backend


@functools.cache
def _found(*libraries: str) -> bool:
    """Return whether all of these libraries of CUDA are installed."""
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib  # imported late, as above

    try:
        for library in libraries:
            load_nvidia_dynamic_lib(library)
    except DynamicLibNotFoundError:
        return False
    return True

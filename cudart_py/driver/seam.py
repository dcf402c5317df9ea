"""The seam: which CUDA driver serves this process.

The driver is chosen at first use, never at import. `CUDART_PY_DRIVER=cuda` or `=simulator` decides;
otherwise the real driver serves, and the simulator only where libcuda is missing or finds no device,
which is then said once on standard error. Nothing outside this module knows which one it is:
code that must know what a driver can do asks `capabilities()`.

`raw` has the functions as the driver offers them (tuple returns), `api` the same functions unwrapped:
they return the value and raise on any status but success.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .. import errors
from . import enums, unwrap

__all__ = [
    "ENVIRONMENT_VARIABLE",
    "api",
    "can_reset",
    "capabilities",
    "device_ordinal",
    "forked",
    "image_kind",
    "in_a_call",
    "in_finalizer",
    "library",
    "lost_by",
    "note_exit",
    "raw",
    "select",
    "set_sanitizer",
    "take_report",
]

ENVIRONMENT_VARIABLE = "CUDART_PY_DRIVER"
_NAMES = ("cuda", "simulator")
_MAJOR = 13

_RAW = """The functions of the driver in use, as `cuda.bindings.driver` has them: `raw.cuMemAlloc(1024)`.

Each returns the tuple of its status and its values, which `check` unwraps. The first use chooses the driver. A function
that the driver does not have is an AttributeError; the simulator has fewer than a GPU's driver.
"""

_lock = threading.RLock()
_module: ModuleType | None = None
_selected: str | None = None
_is_forked = False


def _call(function: Callable[[], None]) -> None:
    function()


# Calls a finalizer's function. The simulator's way, set when that is chosen, keeps errors of earlier work for a later
# call, since nobody sees a finalizer's. Hardware has none to keep: there every later call returns them.
in_finalizer: Callable[[Callable[[], None]], None] = _call


def _never() -> bool:
    return False


# Whether the calling thread is in the middle of a call of the driver, where Python has run a finalizer for example. The
# simulator can tell; inside a GPU's driver no Python runs.
in_a_call: Callable[[], bool] = _never


def _keep_raw(name: str) -> Any:
    """Find one of the chosen driver's functions, and keep it as an attribute of `raw` from then on."""
    if name.startswith("__"):  # a program that only inspects `raw` chooses no driver
        raise AttributeError(f"module 'raw' has no attribute {name!r}")
    value = getattr(_choose(), name)
    setattr(raw, name, value)
    return value


class _Api:
    """The chosen driver's functions, each unwrapped."""

    def __getattr__(self, name: str) -> Any:
        value = _unwrapped(getattr(raw, name), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    # The bindings come without types. The simulator has their functions with the same names, arguments and result
    # tuples, which type checkers and editors then see.
    from ..simulator import driver as raw
else:
    # A module, because Python reads the attributes of modules several times as fast as those of an object that finds
    # them by a method.
    raw = ModuleType("raw", _RAW)
    raw.__getattr__ = _keep_raw
api = _Api()


def _unwrapped(function: Callable[..., tuple[Any, ...]], name: str) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        result = function(*arguments)
        if result[0]:
            raise unwrap.failure(result[0], name)
        count = len(result)
        if count == 2:
            return result[1]
        return None if count == 1 else result[1:]

    call.__name__ = name
    return call


def select(name: str) -> None:
    """Choose the driver by name, "cuda" or "simulator", before anything has used one.

    Raises ValueError for another name and RuntimeError when the other driver is already in use.
    """
    global _selected
    if name not in _NAMES:
        raise ValueError(f"driver {name!r} is not one of {', '.join(map(repr, _NAMES))}")
    with _lock:
        if _module is not None and name != _selected:
            raise RuntimeError(
                f"the driver {_selected!r} is already in use; choose {name!r} before the first CUDA call"
            )
        _selected = name


def _choose() -> ModuleType:
    """Return the driver of this process, choosing and initialising it at the first call."""
    global in_a_call, in_finalizer, _module, _selected
    if _is_forked:
        raise errors.InvalidContextError(
            "CUDA was initialised before this process was forked and cannot be used in the child; "
            "start children with multiprocessing's 'spawn' or 'forkserver' method"
        )
    if _module is not None:  # without the lock, since one that has it may wait for a call of the driver
        return _module
    with _lock:
        if _module is None:
            name = _selected or os.environ.get(ENVIRONMENT_VARIABLE)
            if name and name not in _NAMES:
                raise ValueError(f"{ENVIRONMENT_VARIABLE}={name!r} is not one of {', '.join(map(repr, _NAMES))}")
            if name == "simulator":
                module, _selected = _simulator(), "simulator"
            else:
                module, _selected = _cuda(required=name == "cuda")
            in_finalizer = getattr(module, "in_finalizer", _call)
            in_a_call = getattr(module, "in_a_call", _never)
            os.register_at_fork(after_in_child=_after_fork)
            _module = module
        return _module


def _cuda(*, required: bool) -> tuple[ModuleType, str]:
    """Initialise the real driver; fall back to the simulator only for want of a driver or device."""
    from cuda.bindings import driver  # not at import: it takes longer than the import of all of this package
    from cuda.pathfinder import DynamicLibNotFoundError  # as above

    status = driver.CUresult
    try:
        (result,) = driver.cuInit(0)
    except RuntimeError as error:
        # Bindings before 13.1 raise a plain RuntimeError for a library that is not there.
        if not isinstance(error, DynamicLibNotFoundError) and "libcuda" not in str(error):
            raise
        if required:
            raise errors.NoDeviceError("libcuda.so.1 was not found: install the NVIDIA driver") from error
        return _fall_back("libcuda.so.1 was not found")
    if result == status.CUDA_ERROR_NO_DEVICE and not required:
        return _fall_back("the driver finds no device")
    if result:
        # The driver is not initialised, so only its error texts may be asked.
        text = driver.cuGetErrorString(result)[1]
        reason = text.decode() if text else result.name
        raise errors.NoDeviceError(f"cuInit: {reason} ({result.name})", status=result, call="cuInit")
    version = unwrap.check(driver.cuDriverGetVersion())
    if version // 1000 < _MAJOR:
        raise errors.NoDeviceError(
            f"this driver supports CUDA {version // 1000}.{version % 1000 // 10}, and cudart_py needs CUDA "
            f"{_MAJOR}: update to driver R580 or later"
        )
    return driver, "cuda"


def _fall_back(reason: str) -> tuple[ModuleType, str]:
    print(  # noqa: T201  # the contract: said once, on standard error
        f"cudart_py: {reason}; kernels run on the simulator ({ENVIRONMENT_VARIABLE}=simulator silences this)",
        file=sys.stderr,
    )
    return _simulator(), "simulator"


def _simulator() -> ModuleType:
    if sys.platform != "linux":
        raise errors.NotSupportedError(
            f"the simulator runs on Linux, and this is {sys.platform}: use WSL 2 on Windows, a Linux container, as "
            "of Docker, or a notebook of Google Colab"
        )
    from ..simulator import driver  # a process that has a GPU does not need it

    (status,) = driver.cuInit(0)
    if status:  # no driver is chosen yet, which would be asked for the text
        raise errors.NoDeviceError(
            f"cuInit: the simulator was given no device by CUDART_PY_SIMULATOR_DEVICES ({status.name})",
            status=status,
            call="cuInit",
        )
    return driver


def _after_fork() -> None:
    global _is_forked
    _is_forked = True
    # The cached functions would go round the check in _choose.
    raw.__dict__.clear()
    raw.__dict__["__getattr__"] = _keep_raw
    api.__dict__.clear()


def forked() -> bool:
    """Return whether this process is the child of one that had initialised CUDA."""
    return _is_forked


def image_kind() -> str:
    """Return the image that the driver loads: "cubin", or "ptx" on the simulator.

    A GPU never gets PTX of ours, because a driver rejects the PTX of a newer NVRTC.
    """
    return "cubin" if _chosen_name() == "cuda" else "ptx"


def device_ordinal(address: int) -> int:
    """Return the ordinal of the device that the memory at an address is on (CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)."""
    if _chosen_name() == "cuda":
        from . import pointer_device  # it imports the bindings, which take longer than all of this package

        return pointer_device.ordinal(address)
    (ordinal,) = api.cuPointerGetAttributes(1, [enums.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL], address)
    return int(ordinal)


def take_report() -> str | None:
    """Return the driver's own report of the last fault, once; the hardware has none."""
    if _module is None or _is_forked:
        return None
    report: str | None = getattr(_module, "take_report", lambda: None)()
    return report


def lost_by() -> str | None:
    """Return what the driver knows of the fault that has lost the context; hardware knows nothing, which is None."""
    return None if _is_forked else getattr(_module, "lost_by", lambda: None)()


def note_exit() -> None:
    """Let the driver name, at the program's end, work that nothing has waited for, which hardware may have run."""
    if _module is not None and not _is_forked:
        getattr(_module, "note_exit", lambda: None)()


def _error_text(status: Any) -> str | None:
    """Return the driver's text for a status, None where it has none (cuGetErrorString)."""
    missing, text = raw.cuGetErrorString(status)
    return None if missing or not text else text.decode()


unwrap.explain_with(_error_text, take_report)


def can_reset() -> bool:
    """Return whether the driver has the capability `reset`; safe to ask of a lost context."""
    return hasattr(_module, "reset")


def set_sanitizer(mode: str | None) -> None:
    """Choose what becomes of the driver's findings in kernels, None for the environment's choice; hardware has none."""
    getattr(_choose(), "set_sanitizer", lambda _: None)(mode)


def capabilities() -> frozenset[str]:
    """Return the names of what the driver in use can do beyond running kernels.

    | name | what it means |
    |---|---|
    | `concurrent_host` | a running kernel and the host see each other's writes |
    | `gpu_timing` | event times are the device's times |
    | `in_process` | kernels run in this process: signals interrupt them, and they print to `sys.stdout` |
    | `interop` | other GPU libraries can use our addresses, and we theirs |
    | `ipc` | other processes can open our events and memory made for that (`cuda.ipc.handle`) |
    | `libraries` | cuBLAS, cuFFT, cuSPARSE, cuSOLVER and cuRAND run on this device |
    | `peer` | at least one pair of devices can access each other's memory |
    | `profile` | `cuda.profile()` counts what a launch does |
    | `reset` | `cuda.reset()` begins anew in this process, after a fault too |
    """
    return _capabilities(_chosen_name())


@functools.cache
def library(name: str) -> Any:
    """Return the functions of one of CUDA's libraries for the driver in use, by the name of nvmath's bindings.

    On a GPU those are `nvmath.bindings.<name>`, which load the library at the first call; on the simulator they are
    its software version, which has the same functions.
    """
    if _chosen_name() == "cuda":
        return importlib.import_module(f"nvmath.bindings.{name}")
    from ..simulator import libraries  # only programs that call libraries need them

    return libraries.find(name)


def _chosen_name() -> str:
    _choose()
    assert _selected is not None
    return _selected


def _capabilities(name: str) -> frozenset[str]:
    found = set(_choose().CAPABILITIES) if name == "simulator" else {"concurrent_host", "gpu_timing", "interop"}
    if _libraries_found(name):
        found.add("libraries")
    count = api.cuDeviceGetCount()
    ipc = enums.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED
    if all(api.cuDeviceGetAttribute(ipc, device) for device in range(count)):
        found.add("ipc")
    if any(api.cuDeviceCanAccessPeer(a, b) for a in range(count) for b in range(count) if a != b):
        found.add("peer")
    return frozenset(found)


@functools.cache
def _libraries_found(name: str) -> bool:
    if name == "simulator":
        from ..simulator import libraries  # only programs that ask for them need them

        return libraries.available()
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib  # as above

    try:
        for library in ("cublas", "cufft", "cusparse", "cusolver", "curand"):
            load_nvidia_dynamic_lib(library)
    except DynamicLibNotFoundError:
        return False
    return True

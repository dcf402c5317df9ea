"""What can go wrong, as one tree of exceptions, and the one function that unwraps results.

CudaError
├── NoDeviceError                           no driver, or no device
├── InvalidValueError       (ValueError)    an argument that the driver refuses
├── InvalidHandleError      (ValueError)    a handle that is not one, or no longer
├── InvalidContextError                     no context, a destroyed one, another's
├── OutOfMemoryError        (MemoryError)   device, pinned or managed memory
├── NotSupportedError       (NotImplementedError)
├── NotFoundError           (LookupError)   a kernel, variable or file that is not there
├── ImageError                              a cubin, PTX or fatbin that cannot be loaded
├── NotReadyError                           unfinished work was asked for its result
├── EventNotRecordedError   (ValueError)    a time was asked of an event that nothing recorded
├── EventTimingError        (ValueError)    a time was asked of an event made without timing
├── CaptureError                            not allowed while a stream is captured
├── PeerAccessError                         peer access missing, or enabled twice
├── LaunchError                             a launch that was refused
├── KernelFaultError                        a kernel that failed; the context is lost
│   ├── IllegalAddressError
│   ├── MisalignedAddressError
│   ├── KernelAssertError                   a device-side assert
│   └── KernelTimeoutError
├── NvrtcError                              the run-time compiler
│   └── CompileError                        with the log and the source lines
└── LinkError                               nvJitLink, with its log
"""

from __future__ import annotations

from typing import Any

from . import arguments

__all__ = [
    "CaptureError",
    "CompileError",
    "CudaError",
    "EventNotRecordedError",
    "EventTimingError",
    "IllegalAddressError",
    "ImageError",
    "InvalidContextError",
    "InvalidHandleError",
    "InvalidValueError",
    "KernelAssertError",
    "KernelFaultError",
    "KernelTimeoutError",
    "LaunchError",
    "LinkError",
    "MisalignedAddressError",
    "NoDeviceError",
    "NotFoundError",
    "NotReadyError",
    "NotSupportedError",
    "NvrtcError",
    "OutOfMemoryError",
    "PeerAccessError",
    "check",
]


class CudaError(Exception):
    """A CUDA call that failed.

    `status` is the enum that the call returned (CUresult, cudaError_t, nvrtcResult, ...), `call` the
    name of the function, empty where it is not known.
    """

    def __init__(self, message: str, *, status: Any = None, call: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.call = call


class NoDeviceError(CudaError):
    """No usable driver or no device: CUDA_ERROR_NO_DEVICE and what keeps cuInit from succeeding."""


class InvalidValueError(CudaError, ValueError):
    """An argument that the driver refuses: CUDA_ERROR_INVALID_VALUE and its kin."""


class InvalidHandleError(CudaError, ValueError):
    """A handle that is not valid, or no longer: CUDA_ERROR_INVALID_HANDLE."""


class InvalidContextError(CudaError):
    """No current context, a destroyed one, or one of another device."""


class OutOfMemoryError(CudaError, MemoryError):
    """Memory that is not there; `requested`, `free` and `total` are bytes, or None where unknown."""

    def __init__(
        self,
        message: str,
        *,
        status: Any = None,
        call: str = "",
        requested: int | None = None,
        free: int | None = None,
        total: int | None = None,
    ) -> None:
        super().__init__(message, status=status, call=call)
        self.requested = requested
        self.free = free
        self.total = total


class NotSupportedError(CudaError, NotImplementedError):
    """Something that this driver or device cannot do: CUDA_ERROR_NOT_SUPPORTED."""


class NotFoundError(CudaError, LookupError):
    """A kernel, variable or file that is not there: CUDA_ERROR_NOT_FOUND."""

    def __str__(self) -> str:
        # LookupError's own text would be the repr of the message.
        return str(self.args[0])


class ImageError(CudaError):
    """A cubin, PTX or fatbin that cannot be loaded on this device."""


class NotReadyError(CudaError):
    """Unfinished work was asked for its result: CUDA_ERROR_NOT_READY."""


class EventNotRecordedError(CudaError, ValueError):
    """A time was asked of an event that was never recorded: the driver's CUDA_ERROR_INVALID_HANDLE."""


class EventTimingError(CudaError, ValueError):
    """A time was asked of an event made with timing=False: the driver's CUDA_ERROR_INVALID_HANDLE."""


class CaptureError(CudaError):
    """Something that a stream under capture does not allow: CUDA_ERROR_STREAM_CAPTURE_*."""


class PeerAccessError(CudaError):
    """Peer access that is missing, impossible or already enabled."""


class LaunchError(CudaError):
    """A launch that the driver refused; nothing has run and the context is sound."""


class KernelFaultError(CudaError):
    """A kernel that failed while it ran.

    The error is sticky: every later call in this context fails with it, and on a real device only a
    new process recovers.
    """


class IllegalAddressError(KernelFaultError):
    """A load or store outside every allocation: CUDA_ERROR_ILLEGAL_ADDRESS."""


class MisalignedAddressError(KernelFaultError):
    """An address that its access's width does not divide: CUDA_ERROR_MISALIGNED_ADDRESS."""


class KernelAssertError(KernelFaultError):
    """A device-side assert that failed: CUDA_ERROR_ASSERT."""


class KernelTimeoutError(KernelFaultError):
    """A kernel that ran too long: CUDA_ERROR_LAUNCH_TIMEOUT."""


class NvrtcError(CudaError):
    """An NVRTC call that failed."""


class CompileError(NvrtcError):
    """CUDA C++ that does not compile; `log` is the compiler's own text."""

    def __init__(self, message: str, *, status: Any = None, call: str = "", log: str = "") -> None:
        super().__init__(message, status=status, call=call)
        self.log = log


class LinkError(CudaError):
    """Images that do not link; `log` is the linker's own text."""

    def __init__(self, message: str, *, status: Any = None, call: str = "", log: str = "") -> None:
        super().__init__(message, status=status, call=call)
        self.log = log


# By the driver's names; the runtime's codes have the driver's numbers. A status that is not here is a
# plain CudaError on purpose: a test lists those, so a new status is noticed.
_BY_STATUS: dict[str, type[CudaError]] = {
    "CUDA_ERROR_INVALID_VALUE": InvalidValueError,
    "CUDA_ERROR_INVALID_DEVICE": InvalidValueError,
    "CUDA_ERROR_INVALID_RESOURCE_TYPE": InvalidValueError,
    "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION": InvalidValueError,
    "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED": InvalidValueError,
    "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED": InvalidValueError,
    "CUDA_ERROR_ALREADY_MAPPED": InvalidValueError,
    "CUDA_ERROR_ALREADY_ACQUIRED": InvalidValueError,
    "CUDA_ERROR_NOT_MAPPED": InvalidValueError,
    "CUDA_ERROR_NOT_MAPPED_AS_ARRAY": InvalidValueError,
    "CUDA_ERROR_NOT_MAPPED_AS_POINTER": InvalidValueError,
    "CUDA_ERROR_INVALID_HANDLE": InvalidHandleError,
    "CUDA_ERROR_OUT_OF_MEMORY": OutOfMemoryError,
    "CUDA_ERROR_NOT_INITIALIZED": NoDeviceError,
    "CUDA_ERROR_DEINITIALIZED": NoDeviceError,
    "CUDA_ERROR_STUB_LIBRARY": NoDeviceError,
    "CUDA_ERROR_DEVICE_UNAVAILABLE": NoDeviceError,
    "CUDA_ERROR_NO_DEVICE": NoDeviceError,
    "CUDA_ERROR_DEVICE_NOT_LICENSED": NoDeviceError,
    "CUDA_ERROR_SYSTEM_NOT_READY": NoDeviceError,
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": NoDeviceError,
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": NoDeviceError,
    "CUDA_ERROR_INVALID_CONTEXT": InvalidContextError,
    "CUDA_ERROR_CONTEXT_ALREADY_CURRENT": InvalidContextError,
    "CUDA_ERROR_CONTEXT_ALREADY_IN_USE": InvalidContextError,
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": InvalidContextError,
    "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE": InvalidContextError,
    "CUDA_ERROR_NOT_SUPPORTED": NotSupportedError,
    "CUDA_ERROR_NOT_PERMITTED": NotSupportedError,
    "CUDA_ERROR_UNSUPPORTED_LIMIT": NotSupportedError,
    "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC": NotSupportedError,
    "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY": NotSupportedError,
    "CUDA_ERROR_NOT_FOUND": NotFoundError,
    "CUDA_ERROR_FILE_NOT_FOUND": NotFoundError,
    "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND": NotFoundError,
    "CUDA_ERROR_INVALID_IMAGE": ImageError,
    "CUDA_ERROR_INVALID_SOURCE": ImageError,
    "CUDA_ERROR_INVALID_PTX": ImageError,
    "CUDA_ERROR_NO_BINARY_FOR_GPU": ImageError,
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": ImageError,
    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": ImageError,
    "CUDA_ERROR_JIT_COMPILATION_DISABLED": ImageError,
    "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED": ImageError,
    "CUDA_ERROR_FUNCTION_NOT_LOADED": ImageError,
    "CUDA_ERROR_NOT_READY": NotReadyError,
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": CaptureError,
    "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED": CaptureError,
    "CUDA_ERROR_STREAM_CAPTURE_MERGE": CaptureError,
    "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED": CaptureError,
    "CUDA_ERROR_STREAM_CAPTURE_UNJOINED": CaptureError,
    "CUDA_ERROR_STREAM_CAPTURE_ISOLATION": CaptureError,
    "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT": CaptureError,
    "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD": CaptureError,
    "CUDA_ERROR_CAPTURED_EVENT": CaptureError,
    "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED": PeerAccessError,
    "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED": PeerAccessError,
    "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED": PeerAccessError,
    "CUDA_ERROR_TOO_MANY_PEERS": PeerAccessError,
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": LaunchError,
    "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING": LaunchError,
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": LaunchError,
    "CUDA_ERROR_INVALID_CLUSTER_SIZE": LaunchError,
    "CUDA_ERROR_ILLEGAL_ADDRESS": IllegalAddressError,
    "CUDA_ERROR_MISALIGNED_ADDRESS": MisalignedAddressError,
    "CUDA_ERROR_ASSERT": KernelAssertError,
    "CUDA_ERROR_LAUNCH_TIMEOUT": KernelTimeoutError,
    "CUDA_ERROR_TIMEOUT": KernelTimeoutError,
    "CUDA_ERROR_LAUNCH_FAILED": KernelFaultError,
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": KernelFaultError,
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": KernelFaultError,
    "CUDA_ERROR_INVALID_PC": KernelFaultError,
    "CUDA_ERROR_HARDWARE_STACK_ERROR": KernelFaultError,
    "CUDA_ERROR_ECC_UNCORRECTABLE": KernelFaultError,
    "CUDA_ERROR_NVLINK_UNCORRECTABLE": KernelFaultError,
    "CUDA_ERROR_CONTAINED": KernelFaultError,
    "CUDA_ERROR_TENSOR_MEMORY_LEAK": KernelFaultError,
    "CUDA_ERROR_MPS_CLIENT_TERMINATED": KernelFaultError,
    "CUDA_ERROR_EXTERNAL_DEVICE": KernelFaultError,
}


def check(result: tuple[Any, ...]) -> Any:
    """Unwrap the result tuple of any `cuda.bindings` driver, runtime or NVRTC call.

    Returns nothing, the value, or a tuple of the values behind the status; raises the class of the
    tree above that belongs to a status other than success.
    """
    if not isinstance(result, tuple) or not result or not hasattr(result[0], "name"):
        raise arguments.wrong_type("check", "result", "the tuple that a call of cuda.bindings returned", result)
    if result[0]:
        raise failure(result[0])
    count = len(result)
    if count == 2:
        return result[1]
    return None if count == 1 else result[1:]


def failure(status: Any, call: str = "", detail: str = "") -> CudaError:
    """Make the exception for a status: its class, the driver's own text, the remedy or the blame."""
    name = status.name
    kind: type[CudaError]
    if name.startswith("NVRTC_"):
        kind, text = NvrtcError, _nvrtc_text(status)
    else:
        name, text = _driver_name_and_text(status)
        kind = _BY_STATUS.get(name, CudaError)
    message = f"{call}: {text} ({status.name})" if call else f"{text} ({status.name})"
    if detail:
        message += f". {detail}"
    if issubclass(kind, KernelFaultError):
        message += _blame()
    else:
        message += _report()
    return kind(message, status=status, call=call)


def _driver_name_and_text(status: Any) -> tuple[str, str]:
    from cuda.bindings import driver as enums  # not at import: it costs more than all of this package

    from . import _driver

    try:
        result = enums.CUresult(int(status))
    except ValueError:  # a status of the runtime alone, such as cudaErrorMissingConfiguration
        return status.name, status.name
    name = result.name
    lookup = _driver.raw.cuGetErrorString(result)
    text = lookup[1].decode() if not lookup[0] and lookup[1] else name
    return name, text


def _nvrtc_text(status: Any) -> str:
    from cuda.bindings import nvrtc

    lookup = nvrtc.nvrtcGetErrorString(status)
    return lookup[1].decode() if not lookup[0] else str(status.name)


def _report() -> str:
    from . import _driver

    report = _driver.take_report()
    return f"\n{report}" if report else ""


def _blame() -> str:
    from . import debugging

    return _report() or debugging.blame()

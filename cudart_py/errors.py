"""The exceptions of this package, as one tree.

    CudaError
    ├── NoDeviceError                           no driver, or no device
    ├── InvalidValueError       (ValueError)    an argument that the driver refuses
    ├── InvalidHandleError      (ValueError)    a handle that is not one, or no longer
    ├── InvalidContextError                     no context, a destroyed one, another's
    ├── OutOfMemoryError        (MemoryError)   device, pinned or managed memory
    ├── NotSupportedError       (NotImplementedError)
    ├── NotFoundError           (LookupError)   a kernel, variable or file that does not exist
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

The exception in brackets is one of Python's, which an `except` may name instead.
"""

from __future__ import annotations

from typing import Any

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
    "SimulatorWarning",
]
__dir__ = __all__.copy  # without private names and imports


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
    """An argument that the driver refuses: CUDA_ERROR_INVALID_VALUE and related statuses."""


class InvalidHandleError(CudaError, ValueError):
    """A handle that is not valid, or no longer: CUDA_ERROR_INVALID_HANDLE."""


class InvalidContextError(CudaError):
    """No current context, a destroyed one, or one of another device."""


class OutOfMemoryError(CudaError, MemoryError):
    """An allocation that failed because memory ran out; `requested`, `free` and `total` are bytes, None if unknown."""

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
    """A kernel, variable or file that does not exist: CUDA_ERROR_NOT_FOUND."""

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
    new process recovers. On the simulator `cuda.reset()` starts afresh in the same one.
    """


class IllegalAddressError(KernelFaultError):
    """A load or store outside every allocation: CUDA_ERROR_ILLEGAL_ADDRESS."""


class MisalignedAddressError(KernelFaultError):
    """An address that is not a multiple of its access's width: CUDA_ERROR_MISALIGNED_ADDRESS."""


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


class SimulatorWarning(UserWarning):
    """A mistake in a kernel that hardware hides: a race, a read of unwritten memory, a barrier that threads miss.

    The launch's results are what they would be without the check. `cuda.sanitizer("error")` makes it an exception.
    """

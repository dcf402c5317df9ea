"""The exceptions of this package, as one tree.

    CudaError
    ├── NoDeviceError                           no driver, or no device
    ├── InvalidValueError       (ValueError)    an argument that the driver rejects
    ├── InvalidHandleError      (ValueError)    a handle that is not valid, or no longer valid
    ├── InvalidContextError                     no context, or the wrong one
    ├── OutOfMemoryError        (MemoryError)   device, pinned or managed memory
    ├── NotSupportedError       (NotImplementedError)
    ├── NotFoundError           (LookupError)   a kernel, variable or file that does not exist
    ├── ImageError                              a cubin, PTX or fatbin that cannot be loaded
    ├── NotReadyError                           work that has not finished yet
    ├── EventNotRecordedError   (ValueError)    an event that was never recorded
    ├── EventTimingError        (ValueError)    a request for the time of an event created without timing
    ├── CaptureError                            an operation not allowed while a stream is being captured
    ├── PeerAccessError                         peer access missing, or enabled twice
    ├── LaunchError                             a launch that the driver rejected
    ├── KernelFaultError                        a kernel that failed; the context is lost
    │   ├── IllegalAddressError
    │   ├── MisalignedAddressError
    │   ├── KernelAssertError                   a device-side assert
    │   └── KernelTimeoutError
    ├── NvrtcError                              a failed call to NVRTC, the run-time compiler
    │   └── CompileError                        CUDA C++ that cannot be compiled; shows the log and the source lines
    └── LinkError                               images that cannot be linked; has the linker's log

The exception in parentheses is a built-in one that the class also inherits from.
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

    `status` is the enum that the call returned (CUresult, cudaError_t, nvrtcResult, ...), and `call` is the name of the
    function, or an empty string if the name is not known. `explanation` is what the driver has logged about the
    failure (cuLogsDumpToMemory), one message per line. It is an empty string if the driver has logged nothing, and
    with drivers older than CUDA 12.9. The message contains it.
    """

    def __init__(self, message: str, *, status: Any = None, call: str = "", explanation: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.call = call
        self.explanation = explanation


class NoDeviceError(CudaError):
    """No usable driver or no device: CUDA_ERROR_NO_DEVICE and other failures of cuInit."""


class InvalidValueError(CudaError, ValueError):
    """An argument that the driver rejects: CUDA_ERROR_INVALID_VALUE and related statuses."""


class InvalidHandleError(CudaError, ValueError):
    """A handle that is not valid, or no longer valid: CUDA_ERROR_INVALID_HANDLE."""


class InvalidContextError(CudaError):
    """No current context, or one that was destroyed or belongs to another device."""


class OutOfMemoryError(CudaError, MemoryError):
    """An allocation that failed for lack of memory.

    `requested`, `free` and `total` are in bytes, or None if they are not known.
    """

    def __init__(
        self,
        message: str,
        *,
        status: Any = None,
        call: str = "",
        explanation: str = "",
        requested: int | None = None,
        free: int | None = None,
        total: int | None = None,
    ) -> None:
        super().__init__(message, status=status, call=call, explanation=explanation)
        self.requested = requested
        self.free = free
        self.total = total


class NotSupportedError(CudaError, NotImplementedError):
    """An operation that this driver or device does not support: CUDA_ERROR_NOT_SUPPORTED."""


class NotFoundError(CudaError, LookupError):
    """A kernel, variable or file that does not exist: CUDA_ERROR_NOT_FOUND."""


class ImageError(CudaError):
    """A cubin, PTX or fatbin that cannot be loaded on this device."""


class NotReadyError(CudaError):
    """A request for the result of work that has not finished yet: CUDA_ERROR_NOT_READY."""


class EventNotRecordedError(CudaError, ValueError):
    """A wait for an event that was never recorded, or a request for its time: CUDA_ERROR_INVALID_HANDLE."""


class EventTimingError(CudaError, ValueError):
    """A request for the time of an event created with timing=False: CUDA_ERROR_INVALID_HANDLE."""


class CaptureError(CudaError):
    """An operation that is not allowed while a stream is being captured: CUDA_ERROR_STREAM_CAPTURE_*."""


class PeerAccessError(CudaError):
    """Peer access that is missing, impossible or already enabled."""


class LaunchError(CudaError):
    """A launch that the driver rejected. The kernel has not run, and the context is still valid."""


class KernelFaultError(CudaError):
    """A kernel that failed while it was running.

    The error is sticky: every later call in this context fails with it. On a GPU, only a new process can recover; on
    the simulator, `cuda.reset()` recovers in the same process.
    """


class IllegalAddressError(KernelFaultError):
    """A load or store outside every allocation: CUDA_ERROR_ILLEGAL_ADDRESS."""


class MisalignedAddressError(KernelFaultError):
    """An address that is not a multiple of the size of the access: CUDA_ERROR_MISALIGNED_ADDRESS."""


class KernelAssertError(KernelFaultError):
    """A device-side assert that failed: CUDA_ERROR_ASSERT."""


class KernelTimeoutError(KernelFaultError):
    """A kernel that ran too long: CUDA_ERROR_LAUNCH_TIMEOUT."""


class NvrtcError(CudaError):
    """An NVRTC call that failed."""


class CompileError(NvrtcError):
    """CUDA C++ or NVVM IR that cannot be compiled; `log` is the compiler's log."""

    def __init__(self, message: str, *, status: Any = None, call: str = "", log: str = "") -> None:
        super().__init__(message, status=status, call=call)
        self.log = log


class LinkError(CudaError):
    """Images that cannot be linked; `log` is the linker's log."""

    def __init__(self, message: str, *, status: Any = None, call: str = "", log: str = "") -> None:
        super().__init__(message, status=status, call=call)
        self.log = log


class SimulatorWarning(UserWarning):
    """A mistake in a kernel that a GPU does not report: a race, a read of unwritten memory or a missed barrier.

    Checking does not change the results of the launch. `cuda.sanitizer("error")` turns the warning into an exception.
    """

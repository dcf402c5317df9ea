"""Unwrapping: the result of a CUDA call becomes its value, or the exception for its status.

All code that calls a driver raises its errors through this module. An error message has the driver's own text, followed
by the driver's explanation and, for a kernel that failed and that the explanation does not name, by the launches that
may have failed.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..base import arguments
from ..compilation.programs import nvrtc_failure
from . import enums
from .backend import chosen, in_use
from .launch_log import blame

# Keyed by the driver's names. The runtime's codes have the same numbers as the driver's. A status that is missing here
# becomes a plain CudaError on purpose: a test lists all of these, so a new status is noticed.
_BY_STATUS: dict[str, type[errors.CudaError]] = {
    "CUDA_ERROR_INVALID_VALUE": errors.InvalidValueError,
    "CUDA_ERROR_INVALID_DEVICE": errors.InvalidValueError,
    "CUDA_ERROR_INVALID_RESOURCE_TYPE": errors.InvalidValueError,
    "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION": errors.InvalidValueError,
    "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED": errors.InvalidValueError,
    "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED": errors.InvalidValueError,
    "CUDA_ERROR_ALREADY_MAPPED": errors.InvalidValueError,
    "CUDA_ERROR_ALREADY_ACQUIRED": errors.InvalidValueError,
    "CUDA_ERROR_NOT_MAPPED": errors.InvalidValueError,
    "CUDA_ERROR_NOT_MAPPED_AS_ARRAY": errors.InvalidValueError,
    "CUDA_ERROR_NOT_MAPPED_AS_POINTER": errors.InvalidValueError,
    "CUDA_ERROR_INVALID_HANDLE": errors.InvalidHandleError,
    "CUDA_ERROR_OUT_OF_MEMORY": errors.OutOfMemoryError,
    "CUDA_ERROR_NOT_INITIALIZED": errors.NoDeviceError,
    "CUDA_ERROR_DEINITIALIZED": errors.NoDeviceError,
    "CUDA_ERROR_STUB_LIBRARY": errors.NoDeviceError,
    "CUDA_ERROR_DEVICE_UNAVAILABLE": errors.NoDeviceError,
    "CUDA_ERROR_NO_DEVICE": errors.NoDeviceError,
    "CUDA_ERROR_DEVICE_NOT_LICENSED": errors.NoDeviceError,
    "CUDA_ERROR_SYSTEM_NOT_READY": errors.NoDeviceError,
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": errors.NoDeviceError,
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": errors.NoDeviceError,
    "CUDA_ERROR_INVALID_CONTEXT": errors.InvalidContextError,
    "CUDA_ERROR_CONTEXT_ALREADY_CURRENT": errors.InvalidContextError,
    "CUDA_ERROR_CONTEXT_ALREADY_IN_USE": errors.InvalidContextError,
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": errors.InvalidContextError,
    "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE": errors.InvalidContextError,
    "CUDA_ERROR_NOT_SUPPORTED": errors.NotSupportedError,
    "CUDA_ERROR_NOT_PERMITTED": errors.NotSupportedError,
    "CUDA_ERROR_UNSUPPORTED_LIMIT": errors.NotSupportedError,
    "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC": errors.NotSupportedError,
    "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY": errors.NotSupportedError,
    "CUDA_ERROR_NOT_FOUND": errors.NotFoundError,
    "CUDA_ERROR_FILE_NOT_FOUND": errors.NotFoundError,
    "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND": errors.NotFoundError,
    "CUDA_ERROR_INVALID_IMAGE": errors.ImageError,
    "CUDA_ERROR_INVALID_SOURCE": errors.ImageError,
    "CUDA_ERROR_INVALID_PTX": errors.ImageError,
    "CUDA_ERROR_NO_BINARY_FOR_GPU": errors.ImageError,
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": errors.ImageError,
    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": errors.ImageError,
    "CUDA_ERROR_JIT_COMPILATION_DISABLED": errors.ImageError,
    "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED": errors.ImageError,
    "CUDA_ERROR_FUNCTION_NOT_LOADED": errors.ImageError,
    "CUDA_ERROR_NOT_READY": errors.NotReadyError,
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": errors.CaptureError,
    "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED": errors.CaptureError,
    "CUDA_ERROR_STREAM_CAPTURE_MERGE": errors.CaptureError,
    "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED": errors.CaptureError,
    "CUDA_ERROR_STREAM_CAPTURE_UNJOINED": errors.CaptureError,
    "CUDA_ERROR_STREAM_CAPTURE_ISOLATION": errors.CaptureError,
    "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT": errors.CaptureError,
    "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD": errors.CaptureError,
    "CUDA_ERROR_CAPTURED_EVENT": errors.CaptureError,
    "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED": errors.PeerAccessError,
    "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED": errors.PeerAccessError,
    "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED": errors.PeerAccessError,
    "CUDA_ERROR_TOO_MANY_PEERS": errors.PeerAccessError,
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": errors.LaunchError,
    "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING": errors.LaunchError,
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": errors.LaunchError,
    "CUDA_ERROR_INVALID_CLUSTER_SIZE": errors.LaunchError,
    "CUDA_ERROR_ILLEGAL_ADDRESS": errors.IllegalAddressError,
    "CUDA_ERROR_MISALIGNED_ADDRESS": errors.MisalignedAddressError,
    "CUDA_ERROR_ASSERT": errors.KernelAssertError,
    "CUDA_ERROR_LAUNCH_TIMEOUT": errors.KernelTimeoutError,
    "CUDA_ERROR_TIMEOUT": errors.KernelTimeoutError,
    "CUDA_ERROR_LAUNCH_FAILED": errors.KernelFaultError,
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": errors.KernelFaultError,
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": errors.KernelFaultError,
    "CUDA_ERROR_INVALID_PC": errors.KernelFaultError,
    "CUDA_ERROR_HARDWARE_STACK_ERROR": errors.KernelFaultError,
    "CUDA_ERROR_ECC_UNCORRECTABLE": errors.KernelFaultError,
    "CUDA_ERROR_NVLINK_UNCORRECTABLE": errors.KernelFaultError,
    "CUDA_ERROR_CONTAINED": errors.KernelFaultError,
    "CUDA_ERROR_TENSOR_MEMORY_LEAK": errors.KernelFaultError,
    "CUDA_ERROR_MPS_CLIENT_TERMINATED": errors.KernelFaultError,
    "CUDA_ERROR_EXTERNAL_DEVICE": errors.KernelFaultError,
}

# Remedies for failed captures, for which the driver's text is only the name of the status, and for PTX that is too new.
_REMEDIES = {
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": (
        "The PTX comes from a compiler that is newer than the driver: load machine code, which compile makes by "
        "default, or update the driver"
    ),
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": (
        "A stream that is being captured only records its work, so nothing can wait for it and some calls are not "
        "allowed: make this call before or after the capture, or pass stream= if it is a copy of pinned memory"
    ),
    "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED": (
        "An earlier call that is not allowed during a capture has invalidated it: the error of that call names it"
    ),
    "CUDA_ERROR_STREAM_CAPTURE_MERGE": (
        "The two streams record into different graphs, which an event cannot join: capture one of them, and let the "
        "other wait for one of its events"
    ),
    "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED": "This stream did not begin the capture: end it in the stream that did",
    "CUDA_ERROR_STREAM_CAPTURE_UNJOINED": (
        "Another stream joined the capture by waiting for one of its events, and the captured stream does not wait for "
        "its work: call stream.wait(other) before the capture ends"
    ),
    "CUDA_ERROR_STREAM_CAPTURE_ISOLATION": (
        "The captured stream would depend on work outside the capture: wait for that work before the capture begins"
    ),
    "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT": (
        "Work in the legacy default stream would wait for a blocking stream that is being captured: put the work "
        "into another stream, or capture a Stream(non_blocking=True)"
    ),
    "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD": (
        "Another thread began this capture: end it there, or begin it with mode='relaxed'"
    ),
    "CUDA_ERROR_CAPTURED_EVENT": (
        "The event was recorded during a capture, where it only marks a position in the graph: record it "
        "after the capture, or in the stream that launches the graph"
    ),
}


def check(result: tuple[Any, ...]) -> Any:
    """Unwrap the result tuple of any `cuda.bindings` driver, runtime or NVRTC call.

    Returns the value that follows the status, a tuple if there are several values, or None if there are none. If the
    status is not success, raises the corresponding exception from `errors`. Raises TypeError for anything but a result
    tuple.
    """
    if not isinstance(result, tuple) or not result or not hasattr(result[0], "name"):
        raise arguments.wrong_type("check", "result", "the tuple that a call of cuda.bindings returned", result)
    if result[0]:
        raise failure(result[0])
    count = len(result)
    if count == 2:
        return result[1]
    return None if count == 1 else result[1:]


def failure(status: Any, call: str = "", detail: str = "") -> errors.CudaError:
    """Return the exception for a status, with the driver's text and explanation, a remedy, and the suspected launches.

    `call` is the name of the function that returned the status, and `detail` is a sentence that the caller adds.
    """
    if status.name.startswith("NVRTC_"):
        return nvrtc_failure(status, call)
    name, text = _name_and_text(status)
    kind = _BY_STATUS.get(name, errors.CudaError)
    message = f"{call}: {text} ({status.name})" if call else f"{text} ({status.name})"
    for sentence in (detail, _REMEDIES.get(name, "")):
        if sentence:
            message += f". {sentence}"
    backend = in_use()
    explanation = "" if backend is None else backend.explanation(int(status))
    if explanation:
        message += f"\n{explanation}"
    if issubclass(kind, errors.KernelFaultError) and not (explanation and backend and backend.names_kernels):
        message += blame()
    return kind(message, status=status, call=call, explanation=explanation)


def _name_and_text(status: Any) -> tuple[str, str]:
    """Return the name of the driver status with the same number, and the driver's text for it."""
    try:
        result = enums.CUresult(int(status))
    except ValueError:  # a status that only the runtime has, such as cudaErrorMissingConfiguration
        return status.name, status.name
    missing, text = chosen().functions.cuGetErrorString(result)
    return result.name, result.name if missing or not text else text.decode()

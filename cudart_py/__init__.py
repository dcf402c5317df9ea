"""Thin, typed, Pythonic wrappers over the CUDA driver, the CUDA runtime's vocabulary and NVRTC.

    import cudart_py as cuda

    module = cuda.compile(Path("saxpy.cu"))
    x = cuda.to_device(host_array)
    module["saxpy"][grid, block](2.0, x, y, n)
    result = y.to_host()

Importing this package initialises nothing; the driver is chosen at first use.
"""

from __future__ import annotations

from ._driver import capabilities
from .array import DeviceArray, empty, empty_like, empty_pitched, full, to_device, zeros
from .copies import memcpy, memcpy2d
from .debugging import debug
from .device import Device, current_device, devices, driver_version
from .errors import (
    CaptureError,
    CompileError,
    CudaError,
    EventNotRecordedError,
    EventTimingError,
    IllegalAddressError,
    ImageError,
    InvalidContextError,
    InvalidHandleError,
    InvalidValueError,
    KernelAssertError,
    KernelFaultError,
    KernelTimeoutError,
    LaunchError,
    LinkError,
    MisalignedAddressError,
    NoDeviceError,
    NotFoundError,
    NotReadyError,
    NotSupportedError,
    NvrtcError,
    OutOfMemoryError,
    PeerAccessError,
    check,
)
from .event import Event, Timer, timed
from .fills import memset
from .host_memory import device_pointer, pinned_empty
from .kernel import Kernel, KernelAttributes
from .launch import BoundLaunch, Launch
from .module import Module, compile, load
from .pointer import Pointer
from .properties import DeviceProperties, MemoryInfo
from .stream import Stream, legacy_default, per_thread_default

__all__ = [
    "BoundLaunch",
    "CaptureError",
    "CompileError",
    "CudaError",
    "Device",
    "DeviceArray",
    "DeviceProperties",
    "Event",
    "EventNotRecordedError",
    "EventTimingError",
    "IllegalAddressError",
    "ImageError",
    "InvalidContextError",
    "InvalidHandleError",
    "InvalidValueError",
    "Kernel",
    "KernelAssertError",
    "KernelAttributes",
    "KernelFaultError",
    "KernelTimeoutError",
    "Launch",
    "LaunchError",
    "LinkError",
    "MemoryInfo",
    "MisalignedAddressError",
    "Module",
    "NoDeviceError",
    "NotFoundError",
    "NotReadyError",
    "NotSupportedError",
    "NvrtcError",
    "OutOfMemoryError",
    "PeerAccessError",
    "Pointer",
    "Stream",
    "Timer",
    "capabilities",
    "check",
    "compile",
    "current_device",
    "debug",
    "device_pointer",
    "devices",
    "driver_version",
    "empty",
    "empty_like",
    "empty_pitched",
    "full",
    "legacy_default",
    "load",
    "memcpy",
    "memcpy2d",
    "memset",
    "per_thread_default",
    "pinned_empty",
    "timed",
    "to_device",
    "zeros",
]

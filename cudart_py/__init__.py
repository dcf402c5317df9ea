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
from .addresses import PointerAttributes, pointer_attributes
from .array import DeviceArray
from .cache import CacheInfo, CacheWarning, cache_info, clear_cache
from .checking import SimulatorWarning, checks
from .copies import memcpy, memcpy2d, memcpy3d, memcpy_peer
from .creation import empty, empty_like, empty_pitched, full, to_device, zeros
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
from .graph import ExecutableGraph, Graph
from .host_memory import RegisteredMemory, device_pointer, pinned_empty, register_host
from .interop import as_device_array, from_dlpack
from .kernel import Kernel, KernelAttributes
from .launch import BoundLaunch, Launch
from .managed import advise, managed_empty, prefetch
from .module import Module, compile, link, load
from .nvtx import nvtx_range
from .occupancy import Occupancy, occupancy
from .pointer import Pointer
from .pools import MemoryPool
from .profiling import LaunchProfile, LineProfile, Profile, profile
from .program import Program
from .properties import DeviceProperties, MemoryInfo
from .staging import release_staging
from .stream import Stream, legacy_default, per_thread_default
from .texture import Texture, TextureOptions

__all__ = [
    "BoundLaunch",
    "CacheInfo",
    "CacheWarning",
    "CaptureError",
    "CompileError",
    "CudaError",
    "Device",
    "DeviceArray",
    "DeviceProperties",
    "Event",
    "EventNotRecordedError",
    "EventTimingError",
    "ExecutableGraph",
    "Graph",
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
    "LaunchProfile",
    "LineProfile",
    "LinkError",
    "MemoryInfo",
    "MemoryPool",
    "MisalignedAddressError",
    "Module",
    "NoDeviceError",
    "NotFoundError",
    "NotReadyError",
    "NotSupportedError",
    "NvrtcError",
    "Occupancy",
    "OutOfMemoryError",
    "PeerAccessError",
    "Pointer",
    "PointerAttributes",
    "Profile",
    "Program",
    "RegisteredMemory",
    "SimulatorWarning",
    "Stream",
    "Texture",
    "TextureOptions",
    "Timer",
    "advise",
    "as_device_array",
    "cache_info",
    "capabilities",
    "check",
    "checks",
    "clear_cache",
    "compile",
    "current_device",
    "debug",
    "device_pointer",
    "devices",
    "driver_version",
    "empty",
    "empty_like",
    "empty_pitched",
    "from_dlpack",
    "full",
    "legacy_default",
    "link",
    "load",
    "managed_empty",
    "memcpy",
    "memcpy2d",
    "memcpy3d",
    "memcpy_peer",
    "memset",
    "nvtx_range",
    "occupancy",
    "per_thread_default",
    "pinned_empty",
    "pointer_attributes",
    "prefetch",
    "profile",
    "register_host",
    "release_staging",
    "timed",
    "to_device",
    "zeros",
]

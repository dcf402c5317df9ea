"""Thin, typed, Pythonic wrappers over the CUDA driver, the CUDA runtime's vocabulary and NVRTC.

    import cudart_py as cuda

    module = cuda.compile(Path("saxpy.cu"))
    x = cuda.to_device(host_array)
    module["saxpy"][grid, block](2.0, x, y, n)
    result = y.to_host()

Importing this package initialises nothing; the driver is chosen at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .compilation.cache import CacheInfo, CacheWarning, cache_info, clear_cache
from .compilation.images import CompiledImage, Resources, Variable
from .compilation.programs import Program
from .compilation.signatures import Parameter, Signature
from .context.debugging import debug
from .context.device import Device, current_device, devices, driver_version
from .context.occupancy import MULTIPROCESSORS, Occupancy, occupancy
from .context.properties import DeviceProperties, MemoryInfo
from .context.resetting import reset
from .driver.sanitizer import sanitizer
from .driver.seam import capabilities, raw
from .driver.unwrap import check
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
    SimulatorWarning,
)
from .launch.function import KernelAttributes
from .launch.kernel import Kernel
from .launch.launch import BoundLaunch, Launch
from .launch.lazy import LazyModule
from .launch.loading import compile, compile_image, link, load
from .launch.module import Module
from .memory.addresses import PointerAttributes
from .memory.array import DeviceArray
from .memory.copies import memcpy, memcpy2d, memcpy3d, memcpy_peer, memset
from .memory.creation import empty, empty_like, empty_pitched, full, to_device, zeros, zeros_like
from .memory.graph_memory import graph_empty
from .memory.host_memory import RegisteredMemory, device_pointer, pinned_empty, register_host
from .memory.interop import as_device_array, from_dlpack
from .memory.ipc import IpcArrayHandle, IpcEventHandle, ipc_empty, ipc_handle
from .memory.managed import ManagedAttributes, advise, managed_attributes, managed_empty, prefetch
from .memory.node_work import NodeCopy, NodeFill
from .memory.pointers import pointer_attributes
from .memory.pools import MemoryPool
from .memory.preview import ArrayPreview
from .memory.staging import release_staging
from .memory.textures.cuda_array import CudaArray
from .memory.textures.surface import Surface
from .memory.textures.texture import Texture, TextureOptions
from .nvtx import nvtx_range
from .pointer import Pointer
from .profiling.profiler import profiler_range, profiler_start, profiler_stop
from .profiling.profiles import LaunchProfile, LineProfile, Profile, profile
from .streams.conditionals import Condition
from .streams.event import Event, Timer, timed
from .streams.graph import ExecutableGraph, Graph
from .streams.graph_nodes import GraphNode
from .streams.stream import Stream, legacy_default, per_thread_default
from .version import __version__

__all__ = [
    "MULTIPROCESSORS",
    "ArrayPreview",
    "BoundLaunch",
    "CacheInfo",
    "CacheWarning",
    "CaptureError",
    "CompileError",
    "CompiledImage",
    "Condition",
    "CudaArray",
    "CudaError",
    "Device",
    "DeviceArray",
    "DeviceProperties",
    "Event",
    "EventNotRecordedError",
    "EventTimingError",
    "ExecutableGraph",
    "Graph",
    "GraphNode",
    "IllegalAddressError",
    "ImageError",
    "InvalidContextError",
    "InvalidHandleError",
    "InvalidValueError",
    "IpcArrayHandle",
    "IpcEventHandle",
    "Kernel",
    "KernelAssertError",
    "KernelAttributes",
    "KernelFaultError",
    "KernelTimeoutError",
    "Launch",
    "LaunchError",
    "LaunchProfile",
    "LazyModule",
    "LineProfile",
    "LinkError",
    "ManagedAttributes",
    "MemoryInfo",
    "MemoryPool",
    "MisalignedAddressError",
    "Module",
    "NoDeviceError",
    "NodeCopy",
    "NodeFill",
    "NotFoundError",
    "NotReadyError",
    "NotSupportedError",
    "NvrtcError",
    "Occupancy",
    "OutOfMemoryError",
    "Parameter",
    "PeerAccessError",
    "Pointer",
    "PointerAttributes",
    "Profile",
    "Program",
    "RegisteredMemory",
    "Resources",
    "Signature",
    "SimulatorWarning",
    "Stream",
    "Surface",
    "Texture",
    "TextureOptions",
    "Timer",
    "Variable",
    "__version__",
    "advise",
    "as_device_array",
    "cache_info",
    "capabilities",
    "check",
    "clear_cache",
    "compile",
    "compile_image",
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
    "graph_empty",
    "ipc_empty",
    "ipc_handle",
    "legacy_default",
    "link",
    "load",
    "managed_attributes",
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
    "profiler_range",
    "profiler_start",
    "profiler_stop",
    "raw",
    "register_host",
    "release_staging",
    "reset",
    "sanitizer",
    "timed",
    "to_device",
    "zeros",
    "zeros_like",
]

if not TYPE_CHECKING:  # a type checker would take any name for one of the package's
    from .hints import absent as __getattr__  # noqa: F401  # Python calls it
    from .hints import public_names as __dir__  # noqa: F401  # as above

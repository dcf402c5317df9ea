"""Thin, typed, Pythonic wrappers around the CUDA driver and NVRTC, with the vocabulary of the CUDA runtime.

    import cudart_py as cuda

    module = cuda.compile(Path("saxpy.cu"))
    x = cuda.to_device(host_array)
    module["saxpy"][grid, block](2.0, x, y, n)
    result = y.to_host()

Importing this package does not initialise CUDA; the driver is chosen on first use. Less common names are in the
submodules `batches`, `errors`, `graphs`, `images`, `ipc`, `profiling`, `tensor_maps`, `textures` and `virtual`. The
submodules `libraries`, `benchmark`, `checkpoints`, `coredumps`, `green_contexts` and `multicast` must be imported
explicitly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import version as version  # first, since it rejects a Python that cannot parse the others

# isort: split
from . import errors, tensor_maps, textures
from .base.pointer import Pointer
from .compilation.images import KernelAttributes
from .context.debugging import debug
from .context.device import Device, current_device, devices, driver_version
from .context.occupancy import MULTIPROCESSORS, Occupancy, occupancy
from .context.properties import DeviceProperties, MemoryInfo
from .context.resetting import reset
from .copies import memcpy, memcpy2d, memcpy3d, memcpy_peer, memset
from .driver.calls import raw
from .driver.capabilities import capabilities
from .driver.sanitizer import sanitizer
from .driver.unwrap import check
from .errors import CompileError, CudaError, OutOfMemoryError
from .foreign.pointers import pointer_attributes
from .foreign.wrapping import as_device_array, from_dlpack
from .host.nvtx import nvtx_range
from .launch.kernel import Kernel
from .launch.launch import BoundLaunch, Launch
from .launch.lazy import LazyModule
from .launch.loading import compile, link, load
from .launch.module import Module
from .memory.addresses import PointerAttributes
from .memory.array import DeviceArray
from .memory.creation import empty, empty_like, empty_pitched, full, to_device, zeros, zeros_like
from .memory.host_memory import RegisteredMemory, device_pointer, pinned_empty, register_host
from .memory.managed import ManagedAttributes, advise, managed_attributes, managed_empty, prefetch
from .memory.pools import MemoryPool
from .memory.staging import release_staging
from .streams.event import Event, Timer, timed
from .streams.stream import Stream, legacy_default, per_thread_default
from .version import __version__

__all__ = [
    "MULTIPROCESSORS",
    "BoundLaunch",
    "CompileError",
    "CudaError",
    "Device",
    "DeviceArray",
    "DeviceProperties",
    "Event",
    "Kernel",
    "KernelAttributes",
    "Launch",
    "LazyModule",
    "ManagedAttributes",
    "MemoryInfo",
    "MemoryPool",
    "Module",
    "Occupancy",
    "OutOfMemoryError",
    "Pointer",
    "PointerAttributes",
    "RegisteredMemory",
    "Stream",
    "Timer",
    "__version__",
    "advise",
    "as_device_array",
    "batches",
    "capabilities",
    "check",
    "compile",
    "current_device",
    "debug",
    "debugger",
    "device_pointer",
    "devices",
    "driver_version",
    "empty",
    "empty_like",
    "empty_pitched",
    "errors",
    "from_dlpack",
    "full",
    "graphs",
    "images",
    "ipc",
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
    "profiling",
    "raw",
    "register_host",
    "release_staging",
    "reset",
    "sanitizer",
    "tensor_maps",
    "textures",
    "timed",
    "to_device",
    "virtual",
    "zeros",
    "zeros_like",
]


def load_ipython_extension(shell: Any) -> None:
    """Register the magics `%%cuda`, `%cuda_run` and `%cuda_time` in IPython, which calls this for `%load_ext`."""
    from .notebook.magics import register  # imported late: only notebooks need it

    register(shell)


if TYPE_CHECKING:
    from . import batches, graphs, images, ipc, profiling, virtual
    from .debugging.opening import debugger
    from .profiling.profiles import profile
else:  # a type checker would accept any name as one of the package's
    from .hints import late_or_absent as __getattr__  # noqa: F401  # Python calls it
    from .hints import public_names as __dir__  # noqa: F401  # as above

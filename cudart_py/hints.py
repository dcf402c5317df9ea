"""Hints for people who type a name or an operator of CuPy, cuda.core, numba, PyCUDA, PyTorch or NumPy.

For the module and for each class, `HINTS` maps such a name to the packages that have it and to what to write instead.
The pages in docs/coming-from have one row per name of their package, with the same text. `OPERATORS` lists the
operators that a class refuses.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from inspect import getattr_static
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

# The names of the package that are imported on first use, since few programs need them: submodules, and functions with
# their modules.
_LATE_SUBMODULES = ("batches", "graphs", "green_contexts", "images", "ipc", "profiling", "virtual")
_LATE_FUNCTIONS = {"debugger": "debugging.opening", "profile": "profiling.profiles"}
# The submodules that need no import of their own. Users may look for their names at the top level.
_SUBMODULES = ("errors", "tensor_maps", "textures", *_LATE_SUBMODULES)
# The submodules that must be imported explicitly.
_IMPORTED_BY_NAME = ("benchmark", "checkpoints", "coredumps", "interop", "libraries")
KERNEL = "the kernel, or, on a GPU, give the array to CuPy"

# Fields of cudaDeviceProp in C++, with the expressions that give their values here.
_DEVICE_FIELDS = {
    "ECCEnabled": "properties.ecc_enabled",
    "accessPolicyMaxWindowSize": "properties.max_access_policy_window_size",
    "asyncEngineCount": "properties.async_engine_count",
    "canMapHostMemory": "properties.can_map_host_memory",
    "clockRate": "properties.clock_rate",
    "clusterLaunch": 'attribute("cluster_launch")',
    "computePreemptionSupported": "properties.compute_preemption_supported",
    "concurrentKernels": "properties.concurrent_kernels",
    "concurrentManagedAccess": "properties.concurrent_managed_access",
    "cooperativeLaunch": "properties.cooperative_launch",
    "hostRegisterSupported": "properties.host_register_supported",
    "l2CacheSize": "properties.l2_cache_size",
    "major": "properties.compute_capability[0]",
    "managedMemory": "properties.managed_memory",
    "maxBlocksPerMultiProcessor": "properties.max_blocks_per_sm",
    "maxGridSize": "properties.max_grid_dim",
    "maxTexture1D": 'attribute("maximum_texture1d_width")',
    "maxThreadsDim": "properties.max_block_dim",
    "maxThreadsPerBlock": "properties.max_threads_per_block",
    "maxThreadsPerMultiProcessor": "properties.max_threads_per_sm",
    "memPitch": "properties.max_pitch",
    "memoryBusWidth": "properties.memory_bus_width",
    "memoryClockRate": "properties.memory_clock_rate",
    "memoryPoolsSupported": "properties.memory_pools_supported",
    "minor": "properties.compute_capability[1]",
    "multiProcessorCount": "properties.sm_count",
    "pageableMemoryAccess": "properties.pageable_memory_access",
    "pciBusID": "properties.pci_bus_id",
    "pciDeviceID": 'attribute("pci_device_id")',
    "pciDomainID": 'attribute("pci_domain_id")',
    "persistingL2CacheMaxSize": "properties.max_persisting_l2_cache_size",
    "regsPerBlock": "properties.registers_per_block",
    "regsPerMultiprocessor": "properties.registers_per_sm",
    "reservedSharedMemPerBlock": "properties.reserved_shared_memory_per_block",
    "sharedMemPerBlock": "properties.shared_memory_per_block",
    "sharedMemPerBlockOptin": "properties.shared_memory_per_block_optin",
    "sharedMemPerMultiprocessor": "properties.shared_memory_per_sm",
    "singleToDoublePrecisionPerfRatio": "properties.single_to_double_ratio",
    "streamPrioritiesSupported": "properties.stream_priorities_supported",
    "textureAlignment": "properties.texture_alignment",
    "texturePitchAlignment": "properties.texture_pitch_alignment",
    "totalConstMem": "properties.constant_memory",
    "totalGlobalMem": "properties.total_memory",
    "unifiedAddressing": "properties.unified_addressing",
    "warpSize": "properties.warp_size",
}
_OF_DEVICE = {name: ("", f"device.{write}") for name, write in _DEVICE_FIELDS.items()}

# The letters are packages: c for CuPy, k for cuda.core, n for numba.cuda, p for PyCUDA, t for PyTorch, y for NumPy.
HINTS: dict[str, dict[str, tuple[str, str]]] = {
    "module": {
        # arrays and copies
        "array": ("cty", "cuda.to_device(host)"),
        "asarray": ("cty", "cuda.to_device(host)"),
        "tensor": ("t", "cuda.to_device(host)"),
        "to_gpu": ("p", "cuda.to_device(host)"),
        "gpuarray": ("p", "cuda.to_device(host)"),
        **dict.fromkeys(("In", "InOut", "Out"), ("p", "cuda.to_device(host)")),
        "asnumpy": ("c", "x.to_host()"),
        "to_host": ("", "x.to_host()"),
        "from_device": ("p", "x.to_host()"),
        "arange": ("cty", "cuda.to_device(np.arange(n))"),
        "ones": ("cty", "cuda.full(n, 1.0)"),
        "ones_like": ("cty", "cuda.empty_like(x).fill(1.0)"),
        "full_like": ("cty", "cuda.empty_like(x).fill(1.0)"),
        "eye": ("cty", "cuda.to_device(np.eye(n))"),
        "linspace": ("cty", "cuda.to_device(np.linspace(0, 1, n))"),
        "ndarray": ("", "cuda.DeviceArray"),
        "device_array": ("n", "cuda.empty(n, np.float32)"),
        "device_array_like": ("n", "cuda.empty_like(x)"),
        "alloc": ("", "cuda.empty(nbytes, np.uint8)"),
        "mem_alloc": ("", "cuda.empty(nbytes, np.uint8)"),
        "mem_alloc_pitch": ("p", "cuda.empty_pitched((16, 100), np.float32)"),
        "graph_empty": ("", "cuda.graphs.empty(n, np.float32, stream=stream)"),
        "ipc_empty": ("", "cuda.ipc.empty(n, np.float32)"),
        "ipc_handle": ("", "cuda.ipc.handle(x)"),
        "pinned_array": ("n", "cuda.pinned_empty(n, np.float32)"),
        "empty_pinned": ("c", "cuda.pinned_empty(n, np.float32)"),
        "pagelocked_empty": ("p", "cuda.pinned_empty(n, np.float32)"),
        "alloc_pinned_memory": ("c", "cuda.pinned_empty(n, np.float32)"),
        "get_default_pinned_memory_pool": ("c", 'cuda.MemoryPool(kind="pinned")'),
        "PinnedMemoryPool": ("c", 'cuda.MemoryPool(kind="pinned")'),
        "mapped_array": ("n", "cuda.pinned_empty(n, np.float32, mapped=True)"),
        "mapped": ("", "cuda.pinned_empty(n, np.float32, mapped=True)"),
        "pinned": ("n", "cuda.register_host(host)"),
        "register_host_memory": ("p", "cuda.register_host(host)"),
        "managed_array": ("n", "cuda.managed_empty(n, np.float32)"),
        "malloc_managed": ("c", "cuda.managed_empty(n, np.float32)"),
        "copyto": ("c", "cuda.memcpy(y, x)"),
        "memcpy_htod": ("p", "x.copy_from(host)"),
        "memcpy_htod_async": ("p", "x.copy_from(pinned, stream=stream)"),
        "memcpy_dtoh": ("p", "x.to_host(out=host)"),
        "memcpy_dtoh_async": ("p", "x.to_host(pinned, stream=stream)"),
        "memcpy_dtod": ("p", "cuda.memcpy(y, x)"),
        "memcpy_async": ("", "cuda.memcpy(y, x, stream=stream)"),
        "memset_d32": ("p", "cuda.memset(y, 0)"),
        "as_cuda_array": ("n", "cuda.as_device_array(x)"),
        # memory of a device
        "get_default_memory_pool": ("c", "cuda.MemoryPool.current()"),
        "set_allocator": ("c", "pool.make_current()"),
        "using_allocator": ("c", "cuda.empty(n, np.float32, pool=pool)"),
        "DeviceMemoryPool": ("p", "cuda.MemoryPool()"),
        "empty_cache": ("t", "cuda.MemoryPool.current().trim()"),
        "memory_allocated": ("t", "cuda.MemoryPool.current().used"),
        "max_memory_allocated": ("t", "cuda.MemoryPool.current().used_high"),
        "memory_reserved": ("t", "cuda.MemoryPool.current().reserved"),
        "mem_get_info": ("", "cuda.current_device().memory_info"),
        # devices
        "init": ("", "nothing: the first call initialises CUDA"),
        "autoinit": ("p", "cuda.current_device()"),
        "is_available": ("nt", "len(cuda.devices())"),
        "device_count": ("t", "len(cuda.devices())"),
        "gpus": ("", "cuda.devices()"),
        "detect": ("", "cuda.devices()"),
        "synchronize": ("nt", "cuda.current_device().synchronize()"),
        "select_device": ("n", "cuda.Device(0).set_current()"),
        "set_device": ("t", "cuda.Device(0).set_current()"),
        "Context": ("p", "cuda.Device(0).set_current()"),
        "get_current_device": ("n", "cuda.current_device()"),
        "current_context": ("n", "cuda.current_device()"),
        "get_device_name": ("t", "cuda.current_device().name"),
        "get_device_capability": ("t", "cuda.current_device().compute_capability"),
        "get_device_properties": ("t", "cuda.current_device().properties"),
        # streams, events and graphs
        "stream": ("n", "cuda.Stream()"),
        "default_stream": ("nt", "cuda.legacy_default"),
        "current_stream": ("t", "cuda.legacy_default"),
        "get_current_stream": ("c", "cuda.legacy_default"),
        "external_stream": ("n", "cuda.Stream.borrow(stream.handle)"),
        "ExternalStream": ("c", "cuda.Stream.borrow(stream.handle)"),
        "LEGACY_DEFAULT_STREAM": ("k", "cuda.legacy_default"),
        "PER_THREAD_DEFAULT_STREAM": ("k", "cuda.per_thread_default"),
        "event": ("n", "cuda.Event()"),
        "event_elapsed_time": ("n", "end - start"),
        "get_elapsed_time": ("c", "end - start"),
        "CUDAGraph": ("t", "with stream.capture() as graph: kernel[4, 256, 0, stream](2.0, x, y, n)"),
        # kernels
        "RawModule": ("c", "cuda.compile(source)"),
        "RawKernel": ("c", "cuda.compile(source)[name]"),
        "SourceModule": ("p", "cuda.compile(source)"),
        "DynamicSourceModule": ("p", 'cuda.link([cuda.images.compile_image(source, options=["-rdc=true"])])'),
        "declare_device": ("n", 'cuda.link([cuda.images.compile_image(source, options=["-rdc=true"])])'),
        "jit": ("n", "cuda.compile(source)"),
        "compile_ptx": ("n", "module.ptx"),
        "module_from_buffer": ("p", "cuda.load(module.ptx)"),
        "module_from_file": ("p", "cuda.load(module.ptx)"),
        "ObjectCode": ("k", "cuda.load(module.ptx)"),
        "Linker": ("k", 'cuda.link([cuda.images.compile_image(source, options=["-rdc=true"])])'),
        "LaunchConfig": ("k", "kernel[4, 256, 0, stream](2.0, x, y, n)"),
        "grid": ("n", "in the kernel: int index = blockIdx.x * blockDim.x + threadIdx.x"),
        "gridsize": ("n", "in the kernel: int stride = gridDim.x * blockDim.x"),
        "syncthreads": ("n", "in the kernel: __syncthreads()"),
        "atomic": ("n", "in the kernel: atomicAdd(&x[i], v)"),
        "ElementwiseKernel": ("cp", KERNEL),
        "ReductionKernel": ("cp", KERNEL),
        "vectorize": ("n", KERNEL),
        "reduce": ("n", KERNEL),
        **dict.fromkeys(("argmax", "argmin", "max", "mean", "min", "sort", "sqrt", "sum"), ("cty", KERNEL)),
        "concatenate": ("cy", "cuda.memcpy(z[:n], x)"),
        # libraries and textures
        "matmul": ("cty", "libraries.matmul(a, b)"),
        "dot": ("cty", "libraries.dot(x, y)"),
        "fft": ("cty", "libraries.rfft(x)"),
        "linalg": ("cty", "libraries.solve(a, b)"),
        "random": ("cy", "libraries.normal(size=n)"),
        "texture": ("c", 'cuda.textures.Texture(cuda.empty_pitched((16, 16), np.float32), filter="linear")'),
        # others
        "checks": ("", 'cuda.sanitizer("error")'),
        "manual_seed": ("t", "libraries.Generator(seed=0)"),
        "profile_start": ("n", "cuda.profiling.profiler_start()"),
        "start_profiler": ("p", "cuda.profiling.profiler_start()"),
    },
    "DeviceArray": {
        "get": ("cp", "x.to_host()"),
        "cpu": ("t", "x.to_host()"),
        "numpy": ("t", "x.to_host()"),
        "detach": ("t", "x.to_host()"),
        "copy_to_host": ("n", "x.to_host()"),
        "get_async": ("", "x.to_host(pinned, stream=stream)"),
        "tolist": ("cty", "x.to_host().tolist()"),
        "set": ("c", "x.copy_from(host)"),
        "copy_to_device": ("n", "x.copy_from(host)"),
        "copy_": ("t", "x.copy_from(host)"),
        "copy_to": ("", "cuda.memcpy(y, x)"),
        "set_async": ("", "x.copy_from(pinned, stream=stream)"),
        "cuda": ("t", "cuda.to_device(host)"),
        "fill_": ("t", "x.fill(0)"),
        "zero_": ("t", "x.fill(0)"),
        "data": ("c", "x.pointer"),
        "gpudata": ("p", "x.pointer"),
        "data_ptr": ("t", "x.pointer"),
        "device_ctypes_pointer": ("", "x.pointer"),
        "clone": ("t", "x.copy()"),
        "contiguous": ("t", "x.copy()"),
        "flags": ("y", "x.is_contiguous"),
        "numel": ("t", "x.size"),
        "dim": ("t", "x.ndim"),
        "stride": ("t", "x.strides"),
        "element_size": ("t", "x.itemsize"),
        "alloc_size": ("", "x.nbytes"),
        "flatten": ("cty", "x.reshape(-1)"),
        "ravel": ("cy", "x.reshape(-1)"),
        "get_ipc_handle": ("", "cuda.ipc.handle(x)"),
        "free": ("", "x.close()"),
        **dict.fromkeys(
            (
                *("all", "any", "argmax", "argmin", "astype", "clip", "cumsum", "max", "mean", "min", "prod", "round"),
                *("sort", "std", "sum", "var"),
            ),
            ("cty", KERNEL),
        ),
        "dot": ("cty", "libraries.dot(x, y)"),
    },
    "Device": {
        "sync": ("k", "device.synchronize()"),
        "get_all_devices": ("k", "cuda.devices()"),
        "create_stream": ("k", "cuda.Stream(non_blocking=True)"),
        "create_event": ("k", "cuda.Event(blocking=True)"),
        "allocate": ("", "cuda.empty(n, np.float32, stream=stream)"),
        "default_stream": ("k", "cuda.legacy_default"),
        "use": ("c", "cuda.Device(0).set_current()"),
        "make_context": ("p", "cuda.Device(0).set_current()"),
        "mem_info": ("c", "cuda.Device(0).memory_info"),
        "total_memory": ("", "device.memory_info.total"),
        "get_attribute": ("p", 'device.attribute("warp_size")'),
        "count": ("p", "len(cuda.devices())"),
        "id": ("", "device.ordinal"),
        "reset": ("", "cuda.reset()"),
        **_OF_DEVICE,
    },
    "DeviceProperties": _OF_DEVICE,
    "Module": {
        "get_function": ("cp", "module[name]"),
        "get_kernel": ("k", "module[name]"),
        "get_global": ("cp", 'module.symbol("weights")'),
    },
    "Kernel": {
        "forall": ("n", "kernel[-(-n // 256), 256](2.0, x, y, n)"),
        "num_regs": ("cp", "kernel.attributes.registers"),
        "get_regs_per_thread": ("n", "kernel.attributes.registers"),
        "local_size_bytes": ("p", "kernel.attributes.local_bytes"),
        "inspect_asm": ("n", "module.ptx"),
        "prepare": ("p", "step = kernel[4, 256].bind(2.0, x, y, n)"),
        "prepared_call": ("p", "step = kernel[4, 256].bind(2.0, x, y, n)"),
        "set_attribute": ("p", "kernel.carveout = 50"),
    },
    "Stream": {
        "use": ("c", "kernel[4, 256, 0, stream](2.0, x, y, n)"),
        "sync": ("k", "stream.synchronize()"),
        "from_handle": ("k", "cuda.Stream.borrow(stream.handle)"),
        "create_graph_builder": ("k", "with stream.capture() as graph: kernel[4, 256, 0, stream](2.0, x, y, n)"),
        "null": ("c", "cuda.legacy_default"),
        "ptds": ("c", "cuda.per_thread_default"),
        "ptr": ("", "stream.handle"),
        "cuda_stream": ("t", "stream.handle"),
        "record_event": ("t", "stream.record()"),
        "wait_event": ("ct", "stream.wait(event)"),
        "wait_for_event": ("p", "stream.wait(event)"),
        "wait_stream": ("t", "stream.wait(other)"),
        "query": ("t", "stream.done"),
        "is_done": ("p", "stream.done"),
        "add_callback": ("n", "stream.launch_host_function(lambda: None)"),
        "launch_host_func": ("c", "stream.launch_host_function(lambda: None)"),
        "auto_synchronize": ("n", "stream.synchronize()"),
        "async_done": ("", "await stream"),
        "begin_capture": ("c", "with stream.capture() as graph: kernel[4, 256, 0, stream](2.0, x, y, n)"),
        "end_capture": ("c", "with stream.capture() as graph: kernel[4, 256, 0, stream](2.0, x, y, n)"),
    },
    "Event": {
        "elapsed_time": ("t", "end - start"),
        "time_since": ("p", "end - start"),
        "time_till": ("p", "end - start"),
        "query": ("pt", "event.done"),
        "is_done": ("", "event.done"),
        "sync": ("", "event.synchronize()"),
        "wait": ("t", "stream.wait(event)"),
    },
    "Graph": {
        "launch": ("c", "graph.instantiate().launch(stream)"),
        "upload": ("c", "graph.instantiate().upload(stream)"),
        "replay": ("t", "graph.instantiate().launch(stream)"),
    },
    "MemoryPool": {
        "used_bytes": ("c", "pool.used"),
        "total_bytes": ("c", "pool.reserved"),
        "free_bytes": ("c", "pool.reserved - pool.used"),
        "free_all_blocks": ("c", "pool.trim()"),
        "get_limit": ("c", "pool.max_size"),
        "set_limit": ("c", "cuda.MemoryPool(max_size=2**24)"),
        "malloc": ("c", "cuda.empty(n, np.float32, pool=pool)"),
    },
}


_ONE_VALUE = f"{KERNEL}; float(x) is the value of an array with one element"
_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "and", "or", "xor")
_UNARY_AND_ORDER = ("__neg__", "__pos__", "__abs__", "__invert__", "__lt__", "__le__", "__gt__", "__ge__")

# The operators that each class refuses, keyed by the method that Python calls, with what to write instead.
OPERATORS: dict[str, dict[str, str]] = {
    "DeviceArray": {
        **dict.fromkeys((f"__{way}{name}__" for name in _ARITHMETIC for way in ("", "r")), _ONE_VALUE),
        **dict.fromkeys(_UNARY_AND_ORDER, _ONE_VALUE),
        **dict.fromkeys(("__matmul__", "__rmatmul__"), "libraries.matmul(a, b)"),
        "__round__": "round(float(x), 2)",
    },
}


class _Hint:
    """An attribute that does not exist: accessing it raises an AttributeError that says what to write instead.

    A `__getattr__` of the class could do the same, but would slow down access to every existing attribute.
    """

    def __init__(self, kind: str, name: str) -> None:
        self._kind, self._name = kind, name

    def __get__(self, thing: object, kind: type) -> NoReturn:
        raise _missing(self._kind, self._name, f"{self._kind!r} object")


class _Refusal:
    """The method of an operator that a class does not have: it raises a TypeError that says what to write instead.

    It is not bound to the object, because the message does not depend on the object.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def __call__(self, *operands: object) -> NoReturn:
        raise TypeError(self._text)


def _missing(kind: str, name: str, what: str) -> AttributeError:
    """Return the error that `what`, whose key in `HINTS` is `kind`, has no attribute `name`, with the hint if any."""
    hint = f": write {HINTS[kind][name][1]}" if name in HINTS[kind] else ""
    return AttributeError(f"{what} has no attribute {name!r}{hint}")


def hinted(cls: type[T]) -> type[T]:
    """Make a class in `HINTS` answer other packages' names and operators with errors that say what to write instead."""
    for name in HINTS[cls.__name__]:
        setattr(cls, name, _Hint(cls.__name__, name))
    for name, write in OPERATORS.get(cls.__name__, {}).items():
        setattr(cls, name, _Refusal(f"a {cls.__name__} has no operator {name}: write {write}"))

    def listed(self: T) -> list[str]:
        answered = (_Hint, _Refusal)
        return [name for name in object.__dir__(self) if not isinstance(getattr_static(self, name, None), answered)]

    cls.__dir__ = listed  # type: ignore[assignment]  # its `self` is an instance of `cls`
    return cls


def host_only(kind: str, function: str, instead: str = "") -> TypeError:
    """Return the TypeError for a NumPy function, such as `np.linalg.norm`, that was called with an array on the device.

    `kind` is the class of the array. If `HINTS` has this class, the error also suggests the hint for the function's
    name, the function of this package with that name, or `instead`.
    """
    name = function.rpartition(".")[2]
    if kind not in HINTS:
        instead = ""
    elif name in HINTS["module"]:
        instead = HINTS["module"][name][1]
    elif name in sys.modules[__package__].__all__:
        instead = f"cuda.{name}"
    other_way = f", or {instead}" if instead else ""
    return TypeError(f"{function} takes host arrays, but this is a {kind}: write x.to_host(){other_way}")


def late_or_absent(name: str) -> Any:
    """Import a name of the package on its first use; serves as the package's `__getattr__`.

    Raises AttributeError for a name that the package does not have. The error says where to find names of submodules,
    and equivalents of the CUDA runtime's and driver's functions.
    """
    if name in _LATE_SUBMODULES:
        return import_module(f"{__package__}.{name}")
    if name in _LATE_FUNCTIONS:
        function = getattr(import_module(f"{__package__}.{_LATE_FUNCTIONS[name]}"), name)
        setattr(sys.modules[__package__], name, function)
        return function
    what = f"module {__package__!r}"
    if name in _IMPORTED_BY_NAME:
        raise AttributeError(f"{what} has no attribute {name!r} yet: write from cudart_py import {name}")
    for submodule in _SUBMODULES:
        if name in import_module(f"{__package__}.{submodule}").__all__:
            raise AttributeError(f"{what} has no attribute {name!r}: write cuda.{submodule}.{name}")
    if re.match("cuda[A-Z]", name):
        raise AttributeError(f"{what} has no attribute {name!r}: see docs/names.md for its equivalent")
    if re.match("cu[A-Z]", name):
        raise AttributeError(f"{what} has no attribute {name!r}: write cuda.raw.{name}, or see docs/names.md")
    raise _missing("module", name, what)


def public_names() -> list[str]:
    """Return the public names and the imported public submodules; serves as the package's `__dir__`."""
    package = sys.modules[__package__]
    return [*package.__all__, *(name for name in _IMPORTED_BY_NAME if name in vars(package))]

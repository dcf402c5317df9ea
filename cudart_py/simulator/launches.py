"""Launches: kernels with their parameters, checked and copied at the call and run by the PTX machine later."""

from __future__ import annotations

import ctypes
import enum
import sys
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import (
    CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT,
    CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT,
    CU_LAUNCH_PARAM_END_AS_INT,
    CUlaunchAttributeID,
    CUlimit,
    CUresult,
)

from . import memory, observers, occupancy, ptx
from .devices import attribute, whole_number
from .errors import StatusError, entry, number
from .functions import Function, find_function
from .streams import find_stream, submit
from .work import FaultError

if TYPE_CHECKING:
    from .contexts import Context

__all__ = ["Kernel", "cuLaunchCooperativeKernel", "cuLaunchKernel", "cuLaunchKernelEx"]

STEPS_VARIABLE = "CUDART_PY_SIMULATOR_STEPS"
# A kernel that waits for the host spins for ever. This many steps, each of up to some thousand lanes, take minutes.
_USUAL_STEPS = 1 << 26
_LARGEST_PARAMETERS = 32764
_WARP = 32
_MOST_SHAPES = 64

_BLOCK_LIMITS = (attribute("MAX_BLOCK_DIM_X"), attribute("MAX_BLOCK_DIM_Y"), attribute("MAX_BLOCK_DIM_Z"))
_GRID_LIMITS = (attribute("MAX_GRID_DIM_X"), attribute("MAX_GRID_DIM_Y"), attribute("MAX_GRID_DIM_Z"))
_MOST_THREADS = attribute("MAX_THREADS_PER_BLOCK")

_ID = CUlaunchAttributeID
# What changes nothing that a simulation could show.
_WITHOUT_EFFECT = {
    _ID.CU_LAUNCH_ATTRIBUTE_IGNORE,
    _ID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
    _ID.CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
    _ID.CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    _ID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
    _ID.CU_LAUNCH_ATTRIBUTE_PRIORITY,
    _ID.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
    _ID.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
    _ID.CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
    _ID.CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
}

Extents = tuple[int, int, int]


class Kernel:
    """A launch with its parameters' bytes."""

    __slots__ = ("function", "launch")

    def __init__(self, function: Function, launch: ptx.Launch) -> None:
        self.function = function
        self.launch = launch

    def __str__(self) -> str:
        launch = self.launch
        return f"the launch of kernel {launch.entry.name}, grid {launch.grid}, block {launch.block},"

    def run(self, context: Context) -> None:
        """Let the PTX machine run it."""
        function = self.function
        module = function.module
        try:
            ptx.run(
                module.code,
                self.launch,
                context.memory,
                symbols=module.symbols,
                print_=_print,
                steps=_steps(),
                properties=_properties(context),
                observer=observers.observer(),
                clock=context.clock,
            )
        except ptx.Fault as fault:
            raise FaultError(getattr(CUresult, fault.status_name), fault.report) from None
        except ptx.UnsupportedError as error:
            raise FaultError(CUresult.CUDA_ERROR_NOT_SUPPORTED, error.report, sticky=False) from None
        except ptx.PtxError as error:
            raise FaultError(CUresult.CUDA_ERROR_INVALID_PTX, str(error), sticky=False) from None


def _print(text: str) -> None:
    """Write to standard output what it can take; printing never ends a launch."""
    # Looked up at each call, because a program may put another stream in its place, or none.
    stream = sys.stdout
    if stream is None:
        return
    try:
        stream.write(text)
    except UnicodeEncodeError as error:
        _print(text.encode(error.encoding, "backslashreplace").decode(error.encoding))
    except (ValueError, OSError):  # it is closed, or nobody reads the pipe behind it
        return


def _steps() -> int | None:
    """Return the most steps a launch may take, from the environment; 0 there is no limit."""
    steps = whole_number(STEPS_VARIABLE, _USUAL_STEPS, 0, 1 << 62)
    return steps or None


def _properties(context: Context) -> dict[str, int]:
    limits = context.limits
    return {
        "sm_count": attribute("MULTIPROCESSOR_COUNT"),
        "warp_size": _WARP,
        "warps": attribute("MAX_THREADS_PER_MULTIPROCESSOR") // _WARP,
        "stack_limit": limits[CUlimit.CU_LIMIT_STACK_SIZE.value],
        "printf_fifo": limits[CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE.value],
        "malloc_heap": limits[CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE.value],
    }


def packed_parameters(function: Function, parameters: Any, extra: Any) -> bytes:
    """Return the bytes of a kernel's parameters, copied from where the caller has them."""
    layout = function.layout
    address = number(extra)
    if address:
        if parameters is not None and parameters != 0:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        return _from_extra(address, function.entry.parameter_bytes)
    if not layout:
        return b""
    if type(parameters) is int:
        start = parameters
        held = None
    elif isinstance(parameters, tuple):
        held = _values_to_pointers(parameters)
        start = ctypes.addressof(held[0])
        if len(held[0]) < len(layout):
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    else:
        held = None
        start = memory.host_address(parameters)
    if not start:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    pointers = function.pointers.unpack(ctypes.string_at(start, function.pointers.size))
    if 0 in pointers:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    first = pointers[0]
    if [pointer - first for pointer in pointers] == function.offsets:
        # Callers that pack into one buffer with the kernel's own layout are common; it is one copy for them.
        return ctypes.string_at(first, function.entry.parameter_bytes)
    packed = bytearray(function.entry.parameter_bytes)
    for pointer, (offset, size) in zip(pointers, layout, strict=True):
        packed[offset : offset + size] = ctypes.string_at(pointer, size)
    return bytes(packed)


def _from_extra(address: int, expected: int) -> bytes:
    items = ctypes.cast(address, ctypes.POINTER(ctypes.c_size_t))
    buffer = size = 0
    index = 0
    while items[index] != CU_LAUNCH_PARAM_END_AS_INT:
        if items[index] == CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT:
            buffer = items[index + 1]
        elif items[index] == CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT:
            size = ctypes.c_size_t.from_address(items[index + 1]).value
        else:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        index += 2
    if size < expected or (expected and not buffer):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return ctypes.string_at(buffer, expected) if expected else b""


def _values_to_pointers(parameters: tuple[Any, ...]) -> tuple[ctypes.Array[ctypes.c_size_t], list[Any]]:
    """Make the array of pointers of a tuple of values and a tuple of their ctypes, as the bindings do."""
    if len(parameters) != 2 or len(parameters[0]) != len(parameters[1]):
        raise TypeError("kernelParams is not a tuple of values and a tuple of as many types")
    held: list[Any] = []
    addresses = []
    for value, kind in zip(*parameters, strict=True):
        if kind is None:
            if callable(getattr(value, "getPtr", None)):
                addresses.append(value.getPtr())
                held.append(value)
                continue
            cell = ctypes.c_int(value.value) if isinstance(value, enum.Enum) else value
        elif kind is ctypes.c_void_p:
            cell = ctypes.c_size_t(value.value or 0 if isinstance(value, ctypes.c_void_p) else number(value))
        else:
            cell = value if isinstance(value, kind) else kind(getattr(value, "value", value))
        held.append(cell)
        addresses.append(ctypes.addressof(cell))
    return (ctypes.c_size_t * len(addresses))(*addresses), held


def checked_launch(
    function: Function,
    extents: Sequence[int],
    shared: int,
    parameters: bytes,
    *,
    cooperative: bool = False,
    cluster: Extents | None = None,
) -> ptx.Launch:
    """Return the machine's description of a launch, or raise what the driver answers for one it refuses."""
    key = *extents, shared, cluster
    chosen = function.shapes.get(key)
    if chosen is None:
        chosen = _checked_shape(function, extents, shared, cluster)
        if len(function.shapes) >= _MOST_SHAPES:
            function.shapes.clear()
        function.shapes[key] = chosen
    gx, gy, gz, bx, by, bz = extents
    if cooperative and gx * gy * gz > occupancy.resident_blocks(function, bx * by * bz, shared, prod(chosen)):
        raise StatusError(CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
    return ptx.Launch(function.entry, (gx, gy, gz), (bx, by, bz), shared, parameters, cooperative, chosen)


def _checked_shape(function: Function, extents: Sequence[int], shared: int, cluster: Extents | None) -> Extents:
    """Return the cluster of a launch whose shape the driver takes."""
    gx, gy, gz, bx, by, bz = extents
    if not (
        0 < gx <= _GRID_LIMITS[0]
        and 0 < gy <= _GRID_LIMITS[1]
        and 0 < gz <= _GRID_LIMITS[2]
        and 0 < bx <= _BLOCK_LIMITS[0]
        and 0 < by <= _BLOCK_LIMITS[1]
        and 0 < bz <= _BLOCK_LIMITS[2]
        and 0 <= shared <= function.dynamic_shared
    ):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    threads = bx * by * bz
    kernel = function.entry
    if threads > function.max_threads:
        _refuse_threads(function, threads)
    if kernel.required_block is not None and (bx, by, bz) != tuple(kernel.required_block):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if kernel.parameter_bytes > _LARGEST_PARAMETERS:
        raise StatusError(CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    return _checked_cluster(function, (gx, gy, gz), cluster or kernel.cluster or (1, 1, 1))


def _refuse_threads(function: Function, threads: int) -> None:
    stated = [prod(limit) for limit in (function.entry.max_threads, function.entry.required_block) if limit]
    # Too many for the card or for what the kernel states is a wrong value; too many for its registers is want of them.
    if threads > min([_MOST_THREADS, *stated]):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    raise StatusError(CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)


def _checked_cluster(function: Function, grid: Extents, cluster: Extents) -> Extents:
    if cluster == (1, 1, 1):
        return cluster
    fixed = function.entry.cluster
    if (
        min(cluster) <= 0
        or prod(cluster) > occupancy.largest_cluster(function)
        or (fixed is not None and tuple(fixed) != cluster)
    ):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE)
    if any(count % part for count, part in zip(grid, cluster, strict=True)):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return cluster


@entry()
def cuLaunchKernel(
    f: Any,
    gridDimX: Any,
    gridDimY: Any,
    gridDimZ: Any,
    blockDimX: Any,
    blockDimY: Any,
    blockDimZ: Any,
    sharedMemBytes: Any,
    hStream: Any,
    kernelParams: Any,
    extra: Any,
) -> None:
    """Launch a kernel in a stream, as cuLaunchKernel."""
    function, stream = find_function(f), find_stream(hStream)
    if function.context is not stream.context:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_HANDLE)
    parameters = packed_parameters(function, kernelParams, extra)
    extents = gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ
    submit(stream, Kernel(function, checked_launch(function, extents, sharedMemBytes, parameters)))


@entry()
def cuLaunchCooperativeKernel(
    f: Any,
    gridDimX: Any,
    gridDimY: Any,
    gridDimZ: Any,
    blockDimX: Any,
    blockDimY: Any,
    blockDimZ: Any,
    sharedMemBytes: Any,
    hStream: Any,
    kernelParams: Any,
) -> None:
    """Launch a kernel whose blocks are all resident at once, as cuLaunchCooperativeKernel."""
    function, stream = find_function(f), find_stream(hStream)
    if function.context is not stream.context:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_HANDLE)
    parameters = packed_parameters(function, kernelParams, 0)
    extents = gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ
    launch = checked_launch(function, extents, sharedMemBytes, parameters, cooperative=True)
    submit(stream, Kernel(function, launch))


@entry()
def cuLaunchKernelEx(config: Any, f: Any, kernelParams: Any, extra: Any) -> None:
    """Launch a kernel with attributes, as cuLaunchKernelEx."""
    function = find_function(f)
    if config is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    stream = find_stream(config.hStream)
    if function.context is not stream.context:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_HANDLE)
    cooperative, cluster = _attributes(config.attrs[: config.numAttrs])
    parameters = packed_parameters(function, kernelParams, extra)
    extents = (
        config.gridDimX,
        config.gridDimY,
        config.gridDimZ,
        config.blockDimX,
        config.blockDimY,
        config.blockDimZ,
    )
    launch = checked_launch(
        function, extents, config.sharedMemBytes, parameters, cooperative=cooperative, cluster=cluster
    )
    submit(stream, Kernel(function, launch))


def _attributes(given: Sequence[Any]) -> tuple[bool, Extents | None]:
    """Return what of a launch's attributes changes it: whether it is cooperative, and its cluster."""
    cooperative, cluster = False, None
    for item in given:
        if item.id == _ID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            cooperative = bool(item.value.cooperative)
        elif item.id == _ID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            extents = item.value.clusterDim
            cluster = extents.x, extents.y, extents.z
        elif item.id not in _WITHOUT_EFFECT:
            raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    return cooperative, cluster

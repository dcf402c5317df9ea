"""Launches of the program's kernels, and questions about them."""

from __future__ import annotations

import ctypes
from typing import Any

from cuda.bindings.driver import CUfunction_attribute

from ..c_types import Dim3
from ..foreign_memory import write, write_structure
from .calls import INVALID_CONFIGURATION, INVALID_VALUE, MISSING_CONFIGURATION, SUCCESS, Out, driver, state
from .registration import function

_LARGEST_GRID = (2**31 - 1, 65535, 65535)
_LARGEST_BLOCK = (1024, 1024, 64)
_MOST_THREADS = 1024


def _members(shared_bytes: Any) -> list[tuple[str, Any]]:
    """Return the members of a launch's configuration, in which the type of the shared memory's size differs."""
    return [
        ("grid", Dim3),
        ("block", Dim3),
        ("shared_bytes", shared_bytes),
        ("stream", ctypes.c_size_t),
        ("attributes", ctypes.c_size_t),
        ("count", ctypes.c_uint),
    ]


class _LaunchConfig(ctypes.Structure):
    """cudaLaunchConfig_t."""

    _fields_ = _members(ctypes.c_size_t)


class _DriverConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = _members(ctypes.c_uint)


def push_configuration(grid: Dim3, block: Dim3, shared_bytes: int, stream: int) -> int:
    """Keep the arguments between `<<<` and `>>>` until the kernel's host counterpart retrieves them."""
    extents = (grid.x, grid.y, grid.z), (block.x, block.y, block.z)
    state.configurations.append((*extents, shared_bytes, stream))
    return SUCCESS


def pop_configuration(grid: int, block: int, shared_bytes: int, stream: int) -> int:
    """Write what `push_configuration` has kept."""
    if not state.configurations:
        return MISSING_CONFIGURATION
    grid_extents, block_extents, size, handle = state.configurations.pop()
    write_structure(grid, Dim3(*grid_extents))
    write_structure(block, Dim3(*block_extents))
    write(shared_bytes, size)
    write(stream, handle)
    return SUCCESS


def _refused(grid: Any, block: Any) -> bool:
    """Return whether a device refuses a shape; the runtime has a status of its own for that."""
    shapes = ((grid, _LARGEST_GRID), (block, _LARGEST_BLOCK))
    inside = all(
        0 < size <= limit for shape, limits in shapes for size, limit in zip(_extents(shape), limits, strict=True)
    )
    return not inside or block.x * block.y * block.z > _MOST_THREADS


def _extents(shape: Any) -> tuple[int, int, int]:
    return shape.x, shape.y, shape.z


def launch_kernel(host: int, grid: Dim3, block: Dim3, arguments: int, shared_bytes: int, stream: int) -> int:
    """Launch a kernel (cudaLaunchKernel)."""
    found = Out()
    status = function(host, found)
    if status:
        return status
    if _refused(grid, block):
        return INVALID_CONFIGURATION
    shape = (*_extents(grid), *_extents(block))
    return driver("cuLaunchKernel")(found.value, *shape, shared_bytes, stream, arguments, 0)


def launch_cooperative(host: int, grid: Dim3, block: Dim3, arguments: int, shared_bytes: int, stream: int) -> int:
    """Launch a kernel whose blocks are all resident at once (cudaLaunchCooperativeKernel)."""
    found = Out()
    status = function(host, found)
    if status:
        return status
    if _refused(grid, block):
        return INVALID_CONFIGURATION
    shape = (*_extents(grid), *_extents(block))
    return driver("cuLaunchCooperativeKernel")(found.value, *shape, shared_bytes, stream, arguments)


def _driver_config(address: int) -> _DriverConfig:
    given = _LaunchConfig.from_address(address)
    return _DriverConfig(given.grid, given.block, given.shared_bytes, given.stream, given.attributes, given.count)


def launch_with_config(config: int, host: int, arguments: int) -> int:
    """Launch a kernel with attributes (cudaLaunchKernelExC)."""
    found = Out()
    if not config:
        return INVALID_VALUE
    status = function(host, found)
    if status:
        return status
    converted = _driver_config(config)
    if _refused(converted.grid, converted.block):
        return INVALID_CONFIGURATION
    return driver("cuLaunchKernelEx")(ctypes.addressof(converted), found.value, arguments, 0)


def _cluster_query(name: str) -> Any:
    def query(result: int, host: int, config: int) -> int:
        found = Out()
        status = function(host, found)
        if status or not config:
            return status or INVALID_VALUE
        converted = _driver_config(config)
        return driver(name)(result, found.value, ctypes.addressof(converted))

    return query


def _of_function(name: str, place: int) -> Any:
    """Return a function that passes its arguments on, with the kernel at an index replaced by the driver's function."""

    def call(*arguments: int) -> int:
        found = Out()
        status = function(arguments[place], found)
        if status:
            return status
        return driver(name)(*arguments[:place], found.value, *arguments[place + 1 :])

    return call


# The members of cudaFuncAttributes: the attribute, and the member's type.
_NAMES = CUfunction_attribute
_FUNCTION_ATTRIBUTES = (
    (_NAMES.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, ctypes.c_size_t),
    (_NAMES.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, ctypes.c_size_t),
    (_NAMES.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, ctypes.c_size_t),
    (_NAMES.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, ctypes.c_int),
    (_NAMES.CU_FUNC_ATTRIBUTE_NUM_REGS, ctypes.c_int),
    (_NAMES.CU_FUNC_ATTRIBUTE_PTX_VERSION, ctypes.c_int),
    (_NAMES.CU_FUNC_ATTRIBUTE_BINARY_VERSION, ctypes.c_int),
    (_NAMES.CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, ctypes.c_int),
    (_NAMES.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, ctypes.c_int),
    (_NAMES.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, ctypes.c_int),
    (_NAMES.CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, ctypes.c_int),
    (_NAMES.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, ctypes.c_int),
    (_NAMES.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, ctypes.c_int),
    (_NAMES.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, ctypes.c_int),
    (_NAMES.CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, ctypes.c_int),
    (_NAMES.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, ctypes.c_int),
)


def function_attributes(attributes: int, host: int) -> int:
    """Write the attributes of a kernel (cudaFuncGetAttributes)."""
    found, value = Out(), Out(ctypes.c_int)
    status = function(host, found)
    for attribute, kind in _FUNCTION_ATTRIBUTES:
        status = status or driver("cuFuncGetAttribute")(value.address, attribute.value, found.value)
        if status:
            return status
        write(attributes, value.value, kind)
        attributes += ctypes.sizeof(kind)
    return SUCCESS


def do_nothing(*_: int) -> int:
    """Accept a preference that has no effect in the simulator, such as one for the L1 cache."""
    return SUCCESS


def write_zero(place: int, *_: int) -> int:
    """Write that there is no preference."""
    write(place, 0, ctypes.c_int)
    return SUCCESS


def set_kernel_attribute(kernel: int, attribute: int, value: int, device: int) -> int:
    """Set an attribute of a kernel on a device (cudaKernelSetAttributeForDevice)."""
    return driver("cuKernelSetAttribute")(attribute, value, kernel, device)


FUNCTIONS = {
    "__cudaPushCallConfiguration": push_configuration,
    "__cudaPopCallConfiguration": pop_configuration,
    "__cudaLaunchKernel": launch_kernel,
    "cudaLaunchKernel": launch_kernel,
    "cudaLaunchCooperativeKernel": launch_cooperative,
    "cudaLaunchKernelExC": launch_with_config,
    "cudaDeviceGetCacheConfig": write_zero,
    "cudaDeviceGetSharedMemConfig": write_zero,
    "cudaDeviceSetCacheConfig": do_nothing,
    "cudaDeviceSetSharedMemConfig": do_nothing,
    "cudaKernelSetAttributeForDevice": set_kernel_attribute,
    "cudaFuncGetAttributes": function_attributes,
    "cudaFuncGetName": _of_function("cuFuncGetName", 1),
    "cudaFuncGetParamCount": _of_function("cuFuncGetParamCount", 0),
    "cudaFuncGetParamInfo": _of_function("cuFuncGetParamInfo", 0),
    "cudaFuncSetAttribute": _of_function("cuFuncSetAttribute", 0),
    "cudaFuncSetCacheConfig": do_nothing,
    "cudaFuncSetSharedMemConfig": do_nothing,
    "cudaOccupancyAvailableDynamicSMemPerBlock": _of_function("cuOccupancyAvailableDynamicSMemPerBlock", 1),
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor": _of_function("cuOccupancyMaxActiveBlocksPerMultiprocessor", 1),
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags": _of_function(
        "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 1
    ),
    "cudaOccupancyMaxActiveClusters": _cluster_query("cuOccupancyMaxActiveClusters"),
    "cudaOccupancyMaxPotentialClusterSize": _cluster_query("cuOccupancyMaxPotentialClusterSize"),
}

"""The parameters of nodes: operations made from the bindings' structures, and structures made from operations."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, TypeVar

from cuda.bindings.driver import (
    CUDA_HOST_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS,
    CUDA_MEMCPY3D,
    CUDA_MEMSET_NODE_PARAMS,
    CUarray,
    CUcontext,
    CUdeviceptr,
    CUfunction,
    CUhostFn,
    CUmemorytype,
)

from ...state import memory
from ...state.arguments import host_address, number
from ...state.contexts import find_context, given_context
from ...state.errors import invalid_value
from ...state.queue.operations import Operation
from ..launches.attributes import NO_ATTRIBUTES, LaunchAttributes
from ..launches.host_functions import HostCall
from ..launches.launches import KernelLaunch, checked_kernel, extents_of
from ..launches.parameters import packed_parameters
from ..memory.cuda_arrays import cuda_arrays
from ..memory.fills import Fill, checked_fill
from ..memory.transfers.box_copies import Box, BoxCopy, checked_box_copy
from ..memory.transfers.copies import Copy
from ..modules.functions import find_launchable
from ..streams.memory_operations import MemoryOperations, batch_of

if TYPE_CHECKING:
    from ...state.queue.graphs import Node

Kind = TypeVar("Kind", bound=Operation)


def require(operation: Operation, *kinds: type[Kind]) -> Kind:
    """Return an operation that is of one of some kinds, or raise CUDA_ERROR_INVALID_VALUE."""
    if not isinstance(operation, kinds):
        raise invalid_value()
    return operation


def kernel_of(parameters: Any, attributes: LaunchAttributes = NO_ATTRIBUTES) -> KernelLaunch:
    """Return the launch that a CUDA_KERNEL_NODE_PARAMS describes, with attributes."""
    if parameters is None:
        raise invalid_value()
    function = find_launchable(parameters.func)
    packed = packed_parameters(function, parameters.kernelParams, parameters.extra)
    return checked_kernel(function, extents_of(parameters), parameters.sharedMemBytes, packed, attributes)


def copy_of(parameters: Any, context: Any) -> BoxCopy:
    """Return the copy that a CUDA_MEMCPY3D describes, which must not be empty."""
    given_context(context)
    made = checked_box_copy(parameters, three=True)
    if made is None:
        raise invalid_value()
    return made


def memory_operations_of(parameters: Any) -> MemoryOperations:
    """Return the memory operations that a CUDA_BATCH_MEM_OP_NODE_PARAMS describes, at least one."""
    if parameters is None or not number(parameters.count):
        raise invalid_value()
    return batch_of(parameters.count, parameters.paramArray, parameters.flags, find_context(parameters.ctx))


def fill_of(parameters: Any, context: Any) -> Fill:
    """Return the fill that a CUDA_MEMSET_NODE_PARAMS describes, which must not be empty."""
    found = given_context(context)
    if parameters is None or parameters.elementSize not in (1, 2, 4):
        raise invalid_value()
    # The driver ignores the pitch of a single row.
    rows = parameters.pitch if parameters.height > 1 else 0, parameters.height
    made = checked_fill(
        parameters.dst, parameters.value, parameters.width, found, element=parameters.elementSize, rows=rows
    )
    if made is None:
        raise invalid_value()
    return made


def host_call_of(parameters: Any) -> HostCall:
    """Return the call that a CUDA_HOST_NODE_PARAMS describes."""
    if parameters is None or not int(parameters.fn):
        raise invalid_value()
    return HostCall(int(parameters.fn), host_address(parameters.userData))


def kernel_parameters(node: Node) -> Any:
    """Return a kernel node as a CUDA_KERNEL_NODE_PARAMS; the node owns the memory of the values."""
    kernel = require(node.operation, KernelLaunch)
    launch, made = kernel.launch, CUDA_KERNEL_NODE_PARAMS()
    made.func = CUfunction(kernel.function.handle)
    made.ctx = CUcontext(kernel.function.context.handle)
    made.gridDimX, made.gridDimY, made.gridDimZ = launch.grid
    made.blockDimX, made.blockDimY, made.blockDimZ = launch.block
    made.sharedMemBytes = launch.shared_bytes
    values = ctypes.create_string_buffer(launch.parameters, max(len(launch.parameters), 1))
    start = ctypes.addressof(values)
    pointers = (ctypes.c_void_p * max(len(launch.entry.params), 1))(
        *(start + parameter.offset for parameter in launch.entry.params)
    )
    node.exposed = values, pointers
    made.kernelParams = ctypes.addressof(pointers)
    return made


def copy_parameters(node: Node) -> Any:
    """Return a copy node as a CUDA_MEMCPY3D."""
    operation, made = node.operation, CUDA_MEMCPY3D()
    if isinstance(operation, Copy):
        ends = [
            Box(address, operation.size, operation.size, memory.find(address, operation.size) if checked else None)
            for address, checked in zip((operation.source, operation.destination), operation.checked, strict=True)
        ]
        shape = 1, 1, operation.size
    else:
        copy = require(operation, BoxCopy)
        ends, shape = [copy.source, copy.destination], copy.shape
    made.Depth, made.Height, made.WidthInBytes = shape
    for name, box in zip(("src", "dst"), ends, strict=True):
        for field, value in _end(box).items():
            setattr(made, f"{name}{field}", value)
    return made


def _end(box: Box) -> dict[str, Any]:
    """Return the fields of a CUDA_MEMCPY3D for the source or the destination of a copy, without their prefix."""
    kind, kinds = None if box.allocation is None else box.allocation.kind, CUmemorytype
    if box.in_array:
        array = next(array for array in cuda_arrays if array.allocation is box.allocation)
        plane, rest = divmod(box.address - array.allocation.address, array.slice_pitch)
        row, column = divmod(rest, array.pitch)
        handle = CUarray(cuda_arrays.handle_of(array))
        return {
            "MemoryType": kinds.CU_MEMORYTYPE_ARRAY, "Array": handle, "Z": plane, "Y": row, "XInBytes": column,
        }  # fmt: skip  # on one line
    strides = {"Pitch": box.pitch, "Height": box.slice_pitch // box.pitch if box.pitch else 0}
    if kind == memory.DEVICE:
        return {"MemoryType": kinds.CU_MEMORYTYPE_DEVICE, "Device": CUdeviceptr(box.address), **strides}
    if kind == memory.MANAGED:
        return {"MemoryType": kinds.CU_MEMORYTYPE_UNIFIED, "Device": CUdeviceptr(box.address), **strides}
    return {"MemoryType": kinds.CU_MEMORYTYPE_HOST, "Host": box.address, **strides}


def fill_parameters(node: Node) -> Any:
    """Return a fill node as a CUDA_MEMSET_NODE_PARAMS."""
    fill, made = require(node.operation, Fill), CUDA_MEMSET_NODE_PARAMS()
    made.dst = CUdeviceptr(fill.address)
    made.value = fill.value
    made.elementSize, made.width, made.height, made.pitch = fill.layout
    return made


def host_parameters(node: Node) -> Any:
    """Return a host node as a CUDA_HOST_NODE_PARAMS."""
    call, made = require(node.operation, HostCall), CUDA_HOST_NODE_PARAMS()
    made.fn = CUhostFn(call.function)
    made.userData = call.data
    return made

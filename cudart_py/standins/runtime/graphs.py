"""Graphs: the nodes whose parameters the runtime and the driver describe differently."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from cuda.bindings.driver import CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D

from ..c_types import Dim3, Extent, PitchedPointer
from ..foreign_memory import read, write_structure
from .calls import INVALID_MEMORY_DIRECTION, INVALID_VALUE, SUCCESS, Out, driver
from .data.copies import BoxCopy, Position, box_parameters, converted, write_box_copy
from .registration import find_variable, function

_KINDS = range(5)  # cudaMemcpyKind


class _KernelParameters(ctypes.Structure):
    """cudaKernelNodeParams."""

    _fields_ = [
        ("function", ctypes.c_size_t),
        ("grid", Dim3),
        ("block", Dim3),
        ("shared_bytes", ctypes.c_uint),
        ("arguments", ctypes.c_size_t),
        ("extra", ctypes.c_size_t),
    ]


def _kernel_parameters(address: int) -> tuple[int, Any]:
    """Return a status and the driver's parameters of a kernel node."""
    if not address:
        return INVALID_VALUE, None
    given = _KernelParameters.from_address(address)
    found = Out()
    status = function(given.function, found)
    if status:
        return status, None
    result = CUDA_KERNEL_NODE_PARAMS()
    result.func = found.value
    result.gridDimX, result.gridDimY, result.gridDimZ = given.grid.x, given.grid.y, given.grid.z
    result.blockDimX, result.blockDimY, result.blockDimZ = given.block.x, given.block.y, given.block.z
    result.sharedMemBytes = given.shared_bytes
    result.kernelParams, result.extra = given.arguments, given.extra
    return SUCCESS, result


def _with_kernel(name: str) -> Callable[..., int]:
    """Return a function that passes its arguments on, the last of which are parameters of a kernel node."""

    def call(*arguments: int) -> int:
        status, parameters = _kernel_parameters(arguments[-1])
        return status or driver(name)(*arguments[:-1], parameters.getPtr())

    return call


def get_kernel_parameters(node: int, place: int) -> int:
    """Write the parameters of a kernel node (cudaGraphKernelNodeGetParams)."""
    found = CUDA_KERNEL_NODE_PARAMS()
    status = driver("cuGraphKernelNodeGetParams_v2")(node, found.getPtr())
    if not status:
        result = _KernelParameters.from_address(place)
        result.function = int(found.func)
        result.grid = Dim3(found.gridDimX, found.gridDimY, found.gridDimZ)
        result.block = Dim3(found.blockDimX, found.blockDimY, found.blockDimZ)
        result.shared_bytes = found.sharedMemBytes
        result.arguments, result.extra = found.kernelParams, found.extra
    return status


def _copy_parameters(address: int) -> tuple[int, Any]:
    """Return a status and the driver's parameters of a copy that the program describes by a structure."""
    if not address:
        return INVALID_VALUE, None
    destination, source, extent, kind = converted(address)
    if kind not in _KINDS:
        return INVALID_MEMORY_DIRECTION, None
    return SUCCESS, box_parameters(destination, source, extent, kind)


def _line_parameters(destination: int, source: int, size: int, kind: int) -> tuple[int, Any]:
    """Return a status and the driver's parameters of a copy of bytes."""
    copy = BoxCopy()
    copy.source = PitchedPointer(source, size, size, 1)
    copy.destination = PitchedPointer(destination, size, size, 1)
    copy.extent, copy.kind = Extent(size, 1, 1), kind
    copy.source_position = copy.destination_position = Position(0, 0, 0)
    return _copy_parameters(ctypes.addressof(copy))


def _added(node: int, graph: int, before: int, count: int, parameters: tuple[int, Any]) -> int:
    status, copy = parameters
    context = Out()
    status = status or driver("cuCtxGetCurrent")(context.address)
    return status or driver("cuGraphAddMemcpyNode")(node, graph, before, count, copy.getPtr(), context.value)


def add_copy(node: int, graph: int, before: int, count: int, parameters: int) -> int:
    """Add a copy of a box (cudaGraphAddMemcpyNode)."""
    return _added(node, graph, before, count, _copy_parameters(parameters))


def add_line(node: int, graph: int, before: int, count: int, *copied: int) -> int:
    """Add a copy of bytes (cudaGraphAddMemcpyNode1D)."""
    return _added(node, graph, before, count, _line_parameters(*copied))


def add_copy_to_symbol(
    node: int, graph: int, before: int, count: int, host: int, source: int, size: int, offset: int, kind: int
) -> int:
    """Add a copy to a variable (cudaGraphAddMemcpyNodeToSymbol)."""
    address = Out()
    status = find_variable(host, address, Out())
    return status or add_line(node, graph, before, count, address.value + offset, source, size, kind)


def add_copy_from_symbol(
    node: int, graph: int, before: int, count: int, destination: int, host: int, size: int, offset: int, kind: int
) -> int:
    """Add a copy from a variable (cudaGraphAddMemcpyNodeFromSymbol)."""
    address = Out()
    status = find_variable(host, address, Out())
    return status or add_line(node, graph, before, count, destination, address.value + offset, size, kind)


def set_copy(node: int, parameters: int) -> int:
    """Change a copy (cudaGraphMemcpyNodeSetParams)."""
    status, copy = _copy_parameters(parameters)
    return status or driver("cuGraphMemcpyNodeSetParams")(node, copy.getPtr())


def set_line(node: int, *copied: int) -> int:
    """Change a copy of bytes (cudaGraphMemcpyNodeSetParams1D)."""
    status, copy = _line_parameters(*copied)
    return status or driver("cuGraphMemcpyNodeSetParams")(node, copy.getPtr())


def get_copy(node: int, place: int) -> int:
    """Write the parameters of a copy (cudaGraphMemcpyNodeGetParams)."""
    if not place:
        return INVALID_VALUE
    found = CUDA_MEMCPY3D()
    status = driver("cuGraphMemcpyNodeGetParams")(node, found.getPtr())
    if not status:
        write_box_copy(place, found)
    return status


def set_copy_to_symbol(node: int, host: int, source: int, size: int, offset: int, kind: int) -> int:
    """Change a copy to a variable (cudaGraphMemcpyNodeSetParamsToSymbol)."""
    address = Out()
    return find_variable(host, address, Out()) or set_line(node, address.value + offset, source, size, kind)


def set_copy_from_symbol(node: int, destination: int, host: int, size: int, offset: int, kind: int) -> int:
    """Change a copy from a variable (cudaGraphMemcpyNodeSetParamsFromSymbol)."""
    address = Out()
    return find_variable(host, address, Out()) or set_line(node, destination, address.value + offset, size, kind)


def _set_in_executable(executable: int, node: int, parameters: tuple[int, Any]) -> int:
    status, copy = parameters
    context = Out()
    status = status or driver("cuCtxGetCurrent")(context.address)
    return status or driver("cuGraphExecMemcpyNodeSetParams")(executable, node, copy.getPtr(), context.value)


def set_copy_in_executable(executable: int, node: int, parameters: int) -> int:
    """Change a copy of an executable graph (cudaGraphExecMemcpyNodeSetParams)."""
    return _set_in_executable(executable, node, _copy_parameters(parameters))


def set_line_in_executable(executable: int, node: int, *copied: int) -> int:
    """Change a copy of bytes of an executable graph (cudaGraphExecMemcpyNodeSetParams1D)."""
    return _set_in_executable(executable, node, _line_parameters(*copied))


def set_copy_to_symbol_in_executable(
    executable: int, node: int, host: int, source: int, size: int, offset: int, kind: int
) -> int:
    """Change a copy to a variable of an executable graph (cudaGraphExecMemcpyNodeSetParamsToSymbol)."""
    address = Out()
    status = find_variable(host, address, Out())
    return status or set_line_in_executable(executable, node, address.value + offset, source, size, kind)


def set_copy_from_symbol_in_executable(
    executable: int, node: int, destination: int, host: int, size: int, offset: int, kind: int
) -> int:
    """Change a copy from a variable of an executable graph (cudaGraphExecMemcpyNodeSetParamsFromSymbol)."""
    address = Out()
    status = find_variable(host, address, Out())
    return status or set_line_in_executable(executable, node, destination, address.value + offset, size, kind)


def _in_context(name: str) -> Callable[..., int]:
    """Return a function of the runtime whose counterpart takes the context as its last argument."""

    def call(*arguments: int) -> int:
        context = Out()
        return driver("cuCtxGetCurrent")(context.address) or driver(name)(*arguments, context.value)

    return call


def create_condition(place: int, graph: int, default: int, flags: int) -> int:
    """Create the handle of a condition (cudaGraphConditionalHandleCreate)."""
    context = Out()
    status = driver("cuCtxGetCurrent")(context.address)
    return status or driver("cuGraphConditionalHandleCreate")(place, graph, context.value, default, flags)


# The structures that describe a node of any type begin with the type, and the node's own parameters follow.
_TYPED_BYTES = 256
_OWN_PARAMETERS = 16
_KERNEL, _COPY, _ALLOCATION, _CONDITIONAL = 0, 1, 10, 13  # cudaGraphNodeType
_WRITTEN = (_ALLOCATION, _CONDITIONAL)
_COPY_FLAGS = 16  # bytes before the copy itself in the runtime's structure


class _CopyNode(ctypes.Structure):
    """The beginning of CUDA_MEMCPY_NODE_PARAMS, which a CUDA_MEMCPY3D follows."""

    _fields_ = [("flags", ctypes.c_int), ("reserved", ctypes.c_int), ("context", ctypes.c_size_t)]


_CUDA_MEMCPY3D_BYTES = 200
_DRIVER_KERNEL_BYTES = 72  # of CUDA_KERNEL_NODE_PARAMS


def _typed_parameters(address: int) -> tuple[int, Any]:
    """Return a status and a CUgraphNodeParams; the runtime's structure describes kernels and copies differently."""
    if not address:
        return INVALID_VALUE, None
    typed = ctypes.create_string_buffer(ctypes.string_at(address, _TYPED_BYTES), _TYPED_BYTES)
    own = ctypes.addressof(typed) + _OWN_PARAMETERS
    kind = read(address, ctypes.c_int)
    status = SUCCESS
    if kind == _KERNEL:
        status, parameters = _kernel_parameters(address + _OWN_PARAMETERS)
        if not status:
            ctypes.memmove(own, parameters.getPtr(), _DRIVER_KERNEL_BYTES)
    elif kind == _COPY:
        status, copy = _copy_parameters(address + _OWN_PARAMETERS + _COPY_FLAGS)
        if not status:
            write_structure(own, _CopyNode())
            ctypes.memmove(own + ctypes.sizeof(_CopyNode), copy.getPtr(), _CUDA_MEMCPY3D_BYTES)
    return status, typed


def _with_typed(name: str) -> Callable[..., int]:
    """Return a function that passes its arguments on, the last of which are parameters of a node of any type."""

    def call(*arguments: int) -> int:
        status, typed = _typed_parameters(arguments[-1])
        status = status or driver(name)(*arguments[:-1], ctypes.addressof(typed))
        if not status and read(arguments[-1], ctypes.c_int) in _WRITTEN:
            # The driver writes the address of an allocation, and the graphs of a conditional node.
            ctypes.memmove(arguments[-1], typed, _TYPED_BYTES)
        return status

    return call


FUNCTIONS: dict[str, Any] = {
    "cudaGraphAddKernelNode": _with_kernel("cuGraphAddKernelNode_v2"),
    "cudaGraphAddMemcpyNode": add_copy,
    "cudaGraphAddMemcpyNode1D": add_line,
    "cudaGraphAddMemcpyNodeFromSymbol": add_copy_from_symbol,
    "cudaGraphAddMemcpyNodeToSymbol": add_copy_to_symbol,
    "cudaGraphAddNode": _with_typed("cuGraphAddNode_v2"),
    "cudaGraphAddMemsetNode": _in_context("cuGraphAddMemsetNode"),
    "cudaGraphConditionalHandleCreate": create_condition,
    "cudaGraphExecKernelNodeSetParams": _with_kernel("cuGraphExecKernelNodeSetParams_v2"),
    "cudaGraphExecMemcpyNodeSetParams": set_copy_in_executable,
    "cudaGraphExecMemcpyNodeSetParams1D": set_line_in_executable,
    "cudaGraphExecMemcpyNodeSetParamsFromSymbol": set_copy_from_symbol_in_executable,
    "cudaGraphExecMemcpyNodeSetParamsToSymbol": set_copy_to_symbol_in_executable,
    "cudaGraphExecNodeSetParams": _with_typed("cuGraphExecNodeSetParams"),
    "cudaGraphExecMemsetNodeSetParams": _in_context("cuGraphExecMemsetNodeSetParams"),
    "cudaGraphKernelNodeGetParams": get_kernel_parameters,
    "cudaGraphKernelNodeSetParams": _with_kernel("cuGraphKernelNodeSetParams_v2"),
    "cudaGraphMemcpyNodeGetParams": get_copy,
    "cudaGraphMemcpyNodeSetParams": set_copy,
    "cudaGraphMemcpyNodeSetParams1D": set_line,
    "cudaGraphMemcpyNodeSetParamsFromSymbol": set_copy_from_symbol,
    "cudaGraphMemcpyNodeSetParamsToSymbol": set_copy_to_symbol,
    "cudaGraphNodeSetParams": _with_typed("cuGraphNodeSetParams"),
}

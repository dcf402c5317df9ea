"""Calls that return and change the parameters of nodes in graphs; executable graphs that exist stay as they are."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CUdeviceptr, CUevent

from ...state.errors import invalid_value
from ...state.queue.graphs import find_node
from ..entry import entry
from ..launches.host_functions import HostCall
from ..launches.launches import KernelLaunch
from ..memory.fills import Fill
from ..memory.graph_memory import AllocateInGraph, FreeInGraph, allocation_parameters
from ..memory.transfers.box_copies import BoxCopy
from ..memory.transfers.copies import Copy
from ..streams.events import RecordEvent, WaitForEvent, find_event
from ..streams.memory_operations import MemoryOperations
from .additions import changed_operation
from .node_parameters import (
    copy_of,
    copy_parameters,
    fill_of,
    fill_parameters,
    host_call_of,
    host_parameters,
    kernel_of,
    kernel_parameters,
    memory_operations_of,
    require,
)


@entry(values=1)
def cuGraphKernelNodeGetParams(hNode: Any) -> Any:
    """Return the parameters of a kernel node, whose values are the node's own (cuGraphKernelNodeGetParams)."""
    return kernel_parameters(find_node(hNode))


@entry()
def cuGraphKernelNodeSetParams(hNode: Any, nodeParams: Any) -> None:
    """Change a node's kernel, parameters and shape, but not its attributes (cuGraphKernelNodeSetParams)."""
    node = find_node(hNode)
    node.operation = kernel_of(nodeParams, require(node.operation, KernelLaunch).attributes)


@entry(values=1)
def cuGraphMemcpyNodeGetParams(hNode: Any) -> Any:
    """Return the parameters of a copy node (cuGraphMemcpyNodeGetParams)."""
    return copy_parameters(find_node(hNode))


@entry()
def cuGraphMemcpyNodeSetParams(hNode: Any, nodeParams: Any) -> None:
    """Change the addresses and the shape of a copy node (cuGraphMemcpyNodeSetParams)."""
    node = find_node(hNode)
    require(node.operation, Copy, BoxCopy)
    node.operation = copy_of(nodeParams, None)


@entry()
def cuGraphBatchMemOpNodeSetParams(hNode: Any, nodeParams: Any) -> None:
    """Change the memory operations of a node (cuGraphBatchMemOpNodeSetParams)."""
    node = find_node(hNode)
    require(node.operation, MemoryOperations)
    node.operation = memory_operations_of(nodeParams)


@entry(values=1)
def cuGraphMemsetNodeGetParams(hNode: Any) -> Any:
    """Return the parameters of a fill node (cuGraphMemsetNodeGetParams)."""
    return fill_parameters(find_node(hNode))


@entry()
def cuGraphMemsetNodeSetParams(hNode: Any, nodeParams: Any) -> None:
    """Change the memory and the value of a fill node (cuGraphMemsetNodeSetParams)."""
    node = find_node(hNode)
    require(node.operation, Fill)
    node.operation = fill_of(nodeParams, None)


@entry(values=1)
def cuGraphHostNodeGetParams(hNode: Any) -> Any:
    """Return the function of a host node and its argument (cuGraphHostNodeGetParams)."""
    return host_parameters(find_node(hNode))


@entry()
def cuGraphHostNodeSetParams(hNode: Any, nodeParams: Any) -> None:
    """Change the function of a host node and its argument (cuGraphHostNodeSetParams)."""
    node = find_node(hNode)
    require(node.operation, HostCall)
    node.operation = host_call_of(nodeParams)


@entry(values=1)
def cuGraphEventRecordNodeGetEvent(hNode: Any) -> Any:
    """Return the event that a node records (cuGraphEventRecordNodeGetEvent)."""
    return CUevent(require(find_node(hNode).operation, RecordEvent).event.handle)


@entry()
def cuGraphEventRecordNodeSetEvent(hNode: Any, event: Any) -> None:
    """Change the event that a node records (cuGraphEventRecordNodeSetEvent)."""
    node = find_node(hNode)
    require(node.operation, RecordEvent)
    node.operation = RecordEvent(find_event(event))


@entry(values=1)
def cuGraphEventWaitNodeGetEvent(hNode: Any) -> Any:
    """Return the event for which a node waits (cuGraphEventWaitNodeGetEvent)."""
    return CUevent(require(find_node(hNode).operation, WaitForEvent).event.handle)


@entry()
def cuGraphEventWaitNodeSetEvent(hNode: Any, event: Any) -> None:
    """Change the event for which a node waits (cuGraphEventWaitNodeSetEvent)."""
    node = find_node(hNode)
    require(node.operation, WaitForEvent)
    node.operation = WaitForEvent(find_event(event))


@entry(values=1)
def cuGraphMemAllocNodeGetParams(hNode: Any) -> Any:
    """Return the size, the device and the address of a node's allocation (cuGraphMemAllocNodeGetParams)."""
    return allocation_parameters(require(find_node(hNode).operation, AllocateInGraph).allocation)


@entry(values=1)
def cuGraphMemFreeNodeGetParams(hNode: Any) -> Any:
    """Return the address that a node frees (cuGraphMemFreeNodeGetParams)."""
    return CUdeviceptr(require(find_node(hNode).operation, FreeInGraph).allocation.address)


@entry()
def cuGraphNodeSetParams(hNode: Any, nodeParams: Any) -> None:
    """Change a node's parameters, whose type must be the node's (cuGraphNodeSetParams)."""
    node = find_node(hNode)
    if nodeParams is None or nodeParams.type != node.type:
        raise invalid_value()
    made = changed_operation(nodeParams)
    if isinstance(made, KernelLaunch):
        made = kernel_of(nodeParams.kernel, require(node.operation, KernelLaunch).attributes)
    node.operation = made

"""Changes to single nodes in executable graphs: new parameters, and disabling them.

The caller names a node of the graph from which the executable graph was made. That graph stays as it is.
"""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CUgraphNodeType

from ...state import memory
from ...state.arguments import number
from ...state.errors import invalid_value
from ...state.queue.graphs import ChildGraph, find_graph, find_node
from ...state.queue.operations import Operation
from ...state.queue.user_objects import SharedReferences
from ..entry import entry
from ..launches.host_functions import HostCall
from ..launches.launches import KernelLaunch
from ..memory.fills import Fill
from ..memory.transfers.box_copies import BoxCopy
from ..memory.transfers.copies import Copy
from ..streams.events import RecordEvent, WaitForEvent, find_event
from ..streams.memory_operations import MemoryOperations
from .additions import changed_operation
from .execution.executables import Executable, executables
from .execution.flattening import FlatGraph, kinds_of
from .node_parameters import copy_of, fill_of, host_call_of, kernel_of, memory_operations_of, require

# The operations that can be disabled.
_SWITCHED = (KernelLaunch, Copy, BoxCopy, Fill)


def _find(hGraphExec: Any, hNode: Any) -> tuple[Executable, int, Operation]:
    """Return an executable graph, the position of a node's operation in it, and the current operation there."""
    executable = executables.find(hGraphExec)
    place = executable.flat.places.get(find_node(hNode).handle)
    if place is None:
        raise invalid_value()
    return executable, place, executable.operations[place]


def _mapping(address: int, size: int) -> tuple[Any, ...] | None:
    """Return the kind of memory at an address and its device, or None for pageable host memory."""
    allocation = memory.find(address, size)
    return None if allocation is None else (allocation.kind, allocation.device)


def _require_same_mapping(address: int, size: int, before: int) -> None:
    """Raise CUDA_ERROR_INVALID_VALUE for memory of another kind or device than the memory at the address `before`."""
    was = memory.known.find(before)  # None if that memory is pageable or has been freed
    if was is not None and _mapping(address, size) != (was.kind, was.device):
        raise invalid_value()


@entry()
def cuGraphExecChildGraphNodeSetParams(hGraphExec: Any, hNode: Any, childGraph: Any) -> None:
    """Replace the operations of a child graph in an executable graph (cuGraphExecChildGraphNodeSetParams)."""
    _change_child(executables.find(hGraphExec), hNode, childGraph)


def _change_child(executable: Executable, hNode: Any, childGraph: Any) -> None:
    node, child = find_node(hNode), find_graph(childGraph)
    places, operation, flat = executable.flat.children.get(node.handle), node.operation, FlatGraph(child)
    if (
        places is None
        or not isinstance(operation, ChildGraph)
        or kinds_of(child) != kinds_of(operation.graph)
        or flat.before != FlatGraph(operation.graph).before
    ):
        raise invalid_value()
    executable.operations[places.start : places.stop] = flat.operations
    for graph in (operation.graph, *operation.graph.inner):
        executable.references.pop(graph.handle, None)
    executable.references[operation.graph.handle] = SharedReferences(
        graph.references for graph in (child, *child.inner)
    )


@entry()
def cuGraphExecKernelNodeSetParams(hGraphExec: Any, hNode: Any, nodeParams: Any) -> None:
    """Change the parameters and the shape of a kernel in an executable graph (cuGraphExecKernelNodeSetParams)."""
    executable, place, before = _find(hGraphExec, hNode)
    executable.operations[place] = _changed_kernel(before, nodeParams)


def _changed_kernel(before: Operation, parameters: Any) -> KernelLaunch:
    """Return a launch in the same context, which keeps the attributes of the launch before."""
    kernel = require(before, KernelLaunch)
    made = kernel_of(parameters, kernel.attributes)
    if made.function.context is not kernel.function.context:
        raise invalid_value()
    return made


@entry()
def cuGraphExecMemcpyNodeSetParams(hGraphExec: Any, hNode: Any, copyParams: Any, ctx: Any) -> None:
    """Change the addresses and the size of a copy in an executable graph (cuGraphExecMemcpyNodeSetParams)."""
    executable, place, before = _find(hGraphExec, hNode)
    executable.operations[place] = _changed_copy(before, copy_of(copyParams, ctx))


def _changed_copy(before: Operation, made: BoxCopy) -> BoxCopy:
    """Return a copy that can replace a copy: both are one-dimensional, and between the same kinds of memory."""
    in_arrays = (False, False)
    if isinstance(before, Copy):
        source, destination = before.source, before.destination
    else:
        copy = require(before, BoxCopy)
        if copy.shape[:2] != (1, 1):
            raise invalid_value()
        in_arrays = copy.source.in_array, copy.destination.in_array
        source, destination = copy.source.address, copy.destination.address
    if made.shape[:2] != (1, 1) or (made.source.in_array, made.destination.in_array) != in_arrays:
        raise invalid_value()
    _require_same_mapping(made.source.address, made.size, source)
    _require_same_mapping(made.destination.address, made.size, destination)
    return made


@entry()
def cuGraphExecMemsetNodeSetParams(hGraphExec: Any, hNode: Any, memsetParams: Any, ctx: Any) -> None:
    """Change the memory and the value of a fill in an executable graph (cuGraphExecMemsetNodeSetParams)."""
    executable, place, before = _find(hGraphExec, hNode)
    executable.operations[place] = _changed_fill(before, fill_of(memsetParams, ctx))


def _changed_fill(before: Operation, made: Fill) -> Fill:
    """Return a fill that can replace a fill: of the same kind of memory and, if it has several rows, their layout."""
    fill = require(before, Fill)
    if max(made.height, fill.height) > 1 and made.layout != fill.layout:
        raise invalid_value()
    _require_same_mapping(made.address, made.extent, fill.address)
    return made


@entry()
def cuGraphExecHostNodeSetParams(hGraphExec: Any, hNode: Any, nodeParams: Any) -> None:
    """Change a host function in an executable graph, and its argument (cuGraphExecHostNodeSetParams)."""
    executable, place, before = _find(hGraphExec, hNode)
    require(before, HostCall)
    executable.operations[place] = host_call_of(nodeParams)


@entry()
def cuGraphExecBatchMemOpNodeSetParams(hGraphExec: Any, hNode: Any, nodeParams: Any) -> None:
    """Change the memory operations of a node in an executable graph (cuGraphExecBatchMemOpNodeSetParams)."""
    executable, place, before = _find(hGraphExec, hNode)
    require(before, MemoryOperations)
    executable.operations[place] = memory_operations_of(nodeParams)


@entry()
def cuGraphExecEventRecordNodeSetEvent(hGraphExec: Any, hNode: Any, event: Any) -> None:
    """Change the event that a node of an executable graph records (cuGraphExecEventRecordNodeSetEvent)."""
    executable, place, before = _find(hGraphExec, hNode)
    require(before, RecordEvent)
    executable.operations[place] = RecordEvent(find_event(event))


@entry()
def cuGraphExecEventWaitNodeSetEvent(hGraphExec: Any, hNode: Any, event: Any) -> None:
    """Change the event for which a node of an executable graph waits (cuGraphExecEventWaitNodeSetEvent)."""
    executable, place, before = _find(hGraphExec, hNode)
    require(before, WaitForEvent)
    executable.operations[place] = WaitForEvent(find_event(event))


@entry()
def cuGraphExecNodeSetParams(hGraphExec: Any, hNode: Any, nodeParams: Any) -> None:
    """Change a node of an executable graph, with parameters of the node's type (cuGraphExecNodeSetParams)."""
    if nodeParams is None or nodeParams.type != find_node(hNode).type:
        raise invalid_value()
    if nodeParams.type == CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH:
        _change_child(executables.find(hGraphExec), hNode, nodeParams.graph.graph)
        return
    executable, place, before = _find(hGraphExec, hNode)
    made = changed_operation(nodeParams)
    if isinstance(made, KernelLaunch):
        made = _changed_kernel(before, nodeParams.kernel)
    elif isinstance(made, BoxCopy):
        made = _changed_copy(before, made)
    elif isinstance(made, Fill):
        made = _changed_fill(before, made)
    executable.operations[place] = made


@entry()
def cuGraphNodeSetEnabled(hGraphExec: Any, hNode: Any, isEnabled: Any) -> None:
    """Disable a kernel, a copy or a fill in later launches, or enable it again (cuGraphNodeSetEnabled)."""
    executable, place, operation = _find(hGraphExec, hNode)
    if not isinstance(operation, _SWITCHED):
        raise invalid_value()
    if number(isEnabled):
        executable.disabled.discard(place)
    else:
        executable.disabled.add(place)


@entry(values=1)
def cuGraphNodeGetEnabled(hGraphExec: Any, hNode: Any) -> int:
    """Return whether a kernel, a copy or a fill is enabled (cuGraphNodeGetEnabled)."""
    executable, place, operation = _find(hGraphExec, hNode)
    if not isinstance(operation, _SWITCHED):
        raise invalid_value()
    return int(place not in executable.disabled)

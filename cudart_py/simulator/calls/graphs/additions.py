"""Calls that add nodes to graphs, one for each type of node, and the general call for all types."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from cuda.bindings.driver import CUgraphNode, CUgraphNodeType, CUresult

from ...state.arguments import number
from ...state.errors import StatusError, invalid_value
from ...state.queue.conditionals import Conditional
from ...state.queue.graphs import ChildGraph, Empty, Graph, find_graph, find_nodes
from ...state.queue.operations import Operation
from ..entry import entry
from ..memory.graph_memory import AllocateInGraph, allocation_of, free_in_graph
from ..streams.events import RecordEvent, WaitForEvent, find_event
from .conditionals import conditional_of
from .node_parameters import copy_of, fill_of, host_call_of, kernel_of, memory_operations_of

_TYPE = CUgraphNodeType
# The offset in bytes of the graphs in CUDA_CONDITIONAL_NODE_PARAMS, after the handle, the type and the size.
_GRAPHS_OFFSET = 16
# The value of CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, which older bindings lack.
_MOVE = 1


def _add(hGraph: Any, dependencies: Any, count: Any, make: Callable[[Graph], Operation]) -> Any:
    """Add the operation that `make` returns for a graph after some of the graph's nodes, and return the new node."""
    graph = find_graph(hGraph)
    before = find_nodes(graph, dependencies, count)
    return CUgraphNode(graph.add(make(graph), before).handle)


@entry(values=1)
def cuGraphAddKernelNode(hGraph: Any, dependencies: Any, numDependencies: Any, nodeParams: Any) -> Any:
    """Add a launch of a kernel after the given nodes (cuGraphAddKernelNode)."""
    return _add(hGraph, dependencies, numDependencies, lambda graph: kernel_of(nodeParams))


@entry(values=1)
def cuGraphAddMemcpyNode(hGraph: Any, dependencies: Any, numDependencies: Any, copyParams: Any, ctx: Any) -> Any:
    """Add a copy after the given nodes (cuGraphAddMemcpyNode)."""
    return _add(hGraph, dependencies, numDependencies, lambda graph: copy_of(copyParams, ctx))


@entry(values=1)
def cuGraphAddMemsetNode(hGraph: Any, dependencies: Any, numDependencies: Any, memsetParams: Any, ctx: Any) -> Any:
    """Add a fill after the given nodes (cuGraphAddMemsetNode)."""
    return _add(hGraph, dependencies, numDependencies, lambda graph: fill_of(memsetParams, ctx))


@entry(values=1)
def cuGraphAddHostNode(hGraph: Any, dependencies: Any, numDependencies: Any, nodeParams: Any) -> Any:
    """Add a call of a host function after the given nodes (cuGraphAddHostNode)."""
    return _add(hGraph, dependencies, numDependencies, lambda graph: host_call_of(nodeParams))


@entry(values=1)
def cuGraphAddEmptyNode(hGraph: Any, dependencies: Any, numDependencies: Any) -> Any:
    """Add a node that does nothing, but orders other nodes (cuGraphAddEmptyNode)."""
    return _add(hGraph, dependencies, numDependencies, lambda graph: Empty())


@entry(values=1)
def cuGraphAddEventRecordNode(hGraph: Any, dependencies: Any, numDependencies: Any, event: Any) -> Any:
    """Add a record of an event after the given nodes (cuGraphAddEventRecordNode)."""
    return _add(hGraph, dependencies, numDependencies, lambda graph: RecordEvent(find_event(event)))


@entry(values=1)
def cuGraphAddEventWaitNode(hGraph: Any, dependencies: Any, numDependencies: Any, event: Any) -> Any:
    """Add a wait for an event after the given nodes (cuGraphAddEventWaitNode)."""
    return _add(hGraph, dependencies, numDependencies, lambda graph: WaitForEvent(find_event(event)))


@entry(values=1)
def cuGraphAddChildGraphNode(hGraph: Any, dependencies: Any, numDependencies: Any, childGraph: Any) -> Any:
    """Add a copy of another graph as one node after the given nodes (cuGraphAddChildGraphNode)."""
    return _add(hGraph, dependencies, numDependencies, lambda graph: _child(graph, childGraph))


@entry(values=1)
def cuGraphAddMemAllocNode(hGraph: Any, dependencies: Any, numDependencies: Any, nodeParams: Any) -> Any:
    """Add an allocation after the given nodes, and store its address in the parameters (cuGraphAddMemAllocNode)."""
    return _add(hGraph, dependencies, numDependencies, lambda graph: _allocation(nodeParams))


@entry(values=1)
def cuGraphAddMemFreeNode(hGraph: Any, dependencies: Any, numDependencies: Any, dptr: Any) -> Any:
    """Add the end of a graph's allocation after the given nodes (cuGraphAddMemFreeNode)."""
    return _add(hGraph, dependencies, numDependencies, lambda graph: free_in_graph(graph, number(dptr)))


@entry(values=1)
def cuGraphAddBatchMemOpNode(hGraph: Any, dependencies: Any, numDependencies: Any, nodeParams: Any) -> Any:
    """Add a batch of stream memory operations after the given nodes (cuGraphAddBatchMemOpNode)."""
    return _add(hGraph, dependencies, numDependencies, lambda graph: memory_operations_of(nodeParams))


@entry(values=1)
def cuGraphAddNode(hGraph: Any, dependencies: Any, dependencyData: Any, numDependencies: Any, nodeParams: Any) -> Any:
    """Add a node of any type that is supported after the given nodes (cuGraphAddNode)."""
    if nodeParams is None:
        raise invalid_value()
    return _add(hGraph, dependencies, numDependencies, lambda graph: _operation(graph, nodeParams))


def _operation(graph: Graph, parameters: Any) -> Operation:
    """Return the operation that a CUgraphNodeParams describes."""
    match parameters.type:
        case _TYPE.CU_GRAPH_NODE_TYPE_EMPTY:
            return Empty()
        case _TYPE.CU_GRAPH_NODE_TYPE_GRAPH:
            given = parameters.graph
            return _child(graph, given.graph, moves=int(getattr(given, "ownership", 0)) == _MOVE)
        case _TYPE.CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            return _allocation(parameters.alloc)
        case _TYPE.CU_GRAPH_NODE_TYPE_MEM_FREE:
            return free_in_graph(graph, number(parameters.free.dptr))
        case _TYPE.CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return _conditional(graph, parameters.conditional)
    return changed_operation(parameters)


def changed_operation(parameters: Any) -> Operation:
    """Return the operation that a CUgraphNodeParams describes, if it is of a type whose parameters can be changed."""
    match parameters.type:
        case _TYPE.CU_GRAPH_NODE_TYPE_KERNEL:
            return kernel_of(parameters.kernel)
        case _TYPE.CU_GRAPH_NODE_TYPE_MEMCPY:
            return copy_of(parameters.memcpy.copyParams, parameters.memcpy.copyCtx)
        case _TYPE.CU_GRAPH_NODE_TYPE_MEMSET:
            return fill_of(parameters.memset, parameters.memset.ctx)
        case _TYPE.CU_GRAPH_NODE_TYPE_HOST:
            return host_call_of(parameters.host)
        case _TYPE.CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            return RecordEvent(find_event(parameters.eventRecord.event))
        case _TYPE.CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            return WaitForEvent(find_event(parameters.eventWait.event))
        case _TYPE.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            return memory_operations_of(parameters.memOp)
    raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)


def _child(graph: Graph, handle: Any, *, moves: bool = False) -> ChildGraph:
    """Return a copy of a graph as a child of another; if it `moves`, return the graph itself."""
    child = find_graph(handle)
    if graph is child or graph in child.inner:
        raise invalid_value()
    # `clone` refuses conditional nodes and allocations.
    return ChildGraph(child if moves else child.clone())


def _allocation(parameters: Any) -> AllocateInGraph:
    """Return the allocation that a CUDA_MEM_ALLOC_NODE_PARAMS describes, and store its address there."""
    made = allocation_of(parameters)
    parameters.dptr = made.allocation.address
    return made


def _conditional(graph: Graph, parameters: Any) -> Conditional:
    """Return the conditional node that a CUDA_CONDITIONAL_NODE_PARAMS describes, and store its bodies' handles."""
    made = conditional_of(graph, parameters)
    ctypes.c_size_t.from_address(parameters.getPtr() + _GRAPHS_OFFSET).value = ctypes.addressof(made.handles)
    return made

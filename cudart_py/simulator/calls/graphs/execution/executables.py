"""Executable graphs: graphs as they were when they were instantiated or updated, to be launched any number of times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import (
    CUgraphExec,
    CUgraphExecUpdateResult,
    CUgraphExecUpdateResultInfo,
    CUgraphInstantiate_flags,
    CUgraphInstantiateResult,
    CUgraphNodeType,
    CUresult,
)

from ....state.arguments import number
from ....state.contexts import current
from ....state.errors import StatusError
from ....state.fault_reports import put_report
from ....state.handles import Handles
from ....state.queue.conditionals import Conditional
from ....state.queue.graphs import Empty, Graph, find_graph, graphs
from ....state.queue.operations import Operation, Waits
from ....state.queue.user_objects import SharedReferences
from ....state.queue.work import Work
from ....state.streams import find_stream, refuse_in_capture, submit
from ...entry import entry
from ...launches.launches import KernelLaunch
from ...memory.graph_memory import AllocateInGraph, FreeInGraph
from ...streams.events import WaitForEvent
from .bodies import conditions_of
from .flattening import FlatGraph, kinds_of
from .node_order import NodeOrder, run_nodes

if TYPE_CHECKING:
    from ....state.contexts import Context

_FLAGS = CUgraphInstantiate_flags
_TYPES_IN_BODIES = {
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL,
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY,
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH,
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET,
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY,
    CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL,
}
_AUTO_FREE = _FLAGS.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH.value
_NODE_PRIORITY: int = _FLAGS.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY.value
_UPLOAD = _FLAGS.CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD.value
_ALLOWED = _AUTO_FREE | _UPLOAD | _NODE_PRIORITY
_DEVICE_LAUNCH = _FLAGS.CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH.value


class Executable:
    """An executable graph: its operations, and the positions of the direct predecessors of each operation.

    `references` are the references to user objects, by the handle of the graph that owned them.
    """

    def __init__(self, graph: Graph, flags: int) -> None:
        self.flags = flags
        self.graph = graph
        self.last: Work | None = None
        self.kinds = kinds_of(graph)
        # Maps the original graph's nodes to positions, because calls identify an operation to change by its node.
        self.flat = FlatGraph(graph)
        self.order = NodeOrder(self.flat.before, self.flat.created)
        self.operations = self.flat.operations
        self.disabled: set[int] = set()
        self.references = references_of(graph)


def references_of(graph: Graph) -> dict[int, SharedReferences]:
    """Retain the references of a graph and of the graphs inside it; return them by the handle of the graph."""
    return {one.handle: SharedReferences([one.references]) for one in (graph, *graph.inner)}


_NOTHING = Empty()


class RunGraph(Operation):
    """A launch of an executable graph, with its operations at the time of the launch.

    The queue drops it when it is done, and with it the references to user objects.
    """

    __slots__ = ("_may_wait", "_references", "operations", "order")

    computes = True

    def __init__(self, executable: Executable) -> None:
        self.operations: list[Operation] = [
            _NOTHING if place in executable.disabled else operation
            for place, operation in enumerate(executable.operations)
        ]
        self.order = executable.order
        self._references = list(executable.references.values())
        self._may_wait = any(operation.may_wait for operation in self.operations)

    @property
    def may_wait(self) -> bool:
        """Return whether a node may wait for values."""
        return self._may_wait

    def __str__(self) -> str:
        return f"the launch of a graph of {len(self.operations)} node{'' if len(self.operations) == 1 else 's'}"

    def steps(self, context: Context) -> Iterator[Waits]:
        """Run the operations, in an order that respects the dependencies."""
        for condition in conditions_of(self.operations):
            condition.begin()
        yield from run_nodes(self.operations, self.order, context)


executables: Handles[Executable] = Handles(CUresult.CUDA_ERROR_INVALID_VALUE)


def _instantiate(graph: Graph, flags: int) -> Any:
    current()
    if flags & _DEVICE_LAUNCH:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    if flags & ~_ALLOWED:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if graph.has_memory and any(other.graph is graph for other in executables):
        put_report("a graph that allocates or frees memory has one executable graph at a time")
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    _check_conditionals(graph)
    return CUgraphExec(executables.add(Executable(graph, flags)))


def _check_conditionals(graph: Graph) -> None:
    """Raise the status that the driver returns if a graph can't be instantiated because of its conditional nodes."""
    conditionals = [
        node.operation for one in (graph, *graph.inner) for node in one.nodes if isinstance(node.operation, Conditional)
    ]
    if any(not condition.used for one in (graph, *graph.inner) for condition in one.conditions):
        put_report("a condition of the graph does not belong to any conditional node")
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if conditionals and any(other.graph is graph for other in executables):
        put_report("a graph with conditional nodes has one executable graph at a time")
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if any(body not in graphs for conditional in conditionals for body in conditional.bodies):
        put_report("the body of a conditional node was destroyed by a capture that failed; a GPU's driver crashes here")
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    for body in (body for conditional in conditionals for one in conditional.bodies for body in (one, *one.inner)):
        for node in body.nodes:
            if node.type not in _TYPES_IN_BODIES:
                put_report(f"the body of a conditional node can't have a node of the type {node.type.name}")
                raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)


@entry(values=1, unsafe=True)
def cuGraphInstantiate(hGraph: Any, flags: Any) -> Any:
    """Create an executable graph from a graph as it is now; it can't be uploaded here (cuGraphInstantiate)."""
    graph, given = find_graph(hGraph), number(flags)
    if given & (_UPLOAD | _DEVICE_LAUNCH):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return _instantiate(graph, given)


@entry(values=1, unsafe=True)
def cuGraphInstantiateWithParams(hGraph: Any, instantiateParams: Any) -> Any:
    """Create an executable graph and store the outcome in the parameters (cuGraphInstantiateWithParams)."""
    graph = find_graph(hGraph)
    if instantiateParams is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    results = CUgraphInstantiateResult
    instantiateParams.result_out = results.CUDA_GRAPH_INSTANTIATE_ERROR
    executable = _instantiate(graph, int(instantiateParams.flags))
    instantiateParams.result_out = results.CUDA_GRAPH_INSTANTIATE_SUCCESS
    return executable


@entry(frees=True, unsafe=True)
def cuGraphExecDestroy(hGraphExec: Any) -> None:
    """Destroy an executable graph; launches of it still run (cuGraphExecDestroy)."""
    executables.find(hGraphExec)
    executables.remove(int(hGraphExec))


@entry(values=1)
def cuGraphExecGetFlags(hGraphExec: Any) -> int:
    """Return the flags with which an executable graph was instantiated (cuGraphExecGetFlags)."""
    # The driver returns no others (measured with CUDA 13.0).
    kept: int = executables.find(hGraphExec).flags & _AUTO_FREE
    return kept


@entry()
def cuGraphUpload(hGraphExec: Any, hStream: Any) -> None:
    """Do nothing, because a launch of an executable graph needs no preparation here (cuGraphUpload)."""
    executables.find(hGraphExec)
    refuse_in_capture(find_stream(hStream))


@entry()
def cuGraphLaunch(hGraphExec: Any, hStream: Any) -> None:
    """Launch an executable graph in a stream, after its earlier launches (cuGraphLaunch)."""
    executable, stream = executables.find(hGraphExec), find_stream(hStream)
    refuse_in_capture(stream)
    launch = RunGraph(executable)
    _check_memory(launch, frees=bool(executable.flags & _AUTO_FREE))
    marks = [operation.event.mark for operation in launch.operations if isinstance(operation, WaitForEvent)]
    work = submit(stream, launch, *filter(None, (executable.last, *marks)))
    assert work is not None  # the stream is not being captured
    executable.last = work
    for operation in launch.operations:
        operation.note_launched(work)


def _check_memory(launch: RunGraph, *, frees: bool) -> None:
    """Raise CUDA_ERROR_INVALID_VALUE if a launch would allocate memory that is not free, or free memory that is.

    If the launch `frees` what earlier launches of its graph have left allocated, this memory does not matter.
    """
    for operation in launch.operations:
        if isinstance(operation, AllocateInGraph) and operation.block.outstanding and not frees:
            put_report(f"{operation.allocation.record} has not been freed since the last launch of its graph")
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        if isinstance(operation, FreeInGraph) and not (operation.block.ends_in_graph or operation.block.outstanding):
            put_report(f"{operation.allocation.record} is not allocated when the graph that frees it is launched")
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)


@entry(values=1)
def cuGraphExecUpdate(hGraphExec: Any, hGraph: Any) -> Any:
    """Replace an executable graph's operations with those of a graph of the same topology (cuGraphExecUpdate)."""
    executable, graph = executables.find(hGraphExec), find_graph(hGraph)
    flat = FlatGraph(graph)
    outcome, reason = _difference(executable, graph, flat)
    if reason:
        put_report(f"{outcome.name}: {reason}")
        raise StatusError(CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
    executable.operations = flat.operations
    executable.references = references_of(graph)
    information = CUgraphExecUpdateResultInfo()
    information.result = outcome
    return information


def _difference(executable: Executable, graph: Graph, flat: FlatGraph) -> tuple[CUgraphExecUpdateResult, str]:
    """Return the outcome of an update, and the reason why it is impossible, "" if it is possible."""
    outcomes = CUgraphExecUpdateResult
    kinds = kinds_of(graph)
    if len(kinds) != len(executable.kinds):
        counts = f"{len(kinds)} nodes instead of {len(executable.kinds)}"
        return outcomes.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, f"the graph has {counts}"
    nodes = {node: index for index, node in enumerate(graph.nodes)}
    for node, kind, was in zip(graph.ordered(), kinds, executable.kinds, strict=True):
        if kind != was:
            place = nodes[node]
            return outcomes.CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, f"node {place} is now {node.type.name}"
    if tuple(flat.before) != executable.order.before:
        return outcomes.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, "nodes depend on other nodes"
    if graph.has_memory:
        return outcomes.CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, "graphs with allocations can't be updated"
    for place, (becomes, operation) in enumerate(zip(flat.operations, executable.operations, strict=True)):
        if _context(becomes) is not _context(operation):
            return outcomes.CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED, f"node {place}'s kernel has another context"
    return outcomes.CU_GRAPH_EXEC_UPDATE_SUCCESS, ""


def _context(operation: Operation) -> Context | None:
    return operation.function.context if isinstance(operation, KernelLaunch) else None

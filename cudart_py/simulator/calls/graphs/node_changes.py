"""Changes to single nodes in executable graphs: new parameters for kernels, copies, fills and child graphs.

The caller names a node of the graph from which the executable graph was made. That graph stays as it is.
"""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CUresult

from ...state import memory
from ...state.arguments import number
from ...state.contexts import find_context
from ...state.errors import StatusError
from ...state.queue.graphs import ChildGraph, find_graph, find_node
from ...state.queue.operations import Operation
from ..entry import entry
from ..launches.launches import KernelLaunch
from ..launches.parameters import packed_parameters
from ..launches.shapes import checked_launch
from ..memory.box_copies import BoxCopy, checked_box_copy
from ..memory.copies import Copy
from ..memory.fills import Fill, checked_fill
from ..modules.functions import find_function
from .executables import Executable, executables
from .flattening import FlatGraph, kinds_of

# The operations that can be disabled.
_SWITCHED = (KernelLaunch, Copy, BoxCopy, Fill)


def _find(hGraphExec: Any, hNode: Any) -> tuple[Executable, int, Operation]:
    """Return an executable graph, the position of a node's operation in it, and the current operation there."""
    executable = executables.find(hGraphExec)
    place = executable.flat.places.get(find_node(hNode).handle)
    if place is None:
        raise _refuse()
    return executable, place, executable.operations[place]


def _refuse() -> StatusError:
    return StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)


def _mapping(address: int, size: int) -> tuple[Any, ...] | None:
    """Return the kind of memory at an address and its device, or None for pageable host memory."""
    allocation = memory.find(address, size)
    return None if allocation is None else (allocation.kind, allocation.device)


def _require_same_mapping(address: int, size: int, before: int) -> None:
    """Raise CUDA_ERROR_INVALID_VALUE for memory of another kind or device than the memory at the address `before`."""
    was = memory.known.find(before)  # None if that memory is pageable or has been freed
    if was is not None and _mapping(address, size) != (was.kind, was.device):
        raise _refuse()


@entry()
def cuGraphExecChildGraphNodeSetParams(hGraphExec: Any, hNode: Any, childGraph: Any) -> None:
    """Replace the operations of a child graph in an executable graph (cuGraphExecChildGraphNodeSetParams)."""
    executable, node, child = executables.find(hGraphExec), find_node(hNode), find_graph(childGraph)
    places, operation, flat = executable.flat.children.get(node.handle), node.operation, FlatGraph(child)
    if (
        places is None
        or not isinstance(operation, ChildGraph)
        or kinds_of(child) != kinds_of(operation.graph)
        or flat.before != FlatGraph(operation.graph).before
    ):
        raise _refuse()
    executable.operations[places.start : places.stop] = flat.operations


@entry()
def cuGraphExecKernelNodeSetParams(hGraphExec: Any, hNode: Any, nodeParams: Any) -> None:
    """Change the parameters and the shape of a kernel in an executable graph (cuGraphExecKernelNodeSetParams)."""
    executable, place, before = _find(hGraphExec, hNode)
    if nodeParams is None or not isinstance(before, KernelLaunch):
        raise _refuse()
    function = find_function(nodeParams.func)
    if function.context is not before.function.context:
        raise _refuse()
    parameters = packed_parameters(function, nodeParams.kernelParams, nodeParams.extra)
    extents = (
        nodeParams.gridDimX,
        nodeParams.gridDimY,
        nodeParams.gridDimZ,
        nodeParams.blockDimX,
        nodeParams.blockDimY,
        nodeParams.blockDimZ,
    )
    # The node keeps the attributes of its launch.
    cluster = before.launch.cluster if before.launch.cluster != (1, 1, 1) else None
    launch = checked_launch(
        function,
        extents,
        nodeParams.sharedMemBytes,
        parameters,
        cooperative=before.launch.cooperative,
        cluster=cluster,
    )
    executable.operations[place] = KernelLaunch(function, launch)


@entry()
def cuGraphExecMemcpyNodeSetParams(hGraphExec: Any, hNode: Any, copyParams: Any, ctx: Any) -> None:
    """Change the addresses and the size of a copy in an executable graph (cuGraphExecMemcpyNodeSetParams)."""
    executable, place, before = _find(hGraphExec, hNode)
    find_context(ctx)
    if isinstance(before, Copy):
        source, destination = before.source, before.destination
        in_arrays = (False, False)
    elif isinstance(before, BoxCopy) and before.shape[:2] == (1, 1):
        in_arrays = before.source.in_array, before.destination.in_array
        source, destination = before.source.address, before.destination.address
    else:
        raise _refuse()
    made = checked_box_copy(copyParams, three=True)
    if made is None or made.shape[:2] != (1, 1) or (made.source.in_array, made.destination.in_array) != in_arrays:
        raise _refuse()
    _require_same_mapping(made.source.address, made.size, source)
    _require_same_mapping(made.destination.address, made.size, destination)
    executable.operations[place] = made


@entry()
def cuGraphExecMemsetNodeSetParams(hGraphExec: Any, hNode: Any, memsetParams: Any, ctx: Any) -> None:
    """Change the memory and the value of a fill in an executable graph (cuGraphExecMemsetNodeSetParams)."""
    executable, place, before = _find(hGraphExec, hNode)
    given, context = memsetParams, find_context(ctx)
    if given is None or not isinstance(before, Fill) or given.elementSize not in (1, 2, 4):
        raise _refuse()
    # The driver ignores the pitch of a single row.
    rows = given.pitch if given.height > 1 else 0, given.height
    made = checked_fill(given.dst, given.value, given.width, context, element=given.elementSize, rows=rows)
    if made is None or (max(made.height, before.height) > 1 and made.layout != before.layout):
        raise _refuse()
    _require_same_mapping(made.address, made.extent, before.address)
    executable.operations[place] = made


@entry()
def cuGraphNodeSetEnabled(hGraphExec: Any, hNode: Any, isEnabled: Any) -> None:
    """Disable a kernel, a copy or a fill in later launches, or enable it again (cuGraphNodeSetEnabled)."""
    executable, place, operation = _find(hGraphExec, hNode)
    if not isinstance(operation, _SWITCHED):
        raise _refuse()
    if number(isEnabled):
        executable.disabled.discard(place)
    else:
        executable.disabled.add(place)


@entry(values=1)
def cuGraphNodeGetEnabled(hGraphExec: Any, hNode: Any) -> int:
    """Return whether a kernel, a copy or a fill is enabled (cuGraphNodeGetEnabled)."""
    executable, place, operation = _find(hGraphExec, hNode)
    if not isinstance(operation, _SWITCHED):
        raise _refuse()
    return int(place not in executable.disabled)

"""Graph memory: allocations that a graph makes again at each of its launches, at the same address."""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import (
    CUDA_MEM_ALLOC_NODE_PARAMS,
    CUdeviceptr,
    CUgraphMem_attribute,
    CUgraphNodeType,
    CUmemAllocationHandleType,
    CUmemAllocationType,
    CUmemLocationType,
    CUresult,
    cuuint64_t,
)

from ...checks.races import concurrency
from ...state import memory
from ...state.arguments import number
from ...state.contexts import primary
from ...state.devices import Device, find_device
from ...state.errors import StatusError, invalid_value
from ...state.memory import Allocation
from ...state.memory.pools import Pool
from ...state.progress import progress
from ...state.queue.operations import Operation
from ...state.queue.stream import Stream
from ...state.queue.work import Work
from ..entry import entry

if TYPE_CHECKING:
    from ...state.contexts import Context
    from ...state.queue.graphs import Graph

_ATTRIBUTE = CUgraphMem_attribute


class GraphBlock(Pool):
    """The bytes of one allocation of a graph, kept while an operation of a graph or the host refers to them.

    `ends_in_graph` says whether the graph also frees the allocation, and `outstanding` whether a launch has left it
    allocated, and neither the host nor another graph has freed it yet. `launch` is the last launch that uses it.
    """

    def __init__(self, device: Device, size: int) -> None:
        super().__init__(device)
        capacity = memory.rounded(size)
        device.take(capacity)
        try:
            self.address = memory.space.region.open(size)
        except MemoryError:
            device.give(capacity)
            raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None
        self.size = capacity
        self.ends_in_graph = self.outstanding = False
        self.launch: Work | None = None
        close = partial(_close, device, self.address, size, capacity)
        weakref.finalize(self, progress.dropped.append, close).atexit = False

    @property
    def in_use(self) -> bool:
        """Whether a launch still needs the bytes, or has left them allocated."""
        return self.outstanding or not (self.launch is None or self.launch.done)

    def give_back(self, allocation: Allocation, stream: Stream | None, freed: Work | None) -> None:
        """Note that the host has freed the allocation, and keep the bytes for the next launch."""
        self.outstanding = False


def _close(device: Device, address: int, size: int, capacity: int) -> None:
    memory.space.region.close(address, size)
    device.give(capacity)


class AllocateInGraph(Operation):
    """The start of an allocation during a launch of a graph."""

    __slots__ = ("allocation", "block")

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_ALLOC

    def __init__(self, allocation: Allocation, block: GraphBlock) -> None:
        self.allocation = allocation
        self.block = block

    def run(self, context: Context) -> None:
        """Make the bytes live."""
        memory.begin_life(self.allocation)

    def note_launched(self, launch: Work) -> None:
        """Make the address known to the host, if the graph leaves it to the host or to another graph to free it."""
        self.block.launch = launch
        self.allocation.device.graph_memory.use(self.block)
        if not self.block.ends_in_graph:
            memory.known.add(self.allocation)
            self.block.outstanding = True

    def discard(self) -> None:
        """Make the address unknown to the host, unless a launch has left the memory allocated."""
        if not self.block.outstanding:
            memory.known.remove(self.allocation)


class FreeInGraph(Operation):
    """The end of an allocation during a launch of a graph."""

    __slots__ = ("allocation", "block")

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_FREE

    def __init__(self, allocation: Allocation, block: GraphBlock) -> None:
        self.allocation = allocation
        self.block = block

    def end_in_graph(self) -> None:
        """Note that the graph that makes the allocation also ends it; the host can't refer to it any longer."""
        self.block.ends_in_graph = True
        memory.known.remove(self.allocation)

    def run(self, context: Context) -> None:
        """Make the bytes no longer live for later work."""
        concurrency.check_free(self.allocation)
        memory.end_life(self.allocation)

    def note_launched(self, launch: Work) -> None:
        """Make the address unknown to the host when a launch that frees it is queued."""
        memory.known.remove(self.allocation)
        self.block.outstanding = False


# The allocations of graphs by their addresses, even while no launch has left them allocated.
_allocations: weakref.WeakValueDictionary[int, Allocation] = weakref.WeakValueDictionary()


def _allocate(context: Context, size: int) -> AllocateInGraph:
    """Return a new allocation for a graph.

    Its address is known to the host, which may pass it to the calls that add nodes. No work may access it before a
    launch of the graph.
    """
    block = GraphBlock(context.device, size)
    allocation = Allocation(block.address, size, memory.DEVICE, context, pool=block)
    memory.known.add(allocation)
    _allocations[block.address] = allocation
    return AllocateInGraph(allocation, block)


def allocate_in_capture(stream: Stream, size: int) -> int:
    """Add an allocation to the graph into which a stream is captured, and return its address."""
    assert stream.capture is not None
    stream.capture.require_valid()
    made = _allocate(stream.context, size)
    stream.capture.add(stream, made)
    return made.block.address


def free_in_capture(stream: Stream, allocation: Allocation) -> None:
    """Add the end of a graph's allocation to the graph into which a stream is captured."""
    assert stream.capture is not None
    stream.capture.require_valid()
    stream.capture.add(stream, free_in_graph(stream.capture.graph, allocation.address))


def allocation_of(parameters: Any) -> AllocateInGraph:
    """Return the allocation that a CUDA_MEM_ALLOC_NODE_PARAMS describes: memory of a device for all uses."""
    if parameters is None or number(parameters.bytesize) <= 0:
        raise invalid_value()
    properties = parameters.poolProps
    if (
        properties.allocType != CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        or properties.handleTypes != CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE
        or properties.location.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    ):
        raise invalid_value()
    return _allocate(primary(find_device(properties.location.id)), number(parameters.bytesize))


def free_in_graph(graph: Graph, address: int) -> FreeInGraph:
    """Return the end, for a graph, of the allocation at an address that this graph or another one makes.

    A graph frees an allocation only once.
    """
    allocation = _allocations.get(address)
    if allocation is None or not isinstance(allocation.pool, GraphBlock) or allocation.pool.ends_in_graph:
        raise invalid_value()
    made = FreeInGraph(allocation, allocation.pool)
    operations = [node.operation for node in graph.nodes]
    if any(isinstance(one, FreeInGraph) and one.allocation is allocation for one in operations):
        raise invalid_value()
    if any(isinstance(one, AllocateInGraph) and one.allocation is allocation for one in operations):
        made.end_in_graph()
    return made


def allocation_parameters(allocation: Allocation) -> Any:
    """Return the parameters of an allocation of a graph as a CUDA_MEM_ALLOC_NODE_PARAMS."""
    made = CUDA_MEM_ALLOC_NODE_PARAMS()
    made.poolProps.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    made.poolProps.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    made.poolProps.location.id = allocation.device.ordinal
    made.bytesize = allocation.size
    made.dptr = CUdeviceptr(allocation.address)
    return made


@entry(values=1)
def cuDeviceGetGraphMemAttribute(device: Any, attr: Any) -> Any:
    """Return the size in bytes of the memory of graphs, or the largest size so far (cuDeviceGetGraphMemAttribute)."""
    found = find_device(device).graph_memory
    match number(attr):
        case _ATTRIBUTE.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT | _ATTRIBUTE.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
            return cuuint64_t(found.size)
        case _ATTRIBUTE.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
            return cuuint64_t(found.used_high)
        case _ATTRIBUTE.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
            return cuuint64_t(found.reserved_high)
    raise invalid_value()


@entry()
def cuDeviceSetGraphMemAttribute(device: Any, attr: Any, value: Any) -> None:
    """Reset a largest size of the memory of graphs with 0 (cuDeviceSetGraphMemAttribute)."""
    found, key = find_device(device).graph_memory, number(attr)
    if number(value):
        raise invalid_value()
    if key == _ATTRIBUTE.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        found.used_high = found.size
    elif key == _ATTRIBUTE.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        found.reserved_high = found.size
    else:
        raise invalid_value()


@entry()
def cuDeviceGraphMemTrim(device: Any) -> None:
    """Release the memory of graphs that is not in use (cuDeviceGraphMemTrim)."""
    find_device(device).graph_memory.trim()

"""Graph memory: allocations that a captured graph makes again at each of its launches, at the same address."""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING

from cuda.bindings.driver import CUgraphNodeType, CUresult

from ...state import memory
from ...state.devices import Device
from ...state.errors import StatusError
from ...state.memory import Allocation
from ...state.memory.pools import Pool
from ...state.progress import progress
from ...state.queue.operations import Operation
from ...state.queue.stream import Stream
from ...state.queue.work import Work

if TYPE_CHECKING:
    from ...state.contexts import Context


class GraphBlock(Pool):
    """The bytes of one allocation of a graph, kept while an operation of a graph or the host refers to them."""

    def __init__(self, device: Device, size: int) -> None:
        super().__init__(device)
        capacity = memory.rounded(size)
        device.take(capacity)
        try:
            self.address = memory.space.region.open(size)
        except MemoryError:
            device.give(capacity)
            raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY) from None
        self.ends_in_graph = False
        close = partial(_close, device, self.address, size, capacity)
        weakref.finalize(self, progress.dropped.append, close).atexit = False

    def give_back(self, allocation: Allocation, stream: Stream | None, freed: Work | None) -> None:
        """Keep the bytes for the next launch."""


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

    def note_launched(self) -> None:
        """Make the address known to the host when a launch is queued, if the graph leaves it to the host to free it."""
        if not self.block.ends_in_graph:
            memory.known.add(self.allocation)

    def discard(self) -> None:
        """Make the address unknown to the host, because no launch will allocate it."""
        memory.known.remove(self.allocation)


class FreeInGraph(Operation):
    """The end of an allocation during a launch of a graph."""

    __slots__ = ("allocation",)

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_FREE

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation

    def run(self, context: Context) -> None:
        """Make the bytes no longer live for later work."""
        memory.end_life(self.allocation)


def allocate_in_capture(stream: Stream, size: int) -> int:
    """Add an allocation to the graph into which a stream is captured, and return its address."""
    assert stream.capture is not None
    stream.capture.require_valid()
    block = GraphBlock(stream.context.device, size)
    allocation = Allocation(block.address, size, memory.DEVICE, stream.context, pool=block)
    stream.capture.add(stream, AllocateInGraph(allocation, block))
    # The host may pass it to the calls that are captured next; no work may access it before a launch.
    memory.known.add(allocation)
    return block.address


def free_in_capture(stream: Stream, allocation: Allocation) -> None:
    """Add the end of a graph's allocation to the graph into which a stream is captured."""
    assert stream.capture is not None
    block = allocation.pool
    if not isinstance(block, GraphBlock):
        stream.capture.invalidate()
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    stream.capture.add(stream, FreeInGraph(allocation))
    memory.known.remove(allocation)
    block.ends_in_graph = True

"""Memory of graphs: arrays that the launches of a graph allocate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import errors
from ..base import arguments
from ..base.shapes import Shape
from ..context.capture import Capture, RetainedObjects, captures, find, refuse
from ..context.current import activated
from ..context.device import Device
from ..driver import enums
from ..driver.calls import api, raw
from ..driver.unwrap import failure
from ..memory.allocation import Allocation, allocation_error, free_when_idle
from ..memory.array import DeviceArray, allocate_array
from ..streams.graphs.nodes import Launched, NodeWork
from ..streams.stream import Stream, legacy_default, stream_of


class GraphAllocation(Allocation):
    """Memory that a graph allocates and frees at each launch, at the same address."""

    __slots__ = ("_capture", "_stream")

    ends_in_graph = True
    _closed_how = ", by close() or at the end of the capture"

    def __init__(self, nbytes: int, stream: Stream, capture: Capture) -> None:
        self._owned = True
        self._value = None
        self.device = stream.device
        self._capture = capture
        self._stream = stream
        with activated(self.device):
            status, value = raw.cuMemAllocAsync(nbytes, stream.native)
        if status:
            raise allocation_error(status, "cuMemAllocAsync", nbytes)
        self._value = int(value)
        capture.temporaries[self._value] = self

    def end_in(self, stream: Stream) -> None:
        """Make the graph free the memory in the order of another of its streams."""
        self._stream = stream

    def _release(self, value: Any) -> None:
        capture = self._capture
        if capture.ended:
            return
        capture.temporaries.pop(value, None)
        # If the stream has left the capture in the meantime, the free is ordered in the capture's first stream.
        known = not self._stream.closed and find(self._stream.handle) is capture
        with activated(self.device):
            api.cuMemFreeAsync(value, self._stream.handle if known else capture.handle)


class _NodeMemory(Allocation):
    """Memory that the launches of a graph allocate; `outstanding` is True while a launch has left it allocated."""

    __slots__ = ("outstanding",)

    _closed_how = ", by close()"

    def __init__(self, value: int, device: Device) -> None:
        self._owned = True
        self._value = value
        self.device = device
        self.outstanding = False

    def free(self, stream: Stream) -> None:
        """Free the memory of the last launch in the order of a stream."""
        with activated(self.device):
            api.cuMemFreeAsync(self._value, stream.native)
        self.outstanding = False

    def _release(self, value: Any) -> None:
        if self.outstanding:
            free_when_idle(value, self.device)  # the launch may be in any stream


class NodeAllocation(NodeWork, Launched):
    """An array for a node of the kind "mem_alloc", which each launch of the graph allocates (cuGraphAddMemAllocNode).

        scratch = cuda.graphs.NodeAllocation(n, np.float32)
        node = graph.add(scratch)
        last = graph.add(kernel[grid, block].bind(x, scratch.array), after=node)
        graph.add(cuda.graphs.NodeFree(scratch), after=last)

    The array's address is the same at each launch. Nodes that use it must depend on the node that allocates it. Without
    a `NodeFree`, the memory outlives the launch. It must then be freed before the next launch, with `free` or by
    another graph, or automatically if the graph was instantiated with `auto_free=True`. `shape` is an int or a tuple.
    Raises ValueError for an array without elements.
    """

    __slots__ = ("_array", "_dtype", "_memory", "_nbytes", "_shape")

    _kind = "mem_alloc"

    def __init__(self, shape: Shape, dtype: DTypeLike = np.float64) -> None:
        self._shape, self._dtype, self._nbytes = arguments.layout("NodeAllocation", shape, dtype)
        if not self._nbytes:
            raise arguments.unusable("NodeAllocation", "shape", "have at least one element", shape)
        self._memory: _NodeMemory | None = None
        self._array: DeviceArray | None = None

    @property
    def array(self) -> DeviceArray:
        """The array, for the other nodes of the graph and for work between launches.

        Its memory exists as long as a graph that allocates it, or until it is freed if a launch has left it allocated.
        Closing it frees such memory once all work on the device has finished. Raises ValueError before the allocation
        was added to a graph.
        """
        if self._array is None:
            raise ValueError("NodeAllocation: the array has no address yet: add the allocation to a graph first")
        return self._array

    def free(self, *, stream: Stream | None = None) -> None:
        """Free the memory that the last launch has left allocated, in the order of a stream (cuMemFreeAsync).

        The next launch allocates it again. Raises ValueError if it is not allocated, and CaptureError if the stream is
        being captured: a `NodeFree` frees it in a graph.
        """
        call = "NodeAllocation.free"
        queue = stream_of(call, stream)
        if captures:
            refuse(queue.handle, "NodeAllocation.free", "add a NodeFree to the graph")
        if self._memory is None or self._memory.closed or not self._memory.outstanding:
            raise ValueError(f"{call}: no launch has left the memory allocated")
        self._memory.free(queue)

    def _check_node(self, call: str, device: Device, *, adds: bool = False) -> None:
        """Raise ValueError for a change, and for an allocation that already belongs to a node."""
        if not adds:
            raise _fixed(call)
        if self._memory is not None:
            raise arguments.unusable(call, "work", "not belong to a node already", remedy="make one per node")

    def _add_node(self, graph: int, before: list[Any], device: Device) -> Any:
        """Add a node that allocates the array to a graph, and return it."""
        given = enums.CUDA_MEM_ALLOC_NODE_PARAMS()
        properties = given.poolProps
        properties.allocType = enums.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.handleTypes = enums.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE
        properties.location.type = enums.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = device.ordinal
        given.bytesize = self._nbytes
        status, node = raw.cuGraphAddMemAllocNode(graph, before, len(before), given)
        if status:
            raise allocation_error(status, "cuGraphAddMemAllocNode", self._nbytes)
        self._memory = memory = _NodeMemory(int(given.dptr), device)
        self._array = DeviceArray(
            memory.handle, self._shape, self._dtype, self._nbytes, device, legacy_default, None, memory
        )
        return node

    def _retained_by(self, node: int) -> RetainedObjects:
        """Return the array, and this allocation, which notes that a launch has left the memory allocated."""
        return RetainedObjects("an allocation", (self._array, self), node)

    def _note_launched(self) -> None:
        """Note that a launch allocates the memory."""
        if self._memory is not None:
            self._memory.outstanding = True

    def __repr__(self) -> str:
        return f"<NodeAllocation {self._shape} {self._dtype}>"


class NodeFree(NodeWork, Launched):
    """The freeing of an array, for a node of the kind "mem_free" (cuGraphAddMemFreeNode).

    `allocation` is a `NodeAllocation` that was added to this graph or to another one on the same device. In its own
    graph, the node must come after all nodes that use the array, and no later node can use it.
    """

    __slots__ = ("_allocation",)

    _kind = "mem_free"

    def __init__(self, allocation: NodeAllocation) -> None:
        self._allocation = arguments.instance("NodeFree", "allocation", allocation, NodeAllocation)

    def _check_node(self, call: str, device: Device, *, adds: bool = False) -> None:
        """Raise ValueError for a change, and for an allocation that was not added to a graph of this device."""
        if not adds:
            raise _fixed(call)
        array = self._allocation.array
        if array.closed or array.device is not device:
            actual = "a closed array" if array.closed else f"one on device {array.device.ordinal}"
            raise arguments.unusable(call, "work", f"free an array on device {device.ordinal}, like the graph", actual)

    def _add_node(self, graph: int, before: list[Any], device: Device) -> Any:
        """Add a node that frees the memory to a graph, and return it."""
        address = self._allocation.array.pointer
        status, node = raw.cuGraphAddMemFreeNode(graph, before, len(before), int(address))
        if status:
            raise failure(status, "cuGraphAddMemFreeNode", "A graph frees an allocation once, after its node")
        return node

    def _retained_by(self, node: int) -> RetainedObjects:
        """Return the array, and this work, which notes that a launch frees the memory."""
        return RetainedObjects("a free", (self._allocation.array, self), node)

    def _note_launched(self) -> None:
        """Note that a launch frees the memory."""
        memory = self._allocation._memory
        if memory is not None:
            memory.outstanding = False

    def __repr__(self) -> str:
        return f"<NodeFree of {self._allocation!r}>"


def _fixed(call: str) -> ValueError:
    return arguments.unusable(call, "work", "be a launch, a copy, a fill, a function or an event", "memory")


def empty(shape: Shape, dtype: DTypeLike = np.float64, *, stream: Stream) -> DeviceArray:
    """Allocate an array that exists only during launches of the graph that the stream records (cuMemAllocAsync).

        with stream.capture() as graph:
            with cuda.graphs.empty(n, np.float32, stream=stream) as scratch:
                first[grid, block, 0, stream](x, scratch)
                second[grid, block, 0, stream](scratch, y)

    Each launch of the graph allocates the array without initialising it, and frees it at the point in stream order at
    which it was closed, or at the end of the launch. Graphs that do not run at the same time may share such memory. A
    graph with allocations can have only one executable graph at a time, cannot be part of another graph and cannot be
    used for an update. `shape` is an int or a tuple. Raises CaptureError if the stream is not being captured or records
    the body of a conditional node, and OutOfMemoryError, with the sizes, if there is not enough memory.
    """
    call = "graphs.empty"
    sizes, kind, nbytes = arguments.layout(call, shape, dtype)
    queue = stream_of(call, arguments.instance(call, "stream", stream, Stream, "a cudart_py Stream"))
    capture = find(queue.handle)
    if capture is None:
        raise errors.CaptureError(f"{call}: the stream is not being captured; outside a capture use cudart_py.empty")
    capture.refuse_in_body(call)
    if not nbytes:
        return allocate_array(call, sizes, kind, queue)
    base = GraphAllocation(nbytes, queue, capture)
    return DeviceArray(base.handle, sizes, kind, nbytes, base.device, queue, None, base)

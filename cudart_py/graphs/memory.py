"""Memory of graphs: arrays that exist only during a launch of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import arguments, errors
from ..context.capture import Capture, find
from ..context.current import activated
from ..driver.calls import api, raw
from ..memory.allocation import Allocation, allocation_error
from ..memory.array import DeviceArray, allocate_array
from ..shapes import Shape
from ..streams.stream import Stream, stream_of


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

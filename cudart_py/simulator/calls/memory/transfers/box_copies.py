"""Two- and three-dimensional copies of boxes of bytes, in pitched memory or in CUDA arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from cuda.bindings.driver import CUgraphNodeType, CUmemorytype

from ....checks.findings import site_to_report
from ....checks.races import concurrency
from ....checks.uninitialised.copied_memory import check_copy_to_host, note_copied
from ....state import memory
from ....state.arguments import number
from ....state.attributes import attribute
from ....state.contexts import current, given_context
from ....state.errors import invalid_value
from ....state.memory import DEVICE, Allocation
from ....state.queue.operations import Operation
from ....state.queue.scheduling import fork_all, join_all
from ....state.queue.stream import Stream
from ....state.streams import find_stream, refuse_in_capture, run_now, submit
from ...entry import entry
from ..cuda_arrays import given_array
from .copies import returns_when_done

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ....state.contexts import Context


@dataclass(slots=True)
class Box:
    """The source or destination of a copy: the address of its first byte, and the pitches of rows and slices in bytes.

    `layered_rows` says that it is in a CUDA array whose layers are single rows.
    """

    address: int
    pitch: int
    slice_pitch: int
    allocation: Allocation | None = None
    in_array: bool = False
    layered_rows: bool = False

    def extent(self, shape: tuple[int, int, int]) -> int:
        """Return the number of bytes from the first byte to the last; `shape` is depth, height, and width in bytes."""
        depth, height, width = shape
        return (depth - 1) * self.slice_pitch + (height - 1) * self.pitch + width

    def rows(self, shape: tuple[int, int, int]) -> Iterator[tuple[int, int]]:
        """Yield each row's address and size in bytes."""
        depth, height, width = shape
        for z in range(depth):
            for y in range(height):
                yield self.address + z * self.slice_pitch + y * self.pitch, width

    def view(self, shape: tuple[int, int, int]) -> NDArray[np.uint8]:
        """Return a view of the bytes; the caller has checked that they may be accessed."""
        return memory.space.window(self.address, shape, (self.slice_pitch, self.pitch, 1))


class BoxCopy(Operation):
    """A copy of a box of bytes; `held` contains the bytes if the source was read during the call."""

    __slots__ = ("destination", "held", "shape", "site", "source")

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY

    def __init__(self, destination: Box, source: Box, shape: tuple[int, int, int]) -> None:
        self.destination = destination
        self.source = source
        self.shape = shape
        self.held: NDArray[np.uint8] | None = None
        self.site = site_to_report()

    @property
    def size(self) -> int:
        """Return the number of bytes that are copied."""
        return self.shape[0] * self.shape[1] * self.shape[2]

    def describe(self) -> str:
        """Return how many bytes are copied."""
        return f"{self.size} bytes"

    def parameters(self) -> list[str]:
        """Return both addresses and the shape in planes, rows and bytes."""
        return [f"from {self.source.address:#x}", f"to {self.destination.address:#x}", f"shape {self.shape}"]

    def run(self, context: Context) -> None:
        """Move the bytes."""
        shape = self.shape
        if self.source.allocation is not None and self.held is None:
            memory.require_live(self.source.address, self.source.extent(shape), "the source of a copy")
            concurrency.touch(self.source.rows(shape), "a copy", writes=False, site=self.site)
            check_copy_to_host(list(self.source.rows(shape)), self.destination.address, self.site)
        if self.destination.allocation is not None:
            memory.require_live(self.destination.address, self.destination.extent(shape), "the destination of a copy")
            concurrency.touch(self.destination.rows(shape), "a copy", writes=True, site=self.site)
        self.destination.view(shape)[...] = self.source.view(shape) if self.held is None else self.held
        if self.destination.allocation is not None and not self._note_copied():
            # The padding between rows counts as written too.
            memory.note_written(self.destination.address, self.destination.extent(shape))

    def _note_copied(self) -> bool:
        """Record which bytes of the destination have been written, if not all bytes of the source have been."""
        if self.source.allocation is None or self.held is not None:
            return False
        pairs = zip(self.destination.rows(self.shape), self.source.rows(self.shape), strict=True)
        return note_copied([(to, source, size) for (to, size), (source, _) in pairs])


def _base(parameters: Any, end: str) -> tuple[int, CUmemorytype]:
    """Return the base address (0 for an array) and the memory type that the caller passed for `end`, "src" or "dst"."""
    try:
        kind = getattr(parameters, f"{end}MemoryType")
    except ValueError:
        # The bindings raise for a memory type that was never set.
        raise invalid_value() from None
    if kind == CUmemorytype.CU_MEMORYTYPE_HOST:
        return number(getattr(parameters, f"{end}Host")), kind
    if kind in (CUmemorytype.CU_MEMORYTYPE_DEVICE, CUmemorytype.CU_MEMORYTYPE_UNIFIED):
        return number(getattr(parameters, f"{end}Device")), kind
    return 0, kind


def _in_array(parameters: Any, end: str, shape: tuple[int, int, int], *, three: bool) -> Box:
    """Return the checked source or destination of a copy, which is in a CUDA array."""
    array = given_array(getattr(parameters, f"{end}Array"))
    x, y = getattr(parameters, f"{end}XInBytes"), getattr(parameters, f"{end}Y")
    z = getattr(parameters, f"{end}Z") if three else 0
    depth, height, width = shape
    if (three and getattr(parameters, f"{end}LOD")) or x + width > array.width * array.texel:
        raise invalid_value()
    if y + height > max(array.height, 1) or z + depth > max(array.depth, 1) or (array.depth and not three):
        raise invalid_value()
    address = array.allocation.address + z * array.slice_pitch + y * array.pitch + x
    layered_rows = array.layered and not array.height
    return Box(address, array.pitch, array.slice_pitch, array.allocation, in_array=True, layered_rows=layered_rows)


def _end(parameters: Any, end: str, shape: tuple[int, int, int], *, three: bool) -> Box:
    """Return the checked source or destination of a copy."""
    base, kind = _base(parameters, end)
    if kind == CUmemorytype.CU_MEMORYTYPE_ARRAY:
        return _in_array(parameters, end, shape, three=three)
    x, y = getattr(parameters, f"{end}XInBytes"), getattr(parameters, f"{end}Y")
    z = getattr(parameters, f"{end}Z") if three else 0
    pitch = getattr(parameters, f"{end}Pitch")
    rows = getattr(parameters, f"{end}Height") if three else 0
    depth, height, width = shape
    # A pitch or a height of 0 means that the rows or the planes are adjacent.
    pitch, rows = pitch or x + width, rows or y + height
    single_row = depth == height == 1 and not y and not z
    if pitch < x + width or (pitch > attribute("MAX_PITCH") and not single_row) or (three and rows < y + height):
        raise invalid_value()
    slice_pitch = rows * pitch
    box = Box(base + z * slice_pitch + y * pitch + x, pitch, slice_pitch)
    if not base:
        raise invalid_value()
    allocation = memory.find(box.address, box.extent(shape))
    if kind == CUmemorytype.CU_MEMORYTYPE_DEVICE and allocation is None:
        raise invalid_value()
    box.allocation = allocation
    return box


def checked_box_copy(parameters: Any, *, three: bool) -> BoxCopy | None:
    """Return the copy that a CUDA_MEMCPY2D or CUDA_MEMCPY3D describes, or None if it is empty.

    Raises StatusError if it is invalid.
    """
    if parameters is None:
        raise invalid_value()
    shape = (parameters.Depth if three else 1), parameters.Height, parameters.WidthInBytes
    if not all(shape):
        return None
    source = _end(parameters, "src", shape, three=three)
    destination = _end(parameters, "dst", shape, three=three)
    for one, other in ((source, destination), (destination, source)):
        # On an H200, driver 580.159 advances by the pitch from layer to layer here, and ignores srcHeight or dstHeight.
        if other.layered_rows and not one.in_array and one.allocation is not None and one.allocation.kind == DEVICE:
            one.slice_pitch = one.pitch
    return BoxCopy(destination, source, shape)


def _copy_box(parameters: Any, stream: Stream, *, three: bool, waits: bool) -> None:
    operation = checked_box_copy(parameters, three=three)
    if operation is None:
        return
    source, destination = operation.source, operation.destination
    if stream.capture is not None:
        submit(stream, operation)
        return
    if returns_when_done(source.allocation, destination.allocation, waits=waits):
        run_now(stream, operation)
        return
    if source.allocation is None:
        operation.held = source.view(operation.shape).copy()
    submit(stream, operation)


@entry()
def cuMemcpy2D(pCopy: Any) -> None:
    """Copy rows of bytes (cuMemcpy2D)."""
    _copy_box(pCopy, current().legacy, three=False, waits=True)


@entry()
def cuMemcpy2DUnaligned(pCopy: Any) -> None:
    """Copy rows of bytes with any pitch (cuMemcpy2DUnaligned)."""
    _copy_box(pCopy, current().legacy, three=False, waits=True)


@entry()
def cuMemcpy2DAsync(pCopy: Any, hStream: Any) -> None:
    """Copy rows of bytes in a stream (cuMemcpy2DAsync)."""
    _copy_box(pCopy, find_stream(hStream), three=False, waits=False)


@entry()
def cuMemcpy3D(pCopy: Any) -> None:
    """Copy a box of bytes (cuMemcpy3D)."""
    _copy_box(pCopy, current().legacy, three=True, waits=True)


@entry()
def cuMemcpy3DAsync(pCopy: Any, hStream: Any) -> None:
    """Copy a box of bytes in a stream (cuMemcpy3DAsync)."""
    _copy_box(pCopy, find_stream(hStream), three=True, waits=False)


@entry()
def cuMemcpy3DPeer(pCopy: Any) -> None:
    """Copy a box of bytes from one context's memory to another's, between all work of both (cuMemcpy3DPeer)."""
    stream = current().legacy
    contexts = dict.fromkeys((stream.context, *_contexts_of(pCopy)))
    join_all(stream, contexts)
    _copy_box(pCopy, stream, three=True, waits=False)
    fork_all(stream, contexts)


@entry()
def cuMemcpy3DPeerAsync(pCopy: Any, hStream: Any) -> None:
    """Copy a box of bytes from one context's memory to another's in a stream (cuMemcpy3DPeerAsync)."""
    stream = find_stream(hStream)
    _contexts_of(pCopy)
    refuse_in_capture(stream)  # as cuMemcpyPeerAsync
    _copy_box(pCopy, stream, three=True, waits=False)


def _contexts_of(parameters: Any) -> list[Context]:
    """Return the contexts of both ends of a copy; arrays belong to a context of their own."""
    if parameters is None:
        raise invalid_value()
    ends = ((parameters.srcMemoryType, parameters.srcContext), (parameters.dstMemoryType, parameters.dstContext))
    return [given_context(context) for kind, context in ends if kind != CUmemorytype.CU_MEMORYTYPE_ARRAY]

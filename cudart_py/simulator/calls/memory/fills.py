"""Fills: setting contiguous or pitched memory to a value of 8, 16 or 32 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from cuda.bindings.driver import CUgraphNodeType, CUresult
from numpy.typing import DTypeLike

from ...checks.findings import site_to_report
from ...checks.races import concurrency
from ...state import memory
from ...state.arguments import number
from ...state.contexts import current
from ...state.errors import StatusError
from ...state.queue.operations import Operation
from ...state.queue.stream import Stream
from ...state.streams import find_stream, run_now, submit
from ..entry import entry

if TYPE_CHECKING:
    from ...state.contexts import Context

_TYPES: dict[int, DTypeLike] = {1: np.uint8, 2: np.uint16, 4: np.uint32}


class Fill(Operation):
    """A fill of rows of elements with a value; `width` is in elements, and `pitch` in bytes."""

    __slots__ = ("address", "height", "pitch", "site", "value", "width", "width_bytes")

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET

    def __init__(self, address: int, value: int, width_bytes: int, width: int, height: int, pitch: int) -> None:
        self.address = address
        self.value = value
        self.width_bytes = width_bytes
        self.width = width
        self.height = height
        self.pitch = pitch
        self.site = site_to_report()

    @property
    def extent(self) -> int:
        """Return the number of bytes from the first byte to the last byte that is set."""
        return (self.height - 1) * self.pitch + self.width * self.width_bytes

    @property
    def layout(self) -> tuple[int, int, int, int]:
        """Return the size of an element in bytes, the elements per row, the number of rows and the pitch in bytes."""
        return self.width_bytes, self.width, self.height, self.pitch

    def describe(self) -> str:
        """Return the value and the shape."""
        return f"{self.value:#x} in {self.height} x {self.width} x {self.width_bytes} bytes"

    def parameters(self) -> list[str]:
        """Return the address and the pitch."""
        return [f"at {self.address:#x}", f"pitch {self.pitch} bytes"]

    def run(self, context: Context) -> None:
        """Set the bytes."""
        memory.require_live(self.address, self.extent, "a fill")
        size = self.width * self.width_bytes
        rows = ((self.address + row * self.pitch, size) for row in range(self.height))
        concurrency.touch(rows, "a fill", writes=True, site=self.site)
        element = self.width_bytes
        shape, strides = (self.height, self.width), (self.pitch, element)
        memory.space.window(self.address, shape, strides, _TYPES[element])[...] = self.value
        memory.note_written(self.address, self.extent)


def checked_fill(
    pointer: Any, value: Any, width: Any, context: Context, *, element: int, rows: tuple[Any, Any]
) -> Fill | None:
    """Return a fill of rows of `width` elements, with `rows` as the pitch in bytes and the height; None if it is empty.

    Raises CUDA_ERROR_INVALID_VALUE for a fill that the driver refuses.
    """
    address, columns = number(pointer), number(width)
    pitch, height = number(rows[0]), number(rows[1])
    if columns < 0 or height < 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if not columns or not height:
        return None
    # The pitch of a single row has no effect.
    if address % element or (height > 1 and (pitch % element or pitch < columns * element)):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    operation = Fill(address, number(value) & ((1 << 8 * element) - 1), element, columns, height, pitch)
    allocation = memory.find(address, operation.extent)
    if allocation is None or not context.reaches(allocation):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return operation


def _fill(
    pointer: Any, value: Any, width: Any, stream: Stream, *, element: int, rows: tuple[Any, Any] = (0, 1), waits: bool
) -> None:
    operation = checked_fill(pointer, value, width, stream.context, element=element, rows=rows)
    if operation is None:
        return
    allocation = memory.find(operation.address, operation.extent)
    # The host waits only for a fill of memory that it can access.
    if waits and allocation is not None and allocation.on_host:
        run_now(stream, operation)
    else:
        submit(stream, operation)


@entry()
def cuMemsetD8(dstDevice: Any, uc: Any, N: Any) -> None:
    """Set N bytes (cuMemsetD8)."""
    _fill(dstDevice, uc, N, current().legacy, element=1, waits=True)


@entry()
def cuMemsetD16(dstDevice: Any, us: Any, N: Any) -> None:
    """Set N elements of 16 bits (cuMemsetD16)."""
    _fill(dstDevice, us, N, current().legacy, element=2, waits=True)


@entry()
def cuMemsetD32(dstDevice: Any, ui: Any, N: Any) -> None:
    """Set N elements of 32 bits (cuMemsetD32)."""
    _fill(dstDevice, ui, N, current().legacy, element=4, waits=True)


@entry()
def cuMemsetD8Async(dstDevice: Any, uc: Any, N: Any, hStream: Any) -> None:
    """Set N bytes in a stream (cuMemsetD8Async)."""
    _fill(dstDevice, uc, N, find_stream(hStream), element=1, waits=False)


@entry()
def cuMemsetD16Async(dstDevice: Any, us: Any, N: Any, hStream: Any) -> None:
    """Set N elements of 16 bits in a stream (cuMemsetD16Async)."""
    _fill(dstDevice, us, N, find_stream(hStream), element=2, waits=False)


@entry()
def cuMemsetD32Async(dstDevice: Any, ui: Any, N: Any, hStream: Any) -> None:
    """Set N elements of 32 bits in a stream (cuMemsetD32Async)."""
    _fill(dstDevice, ui, N, find_stream(hStream), element=4, waits=False)


@entry()
def cuMemsetD2D8(dstDevice: Any, dstPitch: Any, uc: Any, Width: Any, Height: Any) -> None:
    """Set rows of bytes (cuMemsetD2D8)."""
    stream = current().legacy
    _fill(dstDevice, uc, Width, stream, element=1, rows=(dstPitch, Height), waits=True)


@entry()
def cuMemsetD2D16(dstDevice: Any, dstPitch: Any, us: Any, Width: Any, Height: Any) -> None:
    """Set rows of elements of 16 bits (cuMemsetD2D16)."""
    stream = current().legacy
    _fill(dstDevice, us, Width, stream, element=2, rows=(dstPitch, Height), waits=True)


@entry()
def cuMemsetD2D32(dstDevice: Any, dstPitch: Any, ui: Any, Width: Any, Height: Any) -> None:
    """Set rows of elements of 32 bits (cuMemsetD2D32)."""
    stream = current().legacy
    _fill(dstDevice, ui, Width, stream, element=4, rows=(dstPitch, Height), waits=True)


@entry()
def cuMemsetD2D8Async(dstDevice: Any, dstPitch: Any, uc: Any, Width: Any, Height: Any, hStream: Any) -> None:
    """Set rows of bytes in a stream (cuMemsetD2D8Async)."""
    _fill(dstDevice, uc, Width, find_stream(hStream), element=1, rows=(dstPitch, Height), waits=False)


@entry()
def cuMemsetD2D16Async(dstDevice: Any, dstPitch: Any, us: Any, Width: Any, Height: Any, hStream: Any) -> None:
    """Set rows of elements of 16 bits in a stream (cuMemsetD2D16Async)."""
    _fill(dstDevice, us, Width, find_stream(hStream), element=2, rows=(dstPitch, Height), waits=False)


@entry()
def cuMemsetD2D32Async(dstDevice: Any, dstPitch: Any, ui: Any, Width: Any, Height: Any, hStream: Any) -> None:
    """Set rows of elements of 32 bits in a stream (cuMemsetD2D32Async)."""
    _fill(dstDevice, ui, Width, find_stream(hStream), element=4, rows=(dstPitch, Height), waits=False)

"""Copies: lines, rows and boxes between the host, devices and CUDA arrays, and copies of variables."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cuda.bindings.driver import CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUarray, CUmemorytype

from ...c_types import Extent, PitchedPointer
from ..calls import INVALID_MEMORY_DIRECTION, INVALID_PITCH, INVALID_VALUE, SUCCESS, Out, driver, primary_context
from ..registration import find_variable
from .textures import array_element_bytes, array_row_bytes

_HOST_TO_HOST, _HOST_TO_DEVICE, _DEVICE_TO_HOST, _DEVICE_TO_DEVICE, _DEFAULT = range(5)  # cudaMemcpyKind
_LINES = {
    _HOST_TO_HOST: ("cuMemcpy", "cuMemcpyAsync"),
    _HOST_TO_DEVICE: ("cuMemcpyHtoD_v2", "cuMemcpyHtoDAsync_v2"),
    _DEVICE_TO_HOST: ("cuMemcpyDtoH_v2", "cuMemcpyDtoHAsync_v2"),
    _DEVICE_TO_DEVICE: ("cuMemcpyDtoD_v2", "cuMemcpyDtoDAsync_v2"),
    _DEFAULT: ("cuMemcpy", "cuMemcpyAsync"),
}


def copy_line(destination: int, source: int, size: int, kind: int) -> int:
    """Copy bytes (cudaMemcpy)."""
    if kind not in _LINES:
        return INVALID_MEMORY_DIRECTION
    return driver(_LINES[kind][0])(destination, source, size) if size else SUCCESS


def copy_line_async(destination: int, source: int, size: int, kind: int, stream: int) -> int:
    """Copy bytes in stream order (cudaMemcpyAsync)."""
    if kind not in _LINES:
        return INVALID_MEMORY_DIRECTION
    return driver(_LINES[kind][1])(destination, source, size, stream) if size else SUCCESS


def copy_peer(destination: int, to: int, source: int, origin: int, size: int) -> int:
    """Copy bytes between devices (cudaMemcpyPeer)."""
    contexts = Out(), Out()
    status = primary_context(to, contexts[0]) or primary_context(origin, contexts[1])
    return status or driver("cuMemcpyPeer")(destination, contexts[0].value, source, contexts[1].value, size)


def copy_peer_async(destination: int, to: int, source: int, origin: int, size: int, stream: int) -> int:
    """Copy bytes between devices in stream order (cudaMemcpyPeerAsync)."""
    contexts = Out(), Out()
    status = primary_context(to, contexts[0]) or primary_context(origin, contexts[1])
    return status or driver("cuMemcpyPeerAsync")(
        destination, contexts[0].value, source, contexts[1].value, size, stream
    )


@dataclass
class End:
    """One end of a copy of a box: memory with a pitch, or an array. The position is in bytes, rows and planes."""

    address: int = 0
    pitch: int = 0
    height: int = 0
    array: int = 0
    position: tuple[int, int, int] = (0, 0, 0)
    on_host: bool | None = None

    @property
    def memory_type(self) -> CUmemorytype:
        """Return where the memory is, for the driver; None means that the address determines it."""
        if self.array:
            return CUmemorytype.CU_MEMORYTYPE_ARRAY
        if self.on_host is None:
            return CUmemorytype.CU_MEMORYTYPE_UNIFIED
        return CUmemorytype.CU_MEMORYTYPE_HOST if self.on_host else CUmemorytype.CU_MEMORYTYPE_DEVICE


# Whether the source and the destination are on the host, by cudaMemcpyKind.
_PLACES: dict[int, tuple[bool | None, bool | None]] = {
    _HOST_TO_HOST: (True, True),
    _HOST_TO_DEVICE: (True, False),
    _DEVICE_TO_HOST: (False, True),
    _DEVICE_TO_DEVICE: (False, False),
    _DEFAULT: (None, None),
}


def box_parameters(destination: End, source: End, extent: tuple[int, int, int], kind: int) -> Any:
    """Return the driver's parameters for a copy of a box, whose extent is in bytes, rows and planes."""
    source.on_host, destination.on_host = _PLACES[kind]
    return _filled(CUDA_MEMCPY3D(), destination, source, extent)


def _filled(copy: Any, destination: End, source: End, extent: tuple[int, int, int]) -> Any:
    for prefix, end in (("src", source), ("dst", destination)):
        setattr(copy, f"{prefix}MemoryType", end.memory_type)
        setattr(copy, f"{prefix}XInBytes", end.position[0])
        setattr(copy, f"{prefix}Y", end.position[1])
        setattr(copy, f"{prefix}Z", end.position[2])
        if end.array:
            setattr(copy, f"{prefix}Array", CUarray(end.array))
        elif end.on_host:
            setattr(copy, f"{prefix}Host", end.address)
        else:
            setattr(copy, f"{prefix}Device", end.address)
        setattr(copy, f"{prefix}Pitch", end.pitch)
        setattr(copy, f"{prefix}Height", end.height)
    copy.WidthInBytes, copy.Height, copy.Depth = extent
    return copy


def _copy_box(destination: End, source: End, extent: tuple[int, int, int], kind: int, stream: int | None) -> int:
    if kind not in _PLACES:
        return INVALID_MEMORY_DIRECTION
    if 0 in extent:
        return SUCCESS
    copy = box_parameters(destination, source, extent, kind)
    if stream is None:
        return driver("cuMemcpy3D_v2")(copy.getPtr())
    return driver("cuMemcpy3DAsync_v2")(copy.getPtr(), stream)


def copy_rows(
    destination: int,
    to_pitch: int,
    source: int,
    pitch: int,
    width: int,
    height: int,
    kind: int,
    stream: int | None = None,
) -> int:
    """Copy rows of bytes (cudaMemcpy2D, cudaMemcpy2DAsync)."""
    if width > min(to_pitch, pitch):
        return INVALID_PITCH
    ends = End(destination, to_pitch, height), End(source, pitch, height)
    return _copy_box(*ends, (width, height, 1), kind, stream)


def copy_rows_to_array(
    array: int, x: int, y: int, source: int, pitch: int, width: int, height: int, kind: int, stream: int | None = None
) -> int:
    """Copy rows of bytes into an array (cudaMemcpy2DToArray, cudaMemcpy2DToArrayAsync)."""
    return _copy_box(End(array=array, position=(x, y, 0)), End(source, pitch, height), (width, height, 1), kind, stream)


def copy_rows_from_array(
    destination: int,
    pitch: int,
    array: int,
    x: int,
    y: int,
    width: int,
    height: int,
    kind: int,
    stream: int | None = None,
) -> int:
    """Copy rows of bytes out of an array (cudaMemcpy2DFromArray, cudaMemcpy2DFromArrayAsync)."""
    return _copy_box(
        End(destination, pitch, height), End(array=array, position=(x, y, 0)), (width, height, 1), kind, stream
    )


def copy_rows_between_arrays(
    to: int, to_x: int, to_y: int, origin: int, x: int, y: int, width: int, height: int, kind: int
) -> int:
    """Copy rows from array to array (cudaMemcpy2DArrayToArray)."""
    ends = End(array=to, position=(to_x, to_y, 0)), End(array=origin, position=(x, y, 0))
    return _copy_box(*ends, (width, height, 1), kind, None)


def copy_between_arrays(to: int, to_x: int, to_y: int, origin: int, x: int, y: int, size: int, kind: int) -> int:
    """Copy bytes from the rows of an array to those of another, one after another (cudaMemcpyArrayToArray)."""
    width, to_width = array_row_bytes(origin), array_row_bytes(to)
    if x >= width or to_x >= to_width:
        return INVALID_VALUE
    status = SUCCESS
    while size and not status:
        piece = min(width - x, to_width - to_x, size)
        status = copy_rows_between_arrays(to, to_x, to_y, origin, x, y, piece, 1, kind)
        size -= piece
        x, y = (x + piece) % width, y + (x + piece) // width
        to_x, to_y = (to_x + piece) % to_width, to_y + (to_x + piece) // to_width
    return status


def copy_to_array(array: int, x: int, y: int, source: int, size: int, kind: int, stream: int | None = None) -> int:
    """Copy bytes into the rows of an array, one after another (cudaMemcpyToArray, cudaMemcpyToArrayAsync)."""
    status = SUCCESS
    for row, column, offset, width, height in _row_pieces(array, x, y, size):
        status = status or copy_rows_to_array(array, column, row, source + offset, width, width, height, kind, stream)
    return status


def copy_from_array(
    destination: int, array: int, x: int, y: int, size: int, kind: int, stream: int | None = None
) -> int:
    """Copy bytes out of the rows of an array, one after another (cudaMemcpyFromArray, cudaMemcpyFromArrayAsync)."""
    status = SUCCESS
    for row, column, offset, width, height in _row_pieces(array, x, y, size):
        copied = copy_rows_from_array(destination + offset, width, array, column, row, width, height, kind, stream)
        status = status or copied
    return status


def _row_pieces(array: int, x: int, y: int, size: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield boxes of an array that hold consecutive bytes: row, first byte in it, offset, width in bytes, and rows."""
    width = array_row_bytes(array)
    offset = 0
    while offset < size:
        left = size - offset
        if x or left < width:
            piece, rows = min(width - x, left), 1
        else:
            piece, rows = width, left // width
        if piece <= 0:  # not inside the array: the driver refuses the copy
            piece, rows = left, 1
        yield y, x, offset, piece, rows
        offset += piece * rows
        x, y = 0, y + rows


class Position(ctypes.Structure):
    """cudaPos."""

    _fields_ = [("x", ctypes.c_size_t), ("y", ctypes.c_size_t), ("z", ctypes.c_size_t)]


class BoxCopy(ctypes.Structure):
    """cudaMemcpy3DParms."""

    _fields_ = [
        ("source_array", ctypes.c_size_t),
        ("source_position", Position),
        ("source", PitchedPointer),
        ("destination_array", ctypes.c_size_t),
        ("destination_position", Position),
        ("destination", PitchedPointer),
        ("extent", Extent),
        ("kind", ctypes.c_int),
    ]


class PeerCopy(ctypes.Structure):
    """cudaMemcpy3DPeerParms."""

    _fields_ = [
        ("source_array", ctypes.c_size_t),
        ("source_position", Position),
        ("source", PitchedPointer),
        ("source_device", ctypes.c_int),
        ("destination_array", ctypes.c_size_t),
        ("destination_position", Position),
        ("destination", PitchedPointer),
        ("destination_device", ctypes.c_int),
        ("extent", Extent),
    ]


def converted(parameters: int) -> tuple[End, End, tuple[int, int, int], int]:
    """Return the ends, the extent and the kind of a cudaMemcpy3DParms."""
    given = BoxCopy.from_address(parameters)
    return *_ends_and_extent(given), given.kind


def _ends_and_extent(given: BoxCopy | PeerCopy) -> tuple[End, End, tuple[int, int, int]]:
    """Return the ends and the extent of a copy.

    With an array, the runtime counts widths in its elements, and the driver always in bytes.
    """
    element = array_element_bytes(given.source_array or given.destination_array)
    ends = []
    for array, position, memory in (
        (given.destination_array, given.destination_position, given.destination),
        (given.source_array, given.source_position, given.source),
    ):
        x = position.x * (element if array else 1)
        ends.append(End(memory.ptr, memory.pitch, memory.ysize, array, (x, position.y, position.z)))
    extent = given.extent.width * element, given.extent.height, given.extent.depth
    return ends[0], ends[1], extent


def copy_box(parameters: int, stream: int | None = None) -> int:
    """Copy a box (cudaMemcpy3D, cudaMemcpy3DAsync)."""
    return _copy_box(*converted(parameters), stream) if parameters else INVALID_VALUE


def copy_box_between_devices(parameters: int, stream: int | None = None) -> int:
    """Copy a box between devices (cudaMemcpy3DPeer, cudaMemcpy3DPeerAsync)."""
    if not parameters:
        return INVALID_VALUE
    given = PeerCopy.from_address(parameters)
    destination, source, extent = _ends_and_extent(given)
    contexts = Out(), Out()
    status = primary_context(given.source_device, contexts[0])
    status = status or primary_context(given.destination_device, contexts[1])
    if status or 0 in extent:
        return status
    copy = _filled(CUDA_MEMCPY3D_PEER(), destination, source, extent)
    copy.srcContext, copy.dstContext = contexts[0].value, contexts[1].value
    if stream is None:
        return driver("cuMemcpy3DPeer")(copy.getPtr())
    return driver("cuMemcpy3DPeerAsync")(copy.getPtr(), stream)


# The kinds by whether the source and the destination are on the host.
_KINDS = {places: kind for kind, places in _PLACES.items()}
_ON_HOST = {CUmemorytype.CU_MEMORYTYPE_HOST: True, CUmemorytype.CU_MEMORYTYPE_UNIFIED: None}


def write_box_copy(place: int, copy: Any) -> None:
    """Write the driver's parameters of a copy as a cudaMemcpy3DParms."""
    result = BoxCopy.from_address(place)
    element = array_element_bytes(int(copy.srcArray) or int(copy.dstArray))
    ends = []
    for prefix in ("src", "dst"):
        array = int(getattr(copy, f"{prefix}Array"))
        on_host = _ON_HOST.get(getattr(copy, f"{prefix}MemoryType"), False)
        address = int(getattr(copy, f"{prefix}Host" if on_host else f"{prefix}Device"))
        pitch, height = getattr(copy, f"{prefix}Pitch"), getattr(copy, f"{prefix}Height")
        x = getattr(copy, f"{prefix}XInBytes") // (element if array else 1)
        position = Position(x, getattr(copy, f"{prefix}Y"), getattr(copy, f"{prefix}Z"))
        memory = PitchedPointer() if array else PitchedPointer(address, pitch, pitch, height)
        ends.append((array, position, memory, on_host))
    result.source_array, result.source_position, result.source, from_host = ends[0]
    result.destination_array, result.destination_position, result.destination, to_host = ends[1]
    result.extent = Extent(copy.WidthInBytes // element, copy.Height, copy.Depth)
    result.kind = _KINDS.get((from_host, to_host), _DEFAULT)


def copy_to_symbol(host: int, source: int, size: int, offset: int, kind: int, stream: int | None = None) -> int:
    """Copy to a variable (cudaMemcpyToSymbol, cudaMemcpyToSymbolAsync)."""
    return _copy_variable(host, offset, size, lambda address: _copy(address, source, size, kind, stream))


def copy_from_symbol(destination: int, host: int, size: int, offset: int, kind: int, stream: int | None = None) -> int:
    """Copy from a variable (cudaMemcpyFromSymbol, cudaMemcpyFromSymbolAsync)."""
    return _copy_variable(host, offset, size, lambda address: _copy(destination, address, size, kind, stream))


def _copy(destination: int, source: int, size: int, kind: int, stream: int | None) -> int:
    if stream is None:
        return copy_line(destination, source, size, kind)
    return copy_line_async(destination, source, size, kind, stream)


def _copy_variable(host: int, offset: int, size: int, copy: Any) -> int:
    address, room = Out(), Out()
    status = find_variable(host, address, room)
    if status:
        return status
    return int(copy(address.value + offset)) if offset + size <= room.value else INVALID_VALUE


FUNCTIONS: dict[str, Any] = {
    "cudaMemcpy": copy_line,
    "cudaMemcpy2D": copy_rows,
    "cudaMemcpy2DArrayToArray": copy_rows_between_arrays,
    "cudaMemcpy2DAsync": copy_rows,
    "cudaMemcpy2DFromArray": copy_rows_from_array,
    "cudaMemcpy2DFromArrayAsync": copy_rows_from_array,
    "cudaMemcpy2DToArray": copy_rows_to_array,
    "cudaMemcpy2DToArrayAsync": copy_rows_to_array,
    "cudaMemcpy3D": copy_box,
    "cudaMemcpy3DAsync": copy_box,
    "cudaMemcpy3DPeer": copy_box_between_devices,
    "cudaMemcpy3DPeerAsync": copy_box_between_devices,
    "cudaMemcpyArrayToArray": copy_between_arrays,
    "cudaMemcpyAsync": copy_line_async,
    "cudaMemcpyFromArray": copy_from_array,
    "cudaMemcpyFromArrayAsync": copy_from_array,
    "cudaMemcpyFromSymbol": copy_from_symbol,
    "cudaMemcpyFromSymbolAsync": copy_from_symbol,
    "cudaMemcpyPeer": copy_peer,
    "cudaMemcpyPeerAsync": copy_peer_async,
    "cudaMemcpyToArray": copy_to_array,
    "cudaMemcpyToArrayAsync": copy_to_array,
    "cudaMemcpyToSymbol": copy_to_symbol,
    "cudaMemcpyToSymbolAsync": copy_to_symbol,
}

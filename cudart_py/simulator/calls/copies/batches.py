"""Batches of copies: many copies in one call, in stream order as a whole, and in no order among themselves.

They run in reverse here, so that a copy that depends on an earlier one of its batch has the wrong result.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

from cuda.bindings.driver import (
    CUmemcpy3DOperandType,
    CUmemcpyFlags,
    CUmemcpySrcAccessOrder,
    CUmemLocationType,
    CUresult,
)

from ...state import memory
from ...state.arguments import number
from ...state.devices import find_device
from ...state.errors import StatusError, invalid_value
from ...state.queue.stream import Stream
from ...state.streams import find_stream, run_now, submit
from ..entry import entry
from ..memory.cuda_arrays import CudaArray, cuda_arrays
from ..memory.transfers.box_copies import Box, BoxCopy
from ..memory.transfers.copies import Copy, is_hosts, returns_when_done

_ORDERS = CUmemcpySrcAccessOrder
_VALID_ORDERS = (
    _ORDERS.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM.value,
    _ORDERS.CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL.value,
    _ORDERS.CU_MEMCPY_SRC_ACCESS_ORDER_ANY.value,
)
_FLAGS = CUmemcpyFlags.CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE.value
_OPERAND = CUmemcpy3DOperandType


def stream_of_batch(handle: Any) -> Stream:
    """Return the stream of a batch, which may be neither the legacy default stream nor one that is captured."""
    stream = find_stream(handle)
    if stream.is_legacy:
        raise invalid_value()
    if stream.capture is not None:
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    return stream


def numbers(values: Any, count: int) -> list[int]:
    """Return the first `count` of a sequence of handles or ints; raise CUDA_ERROR_INVALID_VALUE if there are fewer."""
    found = [number(value) for value in values or ()]
    if len(found) < count:
        raise invalid_value()
    return found[:count]


def spread(entries: Any, starts: Any, given: int, count: int) -> list[Any]:
    """Return the entry for each of `count` operations; each entry applies from its start up to that of the next one."""
    if not 0 < given <= count or len(entries or ()) < given:
        raise invalid_value()
    firsts = numbers(starts, given)
    bounds = [*firsts, count]
    if firsts[0] or any(first >= following for first, following in itertools.pairwise(bounds)):
        raise invalid_value()
    return [entries[index] for index in range(given) for _ in range(bounds[index + 1] - bounds[index])]


def _check_hint(location: Any) -> None:
    """Raise CUDA_ERROR_INVALID_VALUE for a hint at a device that does not exist; hints have no other effect."""
    if location.type == CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
        try:
            find_device(location.id)
        except StatusError:
            raise invalid_value() from None


def _check_order(order: Any, flags: Any) -> bool:
    """Return whether the sources are read during the call, or raise CUDA_ERROR_INVALID_VALUE."""
    if number(order) not in _VALID_ORDERS or number(flags) & ~_FLAGS:
        raise invalid_value()
    return bool(order == _ORDERS.CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL)


@entry()
def cuMemcpyBatchAsync(
    dsts: Any, srcs: Any, sizes: Any, count: Any, attrs: Any, attrsIdxs: Any, numAttrs: Any, hStream: Any
) -> None:
    """Copy between many pairs of addresses in a stream (cuMemcpyBatchAsync)."""
    stream, copies = stream_of_batch(hStream), number(count)
    if copies <= 0:
        raise invalid_value()
    attributes = spread(attrs, attrsIdxs, number(numAttrs), copies)
    operations: list[tuple[Copy, bool]] = []
    for destination, source, size, one in zip(
        numbers(dsts, copies), numbers(srcs, copies), numbers(sizes, copies), attributes, strict=True
    ):
        during = _check_order(one.srcAccessOrder, one.flags)
        _check_hint(one.srcLocHint)
        _check_hint(one.dstLocHint)
        if size <= 0:
            raise invalid_value()
        ends = memory.find(source, size), memory.find(destination, size)
        copy = Copy(destination, source, size, (ends[0] is not None, ends[1] is not None))
        at_once = returns_when_done(*ends, waits=False)
        if not at_once and (ends[0] is None or (during and is_hosts(ends[0]))):
            copy.held = ctypes.string_at(source, size)
        operations.append((copy, at_once))
    _run(stream, operations)


def _run(stream: Stream, operations: list[tuple[Any, bool]]) -> None:
    """Submit operations to a stream; the call returns when the copies that are to be awaited are done."""
    for operation, at_once in reversed(operations):
        if at_once:
            run_now(stream, operation)
        else:
            submit(stream, operation)


@entry()
def cuMemcpy3DBatchAsync(numOps: Any, opList: Any, flags: Any, hStream: Any) -> None:
    """Copy many boxes of elements in a stream (cuMemcpy3DBatchAsync)."""
    stream, copies = stream_of_batch(hStream), number(numOps)
    if copies <= 0 or number(flags) or len(opList or ()) < copies:
        raise invalid_value()
    _run(stream, [_box_copy(one) for one in opList[:copies]])


def _box_copy(description: Any) -> tuple[BoxCopy, bool]:
    """Return the checked copy that a CUDA_MEMCPY3D_BATCH_OP describes, and whether the call returns when it is done."""
    during = _check_order(description.srcAccessOrder, description.flags)
    extent = description.extent
    shape = number(extent.depth), number(extent.height), number(extent.width)
    if not all(0 < size < 1 << 40 for size in shape):
        raise invalid_value()
    ends = [_array_of(operand) for operand in (description.src, description.dst)]
    elements = {array.texel for array in ends if array is not None} or {1}
    if len(elements) != 1:
        raise invalid_value()
    element = elements.pop()
    source, destination = (
        _in_memory(operand, shape, element) if array is None else _in_array(operand, array, shape)
        for operand, array in zip((description.src, description.dst), ends, strict=True)
    )
    copy = BoxCopy(destination, source, (shape[0], shape[1], shape[2] * element))
    at_once = returns_when_done(source.allocation, destination.allocation, waits=False)
    if not at_once and (source.allocation is None or (during and is_hosts(source.allocation))):
        copy.held = source.view(copy.shape).copy()
    return copy, at_once


def _array_of(operand: Any) -> CudaArray | None:
    """Return the CUDA array of an operand, None for a pointer, or raise the driver's status."""
    try:
        kind = operand.type
    except ValueError:
        raise invalid_value() from None
    if kind == _OPERAND.CU_MEMCPY_OPERAND_TYPE_POINTER:
        return None
    if kind != _OPERAND.CU_MEMCPY_OPERAND_TYPE_ARRAY:
        raise invalid_value()
    return cuda_arrays.find(operand.op.array.array)


def _in_memory(operand: Any, shape: tuple[int, int, int], element: int) -> Box:
    pointer = operand.op.ptr
    depth, height, width = shape
    row, rows = number(pointer.rowLength) or width, number(pointer.layerHeight) or height
    address = number(pointer.ptr)
    if row < width or rows < height or not address:
        raise invalid_value()
    _check_hint(pointer.locHint)
    box = Box(address, row * element, rows * row * element)
    box.allocation = memory.find(address, box.extent((depth, height, width * element)))
    return box


def _in_array(operand: Any, array: CudaArray, shape: tuple[int, int, int]) -> Box:
    offset = operand.op.array.offset
    x, y, z = number(offset.x), number(offset.y), number(offset.z)
    depth, height, width = shape
    if x + width > array.width or y + height > max(array.height, 1) or z + depth > max(array.depth, 1):
        raise invalid_value()
    address = array.allocation.address + z * array.slice_pitch + y * array.pitch + x * array.texel
    layered_rows = array.layered and not array.height
    return Box(address, array.pitch, array.slice_pitch, array.allocation, in_array=True, layered_rows=layered_rows)

"""Copies from and to one-dimensional CUDA arrays, whose ends are offsets in bytes."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CUresult

from ...state import memory
from ...state.arguments import host_address, number
from ...state.contexts import current
from ...state.errors import StatusError
from ...state.memory import Allocation
from ...state.queue.stream import Stream
from ...state.streams import find_stream
from ..entry import entry
from ..memory.cuda_arrays import given_array
from ..memory.transfers.copies import copy, on_device

End = tuple[int, Allocation | None]


def _in_array(handle: Any, offset: Any, size: int) -> End:
    """Return the address and the allocation of a range of an array's first row, or raise the driver's status."""
    array, start = given_array(handle), number(offset)
    if start < 0 or start + size > array.width * array.texel:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return array.allocation.address + start, array.allocation


def _count(value: Any) -> int:
    size = number(value)
    if size < 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return size


def _copy(destination: End, source: End, size: int, stream: Stream, *, waits: bool) -> None:
    if size:
        copy(destination[0], source[0], size, (source[1], destination[1]), stream, waits=waits)


def _at_device(pointer: Any, size: int) -> End:
    address = number(pointer)
    return address, on_device(address, size) if size else None


def _at_host(pointer: Any, size: int) -> End:
    address = host_address(pointer)
    return address, memory.find(address, size) if size else None


@entry()
def cuMemcpyAtoA(dstArray: Any, dstOffset: Any, srcArray: Any, srcOffset: Any, ByteCount: Any) -> None:
    """Copy between one-dimensional CUDA arrays; the host doesn't wait (cuMemcpyAtoA)."""
    stream, size = current().legacy, _count(ByteCount)
    source = _in_array(srcArray, srcOffset, size)
    _copy(_in_array(dstArray, dstOffset, size), source, size, stream, waits=True)


@entry()
def cuMemcpyAtoD(dstDevice: Any, srcArray: Any, srcOffset: Any, ByteCount: Any) -> None:
    """Copy from a one-dimensional CUDA array to device memory (cuMemcpyAtoD)."""
    stream, size = current().legacy, _count(ByteCount)
    _copy(_at_device(dstDevice, size), _in_array(srcArray, srcOffset, size), size, stream, waits=True)


@entry()
def cuMemcpyDtoA(dstArray: Any, dstOffset: Any, srcDevice: Any, ByteCount: Any) -> None:
    """Copy from device memory to a one-dimensional CUDA array (cuMemcpyDtoA)."""
    stream, size = current().legacy, _count(ByteCount)
    _copy(_in_array(dstArray, dstOffset, size), _at_device(srcDevice, size), size, stream, waits=True)


@entry()
def cuMemcpyAtoH(dstHost: Any, srcArray: Any, srcOffset: Any, ByteCount: Any) -> None:
    """Copy from a one-dimensional CUDA array to the host (cuMemcpyAtoH)."""
    stream, size = current().legacy, _count(ByteCount)
    _copy(_at_host(dstHost, size), _in_array(srcArray, srcOffset, size), size, stream, waits=True)


@entry()
def cuMemcpyAtoHAsync(dstHost: Any, srcArray: Any, srcOffset: Any, ByteCount: Any, hStream: Any) -> None:
    """Copy from a one-dimensional CUDA array to the host in a stream (cuMemcpyAtoHAsync)."""
    stream, size = find_stream(hStream), _count(ByteCount)
    _copy(_at_host(dstHost, size), _in_array(srcArray, srcOffset, size), size, stream, waits=False)


@entry()
def cuMemcpyHtoA(dstArray: Any, dstOffset: Any, srcHost: Any, ByteCount: Any) -> None:
    """Copy from the host to a one-dimensional CUDA array (cuMemcpyHtoA)."""
    stream, size = current().legacy, _count(ByteCount)
    _copy(_in_array(dstArray, dstOffset, size), _at_host(srcHost, size), size, stream, waits=True)


@entry()
def cuMemcpyHtoAAsync(dstArray: Any, dstOffset: Any, srcHost: Any, ByteCount: Any, hStream: Any) -> None:
    """Copy from the host to a one-dimensional CUDA array in a stream (cuMemcpyHtoAAsync)."""
    stream, size = find_stream(hStream), _count(ByteCount)
    _copy(_in_array(dstArray, dstOffset, size), _at_host(srcHost, size), size, stream, waits=False)

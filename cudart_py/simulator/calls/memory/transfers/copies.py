"""One-dimensional copies, and the rules that determine for which copies the host waits.

A copy for which the host waits runs at once, after the work of its stream. Other copies wait in the queue: a pageable
source is read when the copy is enqueued, and a pinned one when it runs. Every address is checked against the
allocations during the call, and again when the copy runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUgraphNodeType, CUresult

from ....checks.findings import site_to_report
from ....checks.races import concurrency
from ....checks.uninitialised.copied_memory import check_copy_to_host, note_copied
from ....state import memory
from ....state.arguments import host_address, number
from ....state.contexts import current, given_context
from ....state.errors import StatusError
from ....state.memory import DEVICE, ON_DEVICE
from ....state.queue.operations import Operation
from ....state.queue.scheduling import fork_all, join_all
from ....state.queue.stream import Stream
from ....state.streams import find_stream, refuse_in_capture, run_now, submit
from ...entry import entry

if TYPE_CHECKING:
    from ....state.contexts import Context
    from ....state.memory import Allocation

    _End = tuple[Callable[[Any], int], Callable[[int, int], Allocation | None]]


class Copy(Operation):
    """A copy of `size` bytes; `held` are the bytes themselves if the source was read during the call.

    `checked` says whether the source and the destination are in allocations; if not, they are ordinary host memory.
    """

    __slots__ = ("checked", "destination", "held", "site", "size", "source")

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY

    def __init__(
        self, destination: int, source: int, size: int, checked: tuple[bool, bool], held: bytes | None = None
    ) -> None:
        self.destination = destination
        self.source = source
        self.size = size
        self.checked = checked
        self.held = held
        self.site = site_to_report()

    def describe(self) -> str:
        """Return how many bytes are copied."""
        return f"{self.size} bytes"

    def parameters(self) -> list[str]:
        """Return both addresses."""
        return [f"from {self.source:#x}", f"to {self.destination:#x}"]

    def run(self, context: Context) -> None:
        """Move the bytes."""
        source_checked, destination_checked = self.checked
        if source_checked and self.held is None:
            memory.require_live(self.source, self.size, "the source of a copy")
            concurrency.touch([(self.source, self.size)], "a copy", writes=False, site=self.site)
            check_copy_to_host([(self.source, self.size)], self.destination, self.site)
        if destination_checked:
            memory.require_live(self.destination, self.size, "the destination of a copy")
            concurrency.touch([(self.destination, self.size)], "a copy", writes=True, site=self.site)
        ctypes.memmove(self.destination, self.source if self.held is None else self.held, self.size)
        if destination_checked and not (
            source_checked and self.held is None and note_copied([(self.destination, self.source, self.size)])
        ):
            memory.note_written(self.destination, self.size)


def on_device(address: int, size: int) -> Allocation:
    """Return the allocation at a device address, or raise CUDA_ERROR_INVALID_VALUE."""
    # Pinned, registered and managed memory have device addresses too.
    allocation = memory.find(address, size)
    if allocation is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return allocation


def copy(
    destination: int,
    source: int,
    size: int,
    ends: tuple[Allocation | None, Allocation | None],
    stream: Stream,
    *,
    waits: bool,
) -> None:
    """Copy in a stream; `ends` are the source's and the destination's allocations, None for pageable memory.

    With `waits`, the copy is done when the call returns, unless it is between device addresses.
    """
    source_end, destination_end = ends
    checked = source_end is not None, destination_end is not None
    operation = Copy(destination, source, size, checked)
    if stream.capture is not None:
        submit(stream, operation)
        return
    if returns_when_done(source_end, destination_end, waits=waits):
        run_now(stream, operation)
        return
    if source_end is None:
        operation.held = ctypes.string_at(source, size)
    submit(stream, operation)


def returns_when_done(source: Allocation | None, destination: Allocation | None, *, waits: bool) -> bool:
    """Return whether the call of a copy returns only when the copy is done; None means pageable memory.

    It does for copies to pageable memory and from host to host, even for asynchronous functions. It never does for
    copies between device addresses.
    """
    if destination is None or (is_hosts(source) and is_hosts(destination)):
        return True
    between_devices = source is not None and source.kind in ON_DEVICE and destination.kind in ON_DEVICE
    return waits and not between_devices


def is_hosts(allocation: Allocation | None) -> bool:
    """Return whether an allocation is pageable (None), pinned or registered memory of the host."""
    return allocation is None or allocation.kind in (memory.PINNED, memory.REGISTERED)


# The functions that convert a parameter to an address, and that find the allocation there. With unified addressing, a
# device address may take the place of a host address.
_HOST_END = (host_address, memory.find)
_DEVICE_END = (number, on_device)
_ANY_END = (number, memory.find)


def _copy_bytes(
    destination_end: _End, dst: Any, source_end: _End, src: Any, count: Any, stream: Stream, *, waits: bool
) -> None:
    (destination_of, find_destination), (source_of, find_source) = destination_end, source_end
    destination, source, size = destination_of(dst), source_of(src), number(count)
    if size:
        ends = find_source(source, _positive(size)), find_destination(destination, size)
        copy(destination, source, size, ends, stream, waits=waits)


def _positive(size: int) -> int:
    if size < 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return size


@entry()
def cuMemcpyHtoD(dstDevice: Any, srcHost: Any, ByteCount: Any) -> None:
    """Copy from the host to a device (cuMemcpyHtoD)."""
    _copy_bytes(_DEVICE_END, dstDevice, _HOST_END, srcHost, ByteCount, current().legacy, waits=True)


@entry()
def cuMemcpyHtoDAsync(dstDevice: Any, srcHost: Any, ByteCount: Any, hStream: Any) -> None:
    """Copy from the host to a device in a stream (cuMemcpyHtoDAsync)."""
    _copy_bytes(_DEVICE_END, dstDevice, _HOST_END, srcHost, ByteCount, find_stream(hStream), waits=False)


@entry()
def cuMemcpyDtoH(dstHost: Any, srcDevice: Any, ByteCount: Any) -> None:
    """Copy from a device to the host (cuMemcpyDtoH)."""
    _copy_bytes(_HOST_END, dstHost, _DEVICE_END, srcDevice, ByteCount, current().legacy, waits=True)


@entry()
def cuMemcpyDtoHAsync(dstHost: Any, srcDevice: Any, ByteCount: Any, hStream: Any) -> None:
    """Copy from a device to the host in a stream (cuMemcpyDtoHAsync)."""
    _copy_bytes(_HOST_END, dstHost, _DEVICE_END, srcDevice, ByteCount, find_stream(hStream), waits=False)


@entry()
def cuMemcpyDtoD(dstDevice: Any, srcDevice: Any, ByteCount: Any) -> None:
    """Copy between device addresses; the host doesn't wait (cuMemcpyDtoD)."""
    _copy_bytes(_DEVICE_END, dstDevice, _DEVICE_END, srcDevice, ByteCount, current().legacy, waits=True)


@entry()
def cuMemcpyDtoDAsync(dstDevice: Any, srcDevice: Any, ByteCount: Any, hStream: Any) -> None:
    """Copy between device addresses in a stream (cuMemcpyDtoDAsync)."""
    _copy_bytes(_DEVICE_END, dstDevice, _DEVICE_END, srcDevice, ByteCount, find_stream(hStream), waits=False)


@entry()
def cuMemcpy(dst: Any, src: Any, ByteCount: Any) -> None:
    """Copy between any two addresses (cuMemcpy)."""
    _copy_bytes(_ANY_END, dst, _ANY_END, src, ByteCount, current().legacy, waits=True)


@entry()
def cuMemcpyAsync(dst: Any, src: Any, ByteCount: Any, hStream: Any) -> None:
    """Copy between any two addresses in a stream (cuMemcpyAsync)."""
    _copy_bytes(_ANY_END, dst, _ANY_END, src, ByteCount, find_stream(hStream), waits=False)


@entry()
def cuMemcpyPeer(dstDevice: Any, dstContext: Any, srcDevice: Any, srcContext: Any, ByteCount: Any) -> None:
    """Copy from one context's device memory to another's, between all work of both (cuMemcpyPeer)."""
    stream = current().legacy
    contexts = dict.fromkeys((stream.context, given_context(dstContext), given_context(srcContext)))
    join_all(stream, contexts)
    _peer((dstDevice, dstContext), (srcDevice, srcContext), ByteCount, stream)
    fork_all(stream, contexts)


@entry()
def cuMemcpyPeerAsync(
    dstDevice: Any, dstContext: Any, srcDevice: Any, srcContext: Any, ByteCount: Any, hStream: Any
) -> None:
    """Copy from one context's device memory to another's in a stream (cuMemcpyPeerAsync)."""
    stream = find_stream(hStream)
    refuse_in_capture(stream)  # driver 580.159 refuses it between any devices, with or without peer access
    _peer((dstDevice, dstContext), (srcDevice, srcContext), ByteCount, stream)


def _peer(dst: tuple[Any, Any], src: tuple[Any, Any], count: Any, stream: Stream) -> None:
    destination, source, size = number(dst[0]), number(src[0]), number(count)
    ends = []
    for address, context in ((source, src[1]), (destination, dst[1])):
        owner = given_context(context)
        if size:
            allocation = on_device(address, _positive(size))
            if allocation.kind == DEVICE and allocation.device is not owner.device:
                raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
            ends.append(allocation)
    if size:
        copy(destination, source, size, (ends[0], ends[1]), stream, waits=False)

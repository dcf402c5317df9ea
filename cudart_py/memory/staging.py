"""Staging of large pageable copies: several threads move the bytes to and from page-locked memory.

The driver also stages pageable copies, but in one thread. Here several threads share the copying on the host, which is
the slow part. Only the caller's thread queues work in the stream, so the stream order is the caller's. If the
page-locked memory is busy or not available, the driver makes the copy instead: two copies never wait for each other
here.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import errors
from ..context.capture import captures
from ..context.current import activated
from ..context.device import Device, current_device
from ..context.resetting import at_reset
from ..driver import enums
from ..driver.calls import api
from ..host.locks import take
from ..streams.event import Event
from .addresses import memory_kind
from .host_memory import PinnedMemory

if TYPE_CHECKING:
    from concurrent.futures import Future

# Below this many bytes, the threads cost more time than they save.
THRESHOLD = 8 << 20

# Measured on an H200 host with 16 processors. Larger slots are as good for copies of 1 GiB, but worse for copies of 64
# MiB. With smaller slots, distributing the pieces to the threads takes longer than copying them.
_SLOT_BYTES = 4 << 20
_THREADS = 12
# The maximum number of pieces that the threads have at a time, in progress or waiting: in an upload, whose slots they
# fill, and in a download, whose slots they empty. The device uses the other slots. There must be more slots than these,
# because a slot is reused only after both the threads and the device have finished with it.
_FILLING = 20
_EMPTYING = 16
_SLOTS = 24
# With fewer processors, the threads would only compete with each other.
_LEAST_PROCESSORS = 4


class _Slot:
    """A slot of the ring: its address, and the event after the last copy that used it."""

    __slots__ = ("address", "event")

    def __init__(self, address: int) -> None:
        self.address = address
        self.event = Event(timing=False)


class _Moves(list["Future[Any]"]):
    """The threads' work for one copy: one future per piece."""

    def wait(self) -> None:
        """Wait until every piece has succeeded or failed."""
        for move in self:
            move.exception()


class _Ring:
    """The page-locked memory for one device's copies, and the threads that fill and empty its slots."""

    def __init__(self, device: Device) -> None:
        self.busy = threading.Lock()
        self.closed = False
        self._device = device
        self._memory = PinnedMemory(_SLOTS * _SLOT_BYTES)
        start = self._memory.handle
        self.slots = [_Slot(start + i * _SLOT_BYTES) for i in range(_SLOTS)]
        from concurrent.futures import ThreadPoolExecutor  # imported late, because it imports logging

        self._threads = ThreadPoolExecutor(
            min(_THREADS, _processors()), f"cudart_py staging for device {device.ordinal}"
        )

    def fill(self, slot: _Slot, source: int, nbytes: int) -> Future[Any]:
        """Have a thread copy into a slot, as soon as the device has read the slot's previous contents."""
        return self._threads.submit(self._fill, slot, source, nbytes)

    def _fill(self, slot: _Slot, source: int, nbytes: int) -> None:
        with activated(self._device):
            slot.event.synchronize()
        ctypes.memmove(slot.address, source, nbytes)

    def empty(self, slot: _Slot, destination: int, nbytes: int) -> Future[Any]:
        """Have a thread copy out of a slot that the device has written."""
        return self._threads.submit(ctypes.memmove, destination, slot.address, nbytes)

    def close(self) -> None:
        """End the threads and release the memory, after the copies that use it."""
        self.closed = True
        self._threads.shutdown()
        for slot in self.slots:
            slot.event.synchronize()
            slot.event.close()
        self._memory.close()

    def abandon(self) -> None:
        """End the threads after a reset, which has already taken the memory and the events."""
        self.closed = True
        self._threads.shutdown()


_rings: dict[Device, _Ring] = {}
_making = threading.Lock()


def _abandon_rings() -> None:
    with _making:
        rings = list(_rings.values())
        _rings.clear()
    for ring in rings:
        ring.abandon()


at_reset(_abandon_rings)


def upload(destination: int, source: int, nbytes: int, stream: int) -> bool:
    """Queue a copy from pageable host memory to the current device; return False if the driver should make it.

    Once this returns, the source may be changed.
    """
    return _staged(_upload, destination, source, nbytes, stream, source)


def download(destination: int, source: int, nbytes: int, stream: int) -> bool:
    """Copy from the current device to pageable host memory; return False if the driver should make the copy.

    Once this returns, the copy is complete.
    """
    return _staged(_download, destination, source, nbytes, stream, destination)


def release_staging() -> None:
    """Release the page-locked memory and the threads that stage pageable copies, for all devices.

    Waits for copies in progress. The next large pageable copy allocates new memory and starts new threads.
    """
    with _making:
        rings, devices = list(_rings.values()), list(_rings)
        _rings.clear()
    for ring, device in zip(rings, devices, strict=True):
        with ring.busy, activated(device):
            ring.close()


def _staged(
    copy: Callable[[_Ring, int, int, int, int], None],
    destination: int,
    source: int,
    nbytes: int,
    stream: int,
    host: int,
) -> bool:
    # A capture anywhere in the process forbids allocating page-locked memory, and the attempt would invalidate it.
    if captures or _processors() < _LEAST_PROCESSORS or _capturing(stream) or memory_kind(host) != "pageable":
        return False
    ring = _ring_of(current_device())
    if ring is None:
        return False
    taken: list[bool] = []
    try:
        take(ring.busy, taken, blocking=False)
        if not taken or ring.closed:
            return False
        copy(ring, destination, source, nbytes, stream)
    except BaseException:
        # The last queued copy may have no event after it, so a later copy would not know that its slot is in use.
        with contextlib.suppress(errors.CudaError):
            api.cuStreamSynchronize(stream)
        raise
    finally:
        if taken:
            ring.busy.release()
    return True


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def _capturing(stream: int) -> bool:
    try:
        return bool(api.cuStreamIsCapturing(stream) != enums.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE)
    except errors.CaptureError:
        # The legacy stream during a capture in another stream: the copy itself will raise the error.
        return True


def _ring_of(device: Device) -> _Ring | None:
    with _making:
        ring = _rings.get(device)
        if ring is None:
            try:
                ring = _rings[device] = _Ring(device)
            except errors.CudaError:
                # No page-locked memory is left, or another thread's capture forbids allocating it.
                return None
        return ring


def _chunks(nbytes: int) -> list[tuple[int, int]]:
    """Return the offset and size in bytes of each piece of a copy."""
    return [(offset, min(_SLOT_BYTES, nbytes - offset)) for offset in range(0, nbytes, _SLOT_BYTES)]


def _upload(ring: _Ring, destination: int, source: int, nbytes: int, stream: int) -> None:
    chunks, moves = _chunks(nbytes), _Moves()

    def queue(number: int) -> None:
        offset, size = chunks[number]
        slot = ring.slots[number % _SLOTS]
        moves[number].result()
        api.cuMemcpyHtoDAsync(destination + offset, slot.address, size, stream)
        api.cuEventRecord(slot.event.handle, stream)

    try:
        for number, (offset, size) in enumerate(chunks):
            # While the threads fill some slots, the device reads the others.
            if number >= _FILLING:
                queue(number - _FILLING)
            moves.append(ring.fill(ring.slots[number % _SLOTS], source + offset, size))
        for number in range(max(0, len(chunks) - _FILLING), len(chunks)):
            queue(number)
    finally:
        # Even after an error, no thread may continue to read the caller's memory.
        moves.wait()


def _download(ring: _Ring, destination: int, source: int, nbytes: int, stream: int) -> None:
    chunks, moves = _chunks(nbytes), _Moves()

    def queue(number: int) -> None:
        offset, size = chunks[number]
        slot = ring.slots[number % _SLOTS]
        api.cuMemcpyDtoHAsync(slot.address, source + offset, size, stream)
        api.cuEventRecord(slot.event.handle, stream)

    try:
        for number in range(min(_SLOTS, len(chunks))):
            ring.slots[number].event.synchronize()  # an earlier upload may still be reading the slot
            queue(number)
        for number, (offset, size) in enumerate(chunks):
            slot = ring.slots[number % _SLOTS]
            # Wait here and not in the threads: waiting threads would take processors from those that copy.
            slot.event.synchronize()
            moves.append(ring.empty(slot, destination + offset, size))
            emptied = number - _EMPTYING
            if emptied >= 0:
                moves[emptied].result()
                if emptied + _SLOTS < len(chunks):
                    queue(emptied + _SLOTS)
        for move in moves:
            move.result()
    finally:
        moves.wait()

"""Large pageable copies, staged: a few threads move the bytes to and from page-locked memory in turn.

The driver stages a pageable copy as well, in one thread. Here several threads share the host's part, the slow one. The
caller alone queues work in the stream, so the order there is the caller's. A copy that finds the page-locked memory
busy or not to be had goes to the driver instead; two copies never wait for each other here.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from . import errors
from ._driver import api
from .addresses import memory_kind
from .capture import captures
from .device import Device, activated, current_device
from .event import Event
from .host_memory import PinnedMemory

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["THRESHOLD", "download", "release_staging", "upload"]

# Below this many bytes starting the threads costs more than they save.
THRESHOLD = 8 << 20

_SLOTS = 16
# With fewer the threads would only take the host's time from each other.
_LEAST_PROCESSORS = 4


class _Plan(NamedTuple):
    """In what pieces a copy is made, and how many threads share it."""

    piece_bytes: int
    threads: int


# Which plan is for copies of so many bytes and more. Found on an H200's host of 16 processors: 1 GiB goes at 47 GB/s
# instead of 41, while 32 to 256 MiB take a tenth less time in smaller pieces by fewer threads. To hand pieces below
# 4 MiB to the threads takes longer than the copies.
_PLANS = ((512 << 20, _Plan(8 << 20, 12)), (0, _Plan(4 << 20, 8)))


class _Slot:
    """A piece of the ring, and the mark behind the last copy that used it."""

    __slots__ = ("address", "event")

    def __init__(self, address: int) -> None:
        self.address = address
        self.event = Event(timing=False)


class _Moves(list["Future[None]"]):
    """What the threads do for one copy."""

    def wait(self) -> None:
        """Wait until all is done, whether well or not."""
        for move in self:
            move.exception()


class _Ring:
    """The page-locked memory of one device's copies by one plan, and the threads that fill and empty it."""

    def __init__(self, device: Device, plan: _Plan) -> None:
        self.busy = threading.Lock()
        self.closed = False
        self._device = device
        self._piece_bytes = plan.piece_bytes
        self._memory = PinnedMemory(_SLOTS * plan.piece_bytes)
        start = self._memory.handle
        self.slots = [_Slot(start + i * plan.piece_bytes) for i in range(_SLOTS)]
        from concurrent.futures import ThreadPoolExecutor  # it brings logging along, so that it is left until here

        self._threads = ThreadPoolExecutor(
            min(plan.threads, _processors()), f"cudart_py staging for device {device.ordinal}"
        )

    def pieces(self, nbytes: int) -> list[tuple[int, int]]:
        """Return the offsets and sizes of the pieces of a copy."""
        size = self._piece_bytes
        return [(offset, min(size, nbytes - offset)) for offset in range(0, nbytes, size)]

    def move(self, slot: _Slot, destination: int, source: int, nbytes: int) -> Future[None]:
        """Let a thread copy on the host as soon as the device is done with the slot."""
        return self._threads.submit(self._move, slot, destination, source, nbytes)

    def _move(self, slot: _Slot, destination: int, source: int, nbytes: int) -> None:
        with activated(self._device):
            slot.event.synchronize()
        ctypes.memmove(destination, source, nbytes)

    def close(self) -> None:
        """End the threads and give the memory back, after the copies that use it."""
        self.closed = True
        self._threads.shutdown()
        for slot in self.slots:
            slot.event.synchronize()
            slot.event.close()
        self._memory.close()


_rings: dict[tuple[Device, _Plan], _Ring] = {}
_making = threading.Lock()


def upload(destination: int, source: int, nbytes: int, stream: int) -> bool:
    """Queue a copy from pageable host memory to the current device; False if the driver should do it.

    On return the source may be changed.
    """
    return _staged(_upload, destination, source, nbytes, stream, source)


def download(destination: int, source: int, nbytes: int, stream: int) -> bool:
    """Copy from the current device to pageable host memory; False if the driver should do it.

    On return the copy is done.
    """
    return _staged(_download, destination, source, nbytes, stream, destination)


def release_staging() -> None:
    """Give back the page-locked memory and the threads of staged copies, on every device.

    Waits for the copies in work. The next large pageable copy makes new ones.
    """
    with _making:
        rings = list(_rings.items())
        _rings.clear()
    for (device, _), ring in rings:
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
    # A capture anywhere in the process forbids making the page-locked memory, and is spoiled by the attempt.
    if captures or _processors() < _LEAST_PROCESSORS or _capturing(stream) or memory_kind(host) != "pageable":
        return False
    ring = _ring_of(current_device(), nbytes)
    if ring is None or not ring.busy.acquire(blocking=False):
        return False
    try:
        if ring.closed:
            return False
        copy(ring, destination, source, nbytes, stream)
    finally:
        ring.busy.release()
    return True


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def _capturing(stream: int) -> bool:
    from cuda.bindings import driver as enums

    try:
        return bool(api.cuStreamIsCapturing(stream) != enums.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE)
    except errors.CaptureError:
        # The legacy stream beside a capture: the copy itself will say what is wrong.
        return True


def _ring_of(device: Device, nbytes: int) -> _Ring | None:
    plan = next(plan for least, plan in _PLANS if nbytes >= least)
    with _making:
        ring = _rings.get((device, plan))
        if ring is None:
            try:
                ring = _rings[device, plan] = _Ring(device, plan)
            except errors.CudaError:
                # No page-locked memory is left, or another thread's capture forbids allocating it.
                return None
        return ring


def _upload(ring: _Ring, destination: int, source: int, nbytes: int, stream: int) -> None:
    pieces, moves = ring.pieces(nbytes), _Moves()

    def queue(number: int) -> None:
        offset, size = pieces[number]
        slot = ring.slots[number % _SLOTS]
        moves[number].result()
        api.cuMemcpyHtoDAsync(destination + offset, slot.address, size, stream)
        api.cuEventRecord(slot.event.handle, stream)

    try:
        for number, (offset, size) in enumerate(pieces):
            if number >= _SLOTS:
                queue(number - _SLOTS)
            slot = ring.slots[number % _SLOTS]
            moves.append(ring.move(slot, slot.address, source + offset, size))
        for number in range(max(0, len(pieces) - _SLOTS), len(pieces)):
            queue(number)
    finally:
        # After an error too no thread may go on reading the caller's memory.
        moves.wait()


def _download(ring: _Ring, destination: int, source: int, nbytes: int, stream: int) -> None:
    moves = _Moves()
    try:
        for number, (offset, size) in enumerate(ring.pieces(nbytes)):
            slot = ring.slots[number % _SLOTS]
            if number >= _SLOTS:
                moves[number - _SLOTS].result()
            else:
                slot.event.synchronize()  # an earlier upload may still be reading the slot
            api.cuMemcpyDtoHAsync(slot.address, source + offset, size, stream)
            api.cuEventRecord(slot.event.handle, stream)
            moves.append(ring.move(slot, destination + offset, slot.address, size))
        for move in moves:
            move.result()
    finally:
        moves.wait()

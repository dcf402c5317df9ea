"""Streams: queues of work on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _driver, debugging, errors
from ._driver import api
from ._lifetime import Handle
from .device import Device, activated, current_device

if TYPE_CHECKING:
    from .event import Event

__all__ = ["Stream", "legacy_default", "per_thread_default", "stream_handle"]

# Special handles of the CUDA API: CU_STREAM_LEGACY and CU_STREAM_PER_THREAD, #defines without an enum.
_LEGACY = 1
_PER_THREAD = 2


class Stream(Handle):
    """A stream of the current device (cuStreamCreateWithPriority).

    `priority`: lower numbers come first; outside the device's range it is a ValueError.
    `non_blocking`: do not synchronise implicitly with the legacy default stream.
    """

    __slots__ = ("_device",)

    def __init__(self, *, priority: int = 0, non_blocking: bool = False) -> None:
        from cuda.bindings import driver as enums

        self._value = None
        self._owned = True
        self._device: Device | None = current_device()
        least, greatest = api.cuCtxGetStreamPriorityRange()
        if not greatest <= priority <= least:
            raise ValueError(f"priority {priority} is outside this device's range {greatest} to {least}")
        flag = enums.CUstream_flags
        kind = flag.CU_STREAM_NON_BLOCKING if non_blocking else flag.CU_STREAM_DEFAULT
        self._value = int(api.cuStreamCreateWithPriority(kind, priority))

    @classmethod
    def borrow(cls, handle: int, device: Device | None = None) -> Stream:
        """Wrap another library's stream (a CUstream or cudaStream_t as an int); it is never destroyed.

        `device` is the stream's device, by default the current one.
        """
        stream = cls.__new__(cls)
        stream._value = int(handle)
        stream._owned = False
        stream._device = device if device is not None else current_device()
        return stream

    @property
    def device(self) -> Device:
        """The stream's device; for the default streams the calling thread's current one."""
        return self._device if self._device is not None else current_device()

    @property
    def priority(self) -> int:
        """The priority; lower numbers come first (cuStreamGetPriority)."""
        with activated(self.device):
            return int(api.cuStreamGetPriority(self.handle))

    @property
    def done(self) -> bool:
        """Whether all work of the stream has finished, without waiting (cuStreamQuery)."""
        with activated(self.device):
            return finished(_driver.raw.cuStreamQuery(self.handle)[0], "cuStreamQuery")

    def synchronize(self) -> None:
        """Wait for all work of the stream; errors of its launches surface here (cuStreamSynchronize)."""
        device = self.device
        with activated(device):
            api.cuStreamSynchronize(self.handle)
        debugging.note_synchronized(device.ordinal, self.handle)

    def record(self, event: Event | None = None) -> Event:
        """Record an event (a new one with timing by default) behind the work so far, and return it."""
        from .event import Event

        with activated(self.device):
            event = event if event is not None else Event()
        event.record(self)
        return event

    def wait(self, other: Event | Stream) -> None:
        """Let later work here wait for an event, or for all of another stream's work so far.

        The host does not wait (cuStreamWaitEvent). Waiting for an event that was never recorded is a
        ValueError: CUDA would silently not wait at all.
        """
        from .event import Event

        if isinstance(other, Stream):
            with activated(other.device), Event(timing=False) as event:
                event.record(other)
                self.wait(event)
            return
        if not other.recorded:
            raise errors.EventNotRecordedError("cannot wait for an event that was never recorded")
        with activated(self.device):
            api.cuStreamWaitEvent(self.handle, other.handle, 0)

    def _release(self, value: Any) -> None:
        api.cuStreamDestroy(value)

    def __repr__(self) -> str:
        return f"<Stream {'closed' if self._value is None else hex(self._value)}>"


class _DefaultStream(Stream):
    """One of the two streams that always exist, on whatever device is current."""

    __slots__ = ("_name",)

    def __init__(self, name: str, handle: int) -> None:
        self._name = name
        self._value = handle
        self._owned = False
        self._device = None

    def close(self) -> None:
        """Do nothing: the default streams live as long as the process."""

    def __reduce__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<Stream {self._name}>"


legacy_default = _DefaultStream("legacy_default", _LEGACY)
per_thread_default = _DefaultStream("per_thread_default", _PER_THREAD)


def stream_handle(stream: Stream | None) -> int:
    """Return a stream's handle, that of the legacy default stream for None.

    Raises TypeError for what is no Stream and ValueError for a closed one.
    """
    if stream is None:
        return _LEGACY
    if not isinstance(stream, Stream):
        raise TypeError(f"stream is a cudart_py Stream or None, not {type(stream).__name__}")
    return stream.handle


def finished(status: Any, call: str) -> bool:
    """Turn the status of a query into whether the work is done; raise on any other failure."""
    if not status:
        return True
    if status.name == "CUDA_ERROR_NOT_READY":
        return False
    raise errors.failure(status, call)

"""Events: marks in a stream that other work and the host can wait for, and that measure time."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Never

from .. import errors
from ..base import arguments
from ..context.capture import captures, find, hold_node, note_recorded
from ..context.current import activated
from ..context.device import Device, current_device
from ..context.lifetimes import ComparedHandle
from ..driver import enums
from ..driver.calls import api, raw
from ..driver.capabilities import require_ipc
from ..driver.unwrap import failure
from ..hints import answers_keywords, hinted, unexpected
from ..host.failures import host_failures
from .graphs.nodes import Launched
from .polling import until
from .stream_base import StreamBase, finished, resolved

if TYPE_CHECKING:
    from .stream import Stream


# Descriptions of the nodes of graphs that use events, for errors about closed events.
RECORD = "a record of an event"
WAIT = "a wait for an event"


@hinted
class Event(ComparedHandle, Launched):
    """A marker in a stream (cuEventCreate).

    - `timing`: record a time, so that `end - start` is the time between two events; an event without timing is cheaper.
    - `blocking`: let a waiting host thread sleep instead of spinning.
    - `interprocess`: let other processes open the event with a handle from `ipc.handle`; requires timing=False.

    Raises NotSupportedError for `interprocess` if the driver lacks the capability `ipc`.
    """

    __slots__ = ("_device", "_interprocess", "_native", "_recorded", "_timing")

    @answers_keywords("Event")
    def __init__(self, *, timing: bool = True, blocking: bool = False, interprocess: bool = False) -> None:
        self._value = None
        self._owned = True
        blocking = arguments.flag("Event", "blocking", blocking)
        interprocess = arguments.flag("Event", "interprocess", interprocess)
        self._timing = timing = arguments.flag("Event", "timing", timing)
        if interprocess:
            if timing:
                wanted = "False with interprocess=True, since interprocess events cannot record times"
                raise arguments.wrong_value("Event", "timing", wanted, timing)
            require_ipc("Event(interprocess=True)")
        self._device: Device = current_device()
        self._interprocess = interprocess
        self._recorded = interprocess  # another process may record it
        kind = enums.CUevent_flags
        flags = int(kind.CU_EVENT_BLOCKING_SYNC if blocking else kind.CU_EVENT_DEFAULT)
        if not timing:
            flags |= int(kind.CU_EVENT_DISABLE_TIMING)
        if interprocess:
            flags |= int(kind.CU_EVENT_INTERPROCESS)
        self._native = api.cuEventCreate(flags)
        self._value = int(self._native)

    @classmethod
    def _adopt(cls, native: Any, device: Device) -> Event:
        """Wrap an event that the driver has opened for this process; it is destroyed like any other event."""
        event = cls.__new__(cls)
        event._value, event._native, event._owned = int(native), native, True
        event._device = device
        event._timing = event._interprocess = False
        event._recorded = True
        return event

    @property
    def interprocess(self) -> bool:
        """Whether other processes can open the event with a handle from `ipc.handle`."""
        return self._interprocess

    @property
    def device(self) -> Device:
        """The device on whose streams the event can be recorded."""
        return self._device

    @property
    def native(self) -> Any:
        """The CUevent object, which the bindings accept faster than an int; raises ValueError when closed."""
        if self._value is None:
            self.handle  # noqa: B018  # it raises when it is closed
        return self._native

    @property
    def recorded(self) -> bool:
        """Whether the event has been recorded; always True for events that are shared between processes."""
        return self._recorded

    @property
    def done(self) -> bool:
        """Whether the work before the event has finished; True if it was never recorded, as in CUDA (cuEventQuery)."""
        return finished(raw.cuEventQuery(self.native)[0], "cuEventQuery")

    def record(self, stream: Stream | None = None, *, external: bool = False, **foreign: Never) -> Event:
        """Record the event after the stream's work so far, and return it (cuEventRecord).

        In a stream that is being captured, a record marks a position in the graph. With `external`, it becomes a node
        that records the event at each launch of the graph, so that other work can wait for it and `end - start` is the
        time between two nodes (cuEventRecordWithFlags). Outside captures, `external` raises CaptureError.
        """
        if foreign:
            raise unexpected("Event.record", (), foreign)
        target = resolved("Event.record", stream)
        device = target.device
        if device is not self._device:
            rule = f"be on device {self._device.ordinal}, like the event"
            raise arguments.unusable("Event.record", "stream", rule, f"on device {device.ordinal}")
        if arguments.flag("Event.record", "external", external):
            return self._record_externally(target)
        with activated(device):
            (status,) = raw.cuEventRecord(self.native, target.native)
        if status:
            raise failure(status, "cuEventRecord")
        self._recorded = True
        if captures:
            note_recorded(self.handle, target.handle)
        return self

    def _record_externally(self, stream: StreamBase) -> Event:
        """Record the event at each launch of the graph into which the stream is captured, and return it."""
        if not captures or find(stream.handle) is None:
            raise errors.CaptureError(
                "Event.record: external=True needs a stream that is being captured; without it, the event is recorded "
                "in the stream"
            )
        flag = int(enums.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL)
        with activated(self._device):
            (status,) = raw.cuEventRecordWithFlags(self.native, stream.native, flag)
        if status:
            raise failure(status, "cuEventRecordWithFlags")
        hold_node(stream.handle, RECORD, (self,))
        return self

    def _note_launched(self) -> None:
        """Note that a graph that records the event has been launched."""
        self._recorded = True

    def synchronize(self) -> None:
        """Wait until the work before the event has finished (cuEventSynchronize)."""
        with activated(self._device):
            (status,) = raw.cuEventSynchronize(self.native)
        if status:
            raise failure(status, "cuEventSynchronize")
        host_failures.deliver(self._device.ordinal)

    def __await__(self) -> Generator[Any, None, None]:
        """Wait until the work before the event has finished, while asyncio's event loop keeps running.

            await stream.record()

        Raises the same errors as `synchronize`.
        """
        return self._until_done().__await__()

    async def _until_done(self) -> None:
        await until(lambda: self.done)
        host_failures.deliver(self._device.ordinal)

    def __sub__(self, start: Event) -> float:
        """Return the milliseconds from `start` to this event (cuEventElapsedTime).

        Raises EventTimingError if either event was made with timing=False, EventNotRecordedError if either was never
        recorded, NotReadyError if the device has not reached both events yet, and ValueError for events on different
        devices, which do not share a clock.
        """
        arguments.instance("Event.__sub__", "start", start, Event)
        for event, role in ((start, "start"), (self, "end")):
            if not event._timing:
                raise errors.EventTimingError(f"the {role} event was made with timing=False and records no time")
            if not event._recorded:
                raise errors.EventNotRecordedError(f"the {role} event was never recorded: call record() first")
        if start._device is not self._device:
            raise ValueError(
                f"the start event is on device {start._device.ordinal} and the end event is on device "
                f"{self._device.ordinal}: devices do not share a clock"
            )
        unreached = [role for event, role in ((start, "start"), (self, "end")) if not event.done]
        if unreached:
            raise errors.NotReadyError(
                f"the device has not reached the {' and the '.join(unreached)} event yet: first call synchronize() on "
                f"the {unreached[-1]} event, or on its stream"
            )
        return float(api.cuEventElapsedTime(start.handle, self.handle))

    def _release(self, value: Any) -> None:
        api.cuEventDestroy(value)

    def __repr__(self) -> str:
        return f"<Event {'closed' if self._value is None else hex(self._value)}>"


class Timer:
    """The result of `timed`: the time from the beginning of its block to its end."""

    def __init__(self) -> None:
        self._milliseconds: float | None = None

    def __repr__(self) -> str:
        return "<Timer, running>" if self._milliseconds is None else f"<Timer {self._milliseconds:.4g} ms>"

    @property
    def milliseconds(self) -> float:
        """The time in milliseconds, available once the block has ended."""
        if self._milliseconds is None:
            raise ValueError("the time is available only after the `with` block has ended")
        return self._milliseconds


@contextmanager
def timed(stream: Stream | None = None) -> Iterator[Timer]:
    """Time the work that the block queues in the stream, with two events; the end of the block waits for the work."""
    device = resolved("timed", stream).device
    timer = Timer()
    with activated(device), Event() as start, Event() as end:
        start.record(stream)
        yield timer
        end.record(stream)
        end.synchronize()
        timer._milliseconds = end - start


class WaitedEvent:
    """An event for which a node of a graph waits: a launch does not record it, but raises an error if it is closed."""

    __slots__ = ("_event",)

    _noun = "event"  # for the error

    def __init__(self, event: Event) -> None:
        self._event = event

    @property
    def closed(self) -> bool:
        """Whether the event has been closed."""
        return self._event.closed

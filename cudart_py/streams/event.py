"""Events: marks in a stream that can be waited for and timed."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import arguments, errors
from ..context.capture import captures, note_recorded
from ..context.current import activated
from ..context.device import Device, current_device
from ..context.lifetimes import ComparedHandle
from ..driver import enums
from ..driver.calls import api, raw
from ..driver.capabilities import require_ipc
from ..driver.unwrap import failure
from ..hints import hinted
from .polling import until
from .stream_base import finished, resolved

if TYPE_CHECKING:
    from .stream import Stream


@hinted
class Event(ComparedHandle):
    """A mark in a stream (cuEventCreate).

    - `timing`: whether `end - start` can be asked; without it an event is cheaper.
    - `blocking`: let a waiting host thread sleep instead of spinning.
    - `interprocess`: let other processes open the event through what `ipc.handle` returns, which needs timing=False.

    Raises NotSupportedError for `interprocess` where the driver lacks the capability `ipc`.
    """

    __slots__ = ("_device", "_interprocess", "_native", "_recorded", "_timing")

    def __init__(self, *, timing: bool = True, blocking: bool = False, interprocess: bool = False) -> None:
        self._value = None
        self._owned = True
        blocking = arguments.flag("Event", "blocking", blocking)
        interprocess = arguments.flag("Event", "interprocess", interprocess)
        self._timing = timing = arguments.flag("Event", "timing", timing)
        if interprocess:
            if timing:
                wanted = "False with interprocess=True, since events of several processes have no times"
                raise arguments.wrong_value("Event", "timing", wanted, timing)
            require_ipc("Event(interprocess=True)")
        self._device: Device = current_device()
        self._interprocess = interprocess
        self._recorded = interprocess  # another process may have done so
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
        """Return an event that the driver has opened for this process and takes back as any other."""
        event = cls.__new__(cls)
        event._value, event._native, event._owned = int(native), native, True
        event._device = device
        event._timing = event._interprocess = False
        event._recorded = True
        return event

    @property
    def interprocess(self) -> bool:
        """Whether the event was made for other processes too, which open what `ipc.handle` returns."""
        return self._interprocess

    @property
    def device(self) -> Device:
        """The device on whose streams the event can be recorded."""
        return self._device

    @property
    def native(self) -> Any:
        """The CUevent object, which the bindings take faster than an int; ValueError when closed."""
        if self._value is None:
            self.handle  # noqa: B018  # it raises when it is closed
        return self._native

    @property
    def recorded(self) -> bool:
        """Whether `record` was ever called; True for events shared between processes."""
        return self._recorded

    @property
    def done(self) -> bool:
        """Whether the work before the mark has finished; True for one never recorded, as in CUDA (cuEventQuery)."""
        return finished(raw.cuEventQuery(self.native)[0], "cuEventQuery")

    def record(self, stream: Stream | None = None) -> Event:
        """Put the mark after the stream's work so far and return the event (cuEventRecord)."""
        target = resolved("Event.record", stream)
        device = target.device
        if device is not self._device:
            rule = f"be of device {self._device.ordinal}, as the event is"
            raise arguments.unusable("Event.record", "stream", rule, f"of device {device.ordinal}")
        with activated(device):
            (status,) = raw.cuEventRecord(self.native, target.native)
        if status:
            raise failure(status, "cuEventRecord")
        self._recorded = True
        if captures:
            note_recorded(self.handle, target.handle)
        return self

    def synchronize(self) -> None:
        """Wait until the work before the mark has finished (cuEventSynchronize)."""
        with activated(self._device):
            (status,) = raw.cuEventSynchronize(self.native)
        if status:
            raise failure(status, "cuEventSynchronize")

    def __await__(self) -> Generator[Any, None, None]:
        """Wait until the work before the mark has finished, while asyncio's event loop goes on.

            await stream.record()

        Raises what `synchronize` would.
        """
        return until(lambda: self.done).__await__()

    def __sub__(self, start: Event) -> float:
        """Return the milliseconds from `start` to this event (cuEventElapsedTime).

        Raises EventTimingError if one was made with timing=False, EventNotRecordedError if one was
        never recorded, NotReadyError if one is not reached yet, and ValueError for events of two devices, which have no
        clock in common.
        """
        arguments.instance("Event.__sub__", "start", start, Event)
        for event, role in ((start, "start"), (self, "end")):
            if not event._timing:
                raise errors.EventTimingError(f"the {role} event was made with timing=False and has no time")
            if not event._recorded:
                raise errors.EventNotRecordedError(f"the {role} event was never recorded: call record() first")
        if start._device is not self._device:
            raise ValueError(
                f"the start event is of device {start._device.ordinal} and the end event of device "
                f"{self._device.ordinal}: devices have no clock in common"
            )
        for event, role in ((start, "start"), (self, "end")):
            if not event.done:
                raise errors.NotReadyError(f"the {role} event is not reached yet: call synchronize() first")
        return float(api.cuEventElapsedTime(start.handle, self.handle))

    def _release(self, value: Any) -> None:
        api.cuEventDestroy(value)

    def __repr__(self) -> str:
        return f"<Event {'closed' if self._value is None else hex(self._value)}>"


class Timer:
    """The result of `timed`: the time between the two ends of its block."""

    def __init__(self) -> None:
        self._milliseconds: float | None = None

    def __repr__(self) -> str:
        return "<Timer, running>" if self._milliseconds is None else f"<Timer {self._milliseconds:.4g} ms>"

    @property
    def milliseconds(self) -> float:
        """The time in milliseconds, known once the block has ended."""
        if self._milliseconds is None:
            raise ValueError("the time is known only after the `with` block has ended")
        return self._milliseconds


@contextmanager
def timed(stream: Stream | None = None) -> Iterator[Timer]:
    """Time the stream's work that the block queues, by two events; the end waits for it."""
    device = resolved("timed", stream).device
    timer = Timer()
    with activated(device), Event() as start, Event() as end:
        start.record(stream)
        yield timer
        end.record(stream)
        end.synchronize()
        timer._milliseconds = end - start

"""Streams: queues of work on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from . import _lifetime, arguments, debugging, errors
from ._driver import api, raw
from ._lifetime import Handle
from .capture import captures, find, note_wait
from .device import Device, activated, current_device
from .device import _thread as this_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from .access_policy import AccessPolicy
    from .array import DeviceArray
    from .event import Event
    from .graph import Capturing

__all__ = ["Stream", "legacy_default", "per_thread_default", "stream_handle"]

# Special handles of the CUDA API: CU_STREAM_LEGACY and CU_STREAM_PER_THREAD, #defines without an enum.
_LEGACY = 1
_PER_THREAD = 2


class Stream(Handle):
    """A stream of the current device (cuStreamCreateWithPriority).

    `priority`: lower numbers come first; outside the device's range it is a ValueError.
    `non_blocking`: do not synchronise implicitly with the legacy default stream.
    """

    __slots__ = ("_device", "_owner", "_queue")

    _owner: Any  # what a borrowed stream was made of
    # The CUstream, or None where none was made yet, the stream is closed, or a default one of a certain device. Nothing
    # else has an attribute of this name, so that hot paths need not ask for the type.
    _queue: Any

    def __init__(self, *, priority: int = 0, non_blocking: bool = False) -> None:
        from cuda.bindings import driver as enums

        self._value = None
        self._owned = True
        self._device: Device | None = current_device()
        least, greatest = api.cuCtxGetStreamPriorityRange()
        priority = arguments.integer("Stream", "priority", priority, greatest, least)
        non_blocking = arguments.flag("Stream", "non_blocking", non_blocking)
        flag = enums.CUstream_flags
        kind = flag.CU_STREAM_NON_BLOCKING if non_blocking else flag.CU_STREAM_DEFAULT
        self._queue = api.cuStreamCreateWithPriority(kind, priority)
        self._value = int(self._queue)

    @classmethod
    def borrow(cls, stream: Any, device: Device | None = None) -> Stream:
        """Wrap another library's stream; it is kept alive, and never destroyed here.

        `stream` is an object with `__cuda_stream__`, a stream of CuPy or PyTorch, or a handle: a CUstream or
        cudaStream_t, also as an int. `device` is the stream's device, by default the one that the driver names
        (cuStreamGetDevice); for handles of the default streams it is the current one. Raises TypeError for what is
        no stream.
        """
        from .interop import foreign_stream

        if device is not None:
            arguments.instance("Stream.borrow", "device", device, Device, "a Device or None")
        result = cls.__new__(cls)
        # In the runtime 0 is the legacy default stream, which elsewhere must not be called so.
        result._value = foreign_stream(stream) or _LEGACY
        result._owned = False
        result._queue = None
        result._owner = stream
        if device is None:
            named = result._value not in (_LEGACY, _PER_THREAD)
            device = Device(int(api.cuStreamGetDevice(result._value))) if named else current_device()
        result._device = device
        return result

    @property
    def __cuda_stream__(self) -> Callable[[], tuple[int, int]]:
        """The protocol of cuda.core, CuPy and PyTorch: a function that returns (0, handle).

        Absent where other libraries cannot use our streams (the capability `interop`).
        """
        from .interop import require

        require(self, "__cuda_stream__")
        return lambda: (0, self.handle)

    @property
    def native(self) -> Any:
        """The CUstream object, which the bindings take faster than an int; ValueError when closed."""
        if self._queue is None:
            from cuda.bindings import driver as enums

            queue = enums.CUstream(self.handle)
            # A borrowed default stream is its device's only while that is current, which hot paths don't ask for.
            if self._device is not None and self._value in (_LEGACY, _PER_THREAD):
                return queue
            self._queue = queue
        return self._queue

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
        return finished(self._ask(raw.cuStreamQuery), "cuStreamQuery")

    def synchronize(self) -> None:
        """Wait for all work of the stream; errors of its launches surface here (cuStreamSynchronize)."""
        status = self._ask(raw.cuStreamSynchronize)
        if status:
            raise errors.failure(status, "cuStreamSynchronize")
        device = self._device or current_device()
        debugging.note_synchronized(device.ordinal, self._value)
        if _lifetime.postponed:
            _lifetime.close_postponed()

    def __await__(self) -> Generator[Any, None, None]:
        """Wait for all work that the stream has by now, while asyncio's event loop goes on.

            await stream

        Raises what `synchronize` would. Work that is given to the stream meanwhile does not count.
        """
        from .awaiting import until_finished

        return until_finished(self).__await__()

    def _ask(self, function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
        """Call a function of the driver with this stream, its device current, and return the status."""
        native = self._queue
        if native is None:
            native = self.native
        here = this_thread.device
        if here is not None and (here is self._device or self._device is None):
            return function(native, *arguments)[0]
        with activated(self.device):
            return function(native, *arguments)[0]

    def record(self, event: Event | None = None) -> Event:
        """Record an event (a new one with timing by default) behind the work so far, and return it."""
        from .event import Event

        if event is None:
            with activated(self.device):
                event = Event()
        else:
            arguments.instance("Stream.record", "event", event, Event, "an Event or None")
        return event.record(self)

    def wait(self, other: Event | Stream) -> None:
        """Let later work here wait for an event, or for all of another stream's work so far.

        The host does not wait (cuStreamWaitEvent). Waiting for an event that was never recorded is a
        ValueError: CUDA would silently not wait at all.
        """
        if isinstance(other, Stream):
            from .event import Event

            arguments.opened("Stream.wait", "other", other, Stream)
            with activated(other.device), Event(timing=False) as event:
                event.record(other)
                self.wait(event)
            return
        try:
            recorded = other._recorded
        except AttributeError:
            recorded = None
        if recorded is not True:
            from .event import Event

            arguments.opened("Stream.wait", "other", other, Event, "an Event or a Stream")
            raise errors.EventNotRecordedError("cannot wait for an event that was never recorded")
        native, device = self._queue, self._device
        if native is not None and device is not None and other._value is not None and this_thread.device is device:
            (status,) = raw.cuStreamWaitEvent(native, other._native, 0)
        else:
            status = self._ask(raw.cuStreamWaitEvent, other.native, 0)
        if status:
            raise errors.failure(status, "cuStreamWaitEvent")
        if captures:
            note_wait(other._value, self._value)

    def add_callback(self, function: Callable[[], object]) -> None:
        """Call a function of the host, without arguments, when the stream's work so far is done (cuLaunchHostFunc).

        It runs in a thread of the driver's, delays the stream's later work and must make no CUDA call, not
        even a query. What it raises goes to `sys.unraisablehook`. It is kept until it has run, and as long
        as the graph where the stream is captured. In asyncio, `await stream` is simpler than a future that
        it sets.
        """
        from .host_functions import launch_host_function

        launch_host_function(self, function)

    def capture(self, mode: Literal["global", "thread_local", "relaxed"] = "thread_local") -> Capturing:
        """Record the work that the block queues into a graph, instead of running it (cuStreamBeginCapture).

            with stream.capture() as graph:
                kernel[grid, block, 0, stream](x, y)
            executable = graph.instantiate()

        Streams that wait for an event of this one record into the same graph, and this one must wait for
        them again before the block ends. What cannot be captured raises CaptureError: synchronising,
        queries, copies of pageable memory, allocations. `mode` says whose calls that may be unsafe during a
        capture fail: those of every thread, of this one, or none. If the block raises, there is no graph.
        However the block is left, the capture ends; to close the stream inside ends it too.
        """
        from .graph import Capturing

        return Capturing(self, mode)

    def access_policy(
        self,
        array: DeviceArray,
        *,
        hit_ratio: float = 1.0,
        hit: str = "persisting",
        miss: str = "streaming",
    ) -> AccessPolicy:
        """Give the accesses of the block's work to an array a policy in the L2 cache (cuStreamSetAttribute).

            with stream.access_policy(weights, hit_ratio=0.6):
                kernel[grid, block, 0, stream](weights, x)

        The share `hit_ratio` of the array gets the policy `hit`, the rest `miss`: "normal", "streaming" or
        "persisting". Persisting lines need room set aside: `device.limits.persisting_l2_cache_size`.
        """
        from .access_policy import AccessPolicy

        return AccessPolicy(self, array, hit_ratio, hit, miss)

    def close(self) -> None:
        """Destroy the stream when its work is done; a second call does nothing (cuStreamDestroy).

        A capture that began on it ends, without a graph. One that it only joined goes on.
        """
        try:
            super().close()
        finally:
            # Destroying it may report what went wrong in it, and it is gone all the same.
            self._queue = None

    def _release(self, value: Any) -> None:
        capture = find(value) if captures else None
        try:
            api.cuStreamDestroy(value)
        finally:
            if capture is not None:
                capture.leave(value)

    def __repr__(self) -> str:
        return f"<Stream {'closed' if self._value is None else hex(self._value)}>"


class _DefaultStream(Stream):
    """One of the two streams that always exist, on whatever device is current."""

    __slots__ = ("_name",)

    def __init__(self, name: str, handle: int) -> None:
        self._name = name
        self._value = handle
        self._owned = False
        self._queue = None
        self._device = None

    def close(self) -> None:
        """Do nothing: the default streams live as long as the process."""

    def __reduce__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<Stream {self._name}>"


legacy_default = _DefaultStream("legacy_default", _LEGACY)
per_thread_default = _DefaultStream("per_thread_default", _PER_THREAD)


def stream_handle(call: str, stream: Stream | None) -> int:
    """Return the handle of a call's argument `stream`, that of the legacy default stream for None.

    Raises TypeError for what is no Stream and ValueError for a closed one.
    """
    if stream is None:
        return _LEGACY
    return arguments.opened(call, "stream", stream, Stream, "a cudart_py Stream or None").handle


def finished(status: Any, call: str) -> bool:
    """Turn the status of a query into whether the work is done; raise on any other failure."""
    if not status:
        return True
    if status.name == "CUDA_ERROR_NOT_READY":
        return False
    raise errors.failure(status, call)

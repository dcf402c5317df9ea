"""Streams: queues of work on a device."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Literal, Self

from numpy.typing import NDArray

from .. import errors
from ..base import arguments
from ..context import lifetimes
from ..context.capture import LEGACY, PER_THREAD, captures, find, hold_node, note_wait
from ..context.current import activated
from ..context.device import Device, current_device
from ..driver import enums
from ..driver.calls import api, raw
from ..driver.capabilities import require_interop
from ..driver.launch_log import note_synchronized
from ..driver.unwrap import failure
from ..hints import answers_keywords, hinted
from ..host.failures import host_failures
from .access_policy import AccessPolicy, Window
from .awaiting import until_finished
from .event import WAIT, Event, WaitedEvent
from .foreign_stream import foreign_handle
from .graphs.capturing import Capturing, add_graph
from .graphs.conditionals import Condition, ConditionalNode, make_condition
from .graphs.graph import Graph
from .host_functions import launch_host_function
from .memory_operations import Condition as ValueCondition
from .memory_operations import WaitValue, WriteValue
from .stream_base import StreamBase, finished

# The maximum number of parts of a switch, each of which has a graph and a stream.
_MOST_CASES = 4096


def _device_of(handle: int) -> Device:
    """Return the device of a stream that another library has created."""
    none = enums.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
    # Asking for the device of a stream that is being captured would invalidate the capture.
    if handle in (LEGACY, PER_THREAD) or api.cuStreamIsCapturing(handle) != none:
        return current_device()
    return Device(int(api.cuStreamGetDevice(handle)))


@hinted
class Stream(StreamBase):
    """A stream of the current device (cuStreamCreateWithPriority).

    - `priority`: a lower number is a higher priority; a number outside the device's range raises a ValueError.
    - `non_blocking`: do not synchronise implicitly with the legacy default stream.

    `with cuda.Stream() as stream:` closes the stream at the end of the block. Unlike in CuPy and PyTorch, it does not
    make the stream current: no stream is ever current, and calls without a stream use the legacy default stream. Pass
    the stream to each call: `kernel[grid, block, 0, stream](...)`, `cuda.memcpy(dst, src, stream=stream)`. Entering a
    stream that has been used before raises ValueError, since other code may still use that stream.
    """

    __slots__ = ("_owner",)

    _closed_how = ", by close() or at the end of its `with` block, which does not make it current. Keep it open while "
    _closed_how += "its arrays are in use, or synchronize the device and pass another stream"

    _owner: Any  # the object that a borrowed stream wraps, or the green context of a stream

    @answers_keywords("Stream")
    def __init__(self, *, priority: int = 0, non_blocking: bool = False) -> None:
        self._value = None
        self._owned = True
        self._device = current_device()
        least, greatest = self._device.stream_priorities
        priority = arguments.integer("Stream", "priority", priority, greatest, least)
        non_blocking = arguments.flag("Stream", "non_blocking", non_blocking)
        flag = enums.CUstream_flags
        kind = flag.CU_STREAM_NON_BLOCKING if non_blocking else flag.CU_STREAM_DEFAULT
        self._value = int(api.cuStreamCreateWithPriority(kind, priority))
        self._queue = None
        self._used = False

    @classmethod
    def borrow(cls, stream: Any, device: Device | None = None) -> Stream:
        """Wrap another library's stream, which is kept alive; this package never destroys it.

        `stream` is an object with `__cuda_stream__`, a stream of CuPy or PyTorch, or a handle: a CUstream, a
        cudaStream_t or an int. `device` is the stream's device, by default the one that the driver reports
        (cuStreamGetDevice), or the current device for handles of the default streams and for streams that are being
        captured. Raises TypeError for an object that is not a stream.
        """
        if device is not None:
            arguments.instance("Stream.borrow", "device", device, Device, "a Device or None")
        result = cls.__new__(cls)
        # For the CUDA runtime, 0 is the legacy default stream. Everywhere else in this package, its handle is LEGACY.
        result._value = foreign_handle(stream) or LEGACY
        result._owned = False
        result._queue = None
        result._owner = stream
        if device is None:
            device = _device_of(result._value)
        result._device = device
        return result

    @property
    def __cuda_stream__(self) -> Callable[[], tuple[int, int]]:
        """The protocol of cuda.core, CuPy and PyTorch: a function that returns (0, handle).

        Absent if other libraries cannot use this package's streams, since the driver lacks the capability `interop`.
        """
        require_interop(self, "__cuda_stream__")
        return lambda: (0, self.handle)

    @property
    def priority(self) -> int:
        """The priority; a lower number is a higher priority (cuStreamGetPriority)."""
        with activated(self.device):
            return int(api.cuStreamGetPriority(self._open_handle()))

    @property
    def done(self) -> bool:
        """Whether all work in the stream has finished; reading this does not wait (cuStreamQuery)."""
        return finished(self._ask(raw.cuStreamQuery), "cuStreamQuery")

    @property
    def is_capturing(self) -> bool:
        """Whether the stream is recording its work into a graph instead of running it (cuStreamIsCapturing).

        Raises CaptureError if the capture has been invalidated; ending such a capture raises the same error.
        """
        with activated(self.device):
            status = api.cuStreamIsCapturing(self._open_handle())
        kind = enums.CUstreamCaptureStatus
        if status == kind.CU_STREAM_CAPTURE_STATUS_INVALIDATED:
            raise errors.CaptureError("the stream's capture was invalidated by a call that cannot be captured")
        return bool(status == kind.CU_STREAM_CAPTURE_STATUS_ACTIVE)

    def synchronize(self) -> None:
        """Wait for all work in the stream, and raise the errors of its launches and host functions.

        The driver's function is cuStreamSynchronize.
        """
        status = self._ask(raw.cuStreamSynchronize)
        if status:
            raise failure(status, "cuStreamSynchronize")
        device = self._device or current_device()
        note_synchronized(device.ordinal, self._value)
        lifetimes.close_waiting()
        host_failures.deliver(device.ordinal)

    def __await__(self) -> Generator[Any, None, None]:
        """Wait for the stream's work so far, while asyncio's event loop keeps running.

            await stream

        Raises the same errors as `synchronize`. Does not wait for work that is queued during the wait.
        """
        return until_finished(self).__await__()

    def record(self, event: Event | None = None) -> Event:
        """Record an event after the stream's work so far, by default a new one with timing, and return it."""
        if event is None:
            with activated(self.device):
                event = Event()
        else:
            arguments.opened("Stream.record", "event", event, Event, "an Event or None")
        return event.record(self)

    def wait(self, other: Event | Stream, *, external: bool = False) -> None:
        """Make later work in this stream wait for an event, or for all of another stream's work so far.

        The host does not wait (cuStreamWaitEvent). Raises EventNotRecordedError for an event that was never recorded,
        because CUDA would silently not wait at all.

        In a stream that is being captured, `external` adds a node to the graph that waits for an event from outside the
        graph, at each launch. Outside captures, it raises CaptureError.
        """
        if arguments.flag("Stream.wait", "external", external):
            self._wait_externally(arguments.opened("Stream.wait", "other", other, Event, "an Event"))
            return
        if isinstance(other, Stream):
            arguments.opened("Stream.wait", "other", other, Stream)
            with activated(other.device), Event(timing=False) as event:
                event.record(other)
                self.wait(event)
            return
        event = arguments.opened("Stream.wait", "other", other, Event, "an Event or a Stream")
        if not event.recorded:
            raise errors.EventNotRecordedError(
                "Stream.wait: argument 'other' must be an event that has been recorded; call its record() first"
            )
        status = self._ask(raw.cuStreamWaitEvent, event.native, 0)
        if status:
            raise failure(status, "cuStreamWaitEvent")
        if captures:
            note_wait(event.handle, self.handle)

    def _wait_externally(self, event: Event) -> None:
        """Add a wait for an event to the graph into which the stream is captured."""
        if not captures or find(self.handle) is None:
            raise errors.CaptureError(
                "Stream.wait: external=True needs a stream that is being captured; without it, the stream waits"
            )
        flag = int(enums.CUevent_wait_flags.CU_EVENT_WAIT_EXTERNAL)
        status = self._ask(raw.cuStreamWaitEvent, event.native, flag)
        if status:
            raise failure(status, "cuStreamWaitEvent")
        hold_node(self.handle, WAIT, (WaitedEvent(event),))

    def write_value(self, array: Window | NDArray[Any], value: int) -> None:
        """Write an integer to memory after the stream's work so far (cuStreamWriteValue32, cuStreamWriteValue64).

            stream.write_value(flags[3:4], 1)

        `array` has one element of dtype int32, uint32, int64 or uint64. It is a NumPy array in pinned memory, or a
        DeviceArray whose memory is not from a pool. Drivers refuse managed memory, and those of CUDA 13.0 also the
        memory of pools, which raises InvalidValueError. Code that sees the value also sees the writes of the stream's
        earlier work. In a stream that is being captured, the write becomes a node of the graph.
        """
        WriteValue._in_call("Stream.write_value", array, value)._queue(self)

    def wait_value(self, array: Window | NDArray[Any], value: int, condition: ValueCondition = "geq") -> None:
        """Make later work in this stream wait for an integer in memory (cuStreamWaitValue32, cuStreamWaitValue64).

            stream.wait_value(flags[3:4], 1)

        The stream continues once the element meets the condition:

        - "geq": it is at least `value`. The sign of their difference decides, so counters may wrap around.
        - "eq": it is equal to `value`.
        - "and": at least one bit is 1 in both.
        - "nor": at least one bit is 0 in both.

        A kernel, another stream's `write_value` or the host can write the value. A wait that nothing ends blocks the
        stream forever; the simulator reports it as KernelTimeoutError. CUDA does not see this order, and a GPU that
        loads a kernel at its first launch may wait for the stream first: queue the work that writes the value before
        the wait. Otherwise like `write_value`.
        """
        WaitValue._in_call("Stream.wait_value", array, value, condition)._queue(self)

    def launch_host_function(self, function: Callable[[], object]) -> None:
        """Call a host function, without arguments, once the stream's work so far has finished (cuLaunchHostFunc).

        The function runs in one of the driver's threads and delays the stream's later work. It must not make any CUDA
        calls, not even queries. An exception that it raises does not stop the stream. The next call that waits for the
        device raises it, in any thread: a `synchronize` of the stream, of the device or of an event, `await`, or
        `to_host`. If several functions have failed, they are raised as one `ExceptionGroup`. Exceptions that no call
        has raised are printed at the end of the program. The function is kept alive until it has run or, if the stream
        is being captured, for the life of the graph. With asyncio, `await stream` is simpler than setting a future in a
        host function.
        """
        launch_host_function(self, function)

    def capture(self, mode: Literal["global", "thread_local", "relaxed"] = "thread_local") -> Capturing:
        """Record the work that the block queues into a graph, instead of running it (cuStreamBeginCapture).

            with stream.capture() as graph:
                kernel[grid, block, 0, stream](x, y)
            executable = graph.instantiate()

        Streams that wait for an event in this stream record into the same graph, and this stream must wait for them
        before the block ends. Calls that cannot be captured raise CaptureError: synchronisation, queries, copies of
        pageable memory, and allocations other than `graphs.empty`. During the capture, potentially unsafe calls fail in
        every thread ("global"), in this thread ("thread_local") or in none ("relaxed"), depending on `mode`. If the
        block raises an exception, no graph is produced. The capture ends however the block is left, and also if the
        stream is closed inside the block.
        """
        return Capturing(self, mode)

    def add_graph(self, graph: Graph) -> None:
        """Add a copy of a graph as one node of the graph that this stream records (cuGraphAddChildGraphNode).

            with stream.capture() as whole:
                stream.add_graph(step)
                stream.add_graph(step)

        Later changes to the graph do not affect the copy. Both graphs keep the objects that the work uses alive. Raises
        CaptureError if the stream is not being captured: outside a capture, launch the instantiated graph.
        """
        add_graph(self, graph)

    def condition(self, default: int = 0) -> Condition:
        """Create the value that controls a conditional node of the graph that this stream records.

            with stream.capture() as graph:
                again = stream.condition(default=1)
                with stream.while_loop(again) as body:
                    step[grid, block, 0, body](x, again)  # calls cudaGraphSetConditional(again, ...)

        Its value is `default`, from 0 to 2**32 - 1, at the beginning of each launch of the graph. It controls exactly
        one node (`if_then`, `if_else`, `while_loop` or `switch`) of this graph or of a part of it. `Condition`
        describes how kernels set it (cuGraphConditionalHandleCreate). Raises CaptureError if the stream is not being
        captured.
        """
        return make_condition(self, default)

    def if_then(self, condition: Condition) -> ConditionalNode[Stream]:
        """Record a part of the graph that runs only if a condition is not 0 when the graph reaches it (cuGraphAddNode).

            with stream.if_then(condition) as then:
                kernel[grid, block, 0, then](x)

        The stream bound by `as` records into the part, and this stream's later work comes after it. A part may contain
        kernels, copies, fills, graphs and conditional nodes, all on one device. A graph with such parts can have only
        one executable graph at a time and cannot be part of another graph. Raises CaptureError if the stream is not
        being captured, and at the end of a block whose parts recorded nothing, for example because the work went to
        this stream by mistake.
        """
        return self._one_body("Stream.if_then", condition, "IF")

    def if_else(self, condition: Condition) -> ConditionalNode[tuple[Stream, ...]]:
        """Record two parts: the first runs if a condition is not 0, and the second if it is 0.

            with stream.if_else(condition) as (then, otherwise):
                first[grid, block, 0, then](x)
                second[grid, block, 0, otherwise](x)

        Otherwise like `if_then`.
        """
        return ConditionalNode("Stream.if_else", self, condition, "IF", 2, make_stream=_body_stream, shape=tuple)

    def while_loop(self, condition: Condition) -> ConditionalNode[Stream]:
        """Record a part that runs repeatedly as long as a condition, checked before each iteration, is not 0.

        Otherwise like `if_then`.
        """
        return self._one_body("Stream.while_loop", condition, "WHILE")

    def switch(self, condition: Condition, count: int) -> ConditionalNode[tuple[Stream, ...]]:
        """Record `count` parts; the part whose index equals the value of a condition runs, if there is one.

        `as` binds a tuple of their streams. Otherwise like `if_then`.
        """
        call = "Stream.switch"
        size = arguments.integer(call, "count", count, 1, _MOST_CASES)
        return ConditionalNode(call, self, condition, "SWITCH", size, make_stream=_body_stream, shape=tuple)

    def _one_body(self, call: str, condition: Condition, kind: str) -> ConditionalNode[Stream]:
        return ConditionalNode(call, self, condition, kind, 1, make_stream=_body_stream, shape=_single)

    def access_policy(
        self,
        array: Window,
        *,
        hit_ratio: float = 1.0,
        hit: Literal["normal", "streaming", "persisting"] = "persisting",
        miss: Literal["normal", "streaming"] = "streaming",
    ) -> AccessPolicy:
        """Set an L2 access policy for an array, for the work that the block queues (cuStreamSetAttribute).

            with stream.access_policy(weights, hit_ratio=0.6):
                kernel[grid, block, 0, stream](weights, x)

        The fraction `hit_ratio` of the array gets the policy `hit` ("normal", "streaming" or "persisting"), and the
        rest gets the policy `miss` ("normal" or "streaming"). Persisting accesses require that a part of L2 is set
        aside: see `device.limits.persisting_l2_cache_size`.
        """
        return AccessPolicy(self, array, hit_ratio, hit, miss)

    def __enter__(self) -> Self:
        self._open_handle()  # ValueError for a closed stream
        if self._owned and self._used:
            raise ValueError(
                "Stream: a stream that has been used before cannot be entered, since the block would close it at its "
                "end. No stream is ever current: pass it to each call, or make one with `with cuda.Stream() as stream:`"
            )
        return self

    def close(self) -> None:
        """Destroy the stream once its work has finished; a second call does nothing (cuStreamDestroy).

        A capture that began in this stream ends without a graph. A capture that this stream only joined continues.
        """
        try:
            super().close()
        finally:
            # Destroying the stream may report an error of its work, but it still destroys the stream.
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


def stream_of_owner(handle: int, device: Device, owner: Any) -> Stream:
    """Return a Stream that destroys the driver's stream `handle` when it is closed, and keeps `owner` alive."""
    result = Stream.__new__(Stream)
    result._value = handle
    result._owned = True
    result._queue = None
    result._used = False
    result._device = device
    result._owner = owner
    return result


def _body_stream() -> Stream:
    return Stream(non_blocking=True)


def _single(streams: list[Stream]) -> Stream:
    (stream,) = streams
    return stream


class _DefaultStream(Stream):
    """One of the two streams that always exist, on the current device."""

    __slots__ = ("_name",)

    def __init__(self, name: str, handle: int) -> None:
        self._name = name
        self._value = handle
        self._owned = False
        self._queue = None
        self._device = None

    def close(self) -> None:
        """Do nothing: the default streams exist as long as the process."""

    def __reduce__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<Stream {self._name}>"


legacy_default = _DefaultStream("legacy_default", LEGACY)
"""The default stream of all calls (cudaStreamLegacy). It and streams without `non_blocking` wait for each other."""

per_thread_default = _DefaultStream("per_thread_default", PER_THREAD)
"""The default stream of each host thread (cudaStreamPerThread), a blocking stream like those of `Stream()`."""


def stream_of(call: str, stream: Stream | None) -> Stream:
    """Return the argument `stream` of a call, or the legacy default stream for None.

    Raises TypeError for an object that is not a Stream and ValueError for a closed one.
    """
    if stream is None:
        return legacy_default
    if isinstance(stream, Stream) and stream._value is not None:  # fast path for the most common argument
        return stream
    return arguments.opened(call, "stream", stream, Stream, "a cudart_py Stream or None")

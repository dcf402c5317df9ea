"""Captures in progress: which streams record into which graph, and which objects that graph keeps alive.

Work that is queued in a stream under capture runs only when its graph is launched. So whenever `captures` is not empty,
a function that queues work must pass the objects that the work uses to `hold`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import errors
from ..driver import enums
from ..driver.calls import api, raw
from .current import activated
from .epoch import epoch

if TYPE_CHECKING:
    from .device import Device

# Special handles of the CUDA API: CU_STREAM_LEGACY and CU_STREAM_PER_THREAD, #defines without an enum.
LEGACY = 1
PER_THREAD = 2


class RetainedObjects(NamedTuple):
    """The objects that one captured operation uses and that the graph must keep alive.

    `what` describes the work: the name of a kernel, or a phrase such as "a copy". `node` is the handle of the graph
    node that does the work or contains a child graph, 0 if several nodes do the work.
    """

    what: str
    objects: tuple[Any, ...]
    node: int = 0

    def check(self) -> None:
        """Raise ValueError if one of the objects was closed explicitly."""
        for position, thing in enumerate(self.objects):
            if not getattr(thing, "closed", False):
                continue
            if hasattr(thing, "mapped"):  # the host memory of an argument
                raise ValueError(f"{self.what}: the page-locked or managed memory of an argument is closed")
            raise ValueError(f"argument {position} of {self.what}: the {_noun(thing)} is closed")

    def without_temporaries(self) -> RetainedObjects:
        """Return a copy without the objects that exist only inside the graph, which are closed as the capture ends."""
        return self._replace(objects=tuple(None if _ends_in_graph(thing) else thing for thing in self.objects))


def _ends_in_graph(thing: Any) -> bool:
    while thing is not None and not hasattr(type(thing), "ends_in_graph"):
        thing = getattr(thing, "base", None)
    return thing is not None


def _noun(thing: Any) -> str:
    name = getattr(type(thing), "_noun", type(thing).__name__)
    return "array" if name in ("DeviceArray", "CudaArray", "ndarray") else name.lower()


class Capture:
    """One capture: the objects that its graph uses, the events recorded inside, and actions deferred until its end.

    `temporaries` contains the memory that the graph has allocated but not yet freed, keyed by address, and `conditions`
    the conditions for its conditional nodes. `body_lost` says that the body of such a node could not be captured: the
    driver has destroyed the body's graph, and crashes when the whole graph, which still refers to it, is destroyed or
    instantiated.
    """

    __slots__ = (
        "_device",
        "_handle",
        "_key",
        "_later",
        "body_lost",
        "conditions",
        "ended",
        "events",
        "retained",
        "temporaries",
    )

    def __init__(self, handle: int, device: Device) -> None:
        self.retained: list[RetainedObjects] = []
        self.events: set[int] = set()
        self.ended = False
        self.body_lost = False
        self.temporaries: dict[int, Any] = {}
        self.conditions: list[Any] = []
        self._device = device
        self._handle = handle
        self._later: list[Callable[[], None]] = []
        self._key = _key(handle)

    @property
    def handle(self) -> int:
        """The stream that the capture began on."""
        return self._handle

    @property
    def lineage(self) -> tuple[Capture, ...]:
        """The capture and those that it is inside, the innermost first."""
        return (self,)

    @property
    def root(self) -> Capture:
        """The capture of the whole graph."""
        return self.lineage[-1]

    def begin(self, mode: Any) -> None:
        """Start to record the stream's work into a graph (cuStreamBeginCapture)."""
        captures[self._key] = self
        epoch.watch(self)
        try:
            with activated(self._device):
                self._begin(mode)
        except errors.CudaError:
            self.end()  # the driver has no capture to end, or one of another library
            raise

    def _begin(self, mode: Any) -> None:
        api.cuStreamBeginCapture(self._handle, mode)

    def hold(self, what: str, objects: tuple[Any, ...]) -> None:
        """Keep objects alive with the graph."""
        self.retained.append(RetainedObjects(what, objects))

    def end(self) -> None:
        """Forget the capture's streams and run the deferred actions; a second call does nothing."""
        self.ended = True
        epoch.unwatch(self)
        for key in [key for key, capture in list(captures.items()) if capture is self]:
            captures.pop(key, None)
        while self._later:
            # These are frees, and no caller waits for their errors.
            with contextlib.suppress(errors.CudaError):
                self._later.pop(0)()

    def finish(self) -> tuple[Any, Any]:
        """End the capture and return the driver's status and graph (cuStreamEndCapture).

        Unless the mode is "relaxed", only the thread that began the capture gets its graph. In any other thread, the
        capture ends without a graph.
        """
        for memory in list(self.temporaries.values()):
            # An invalidated capture refuses the free too, but then cuStreamEndCapture reports the invalidation.
            with contextlib.suppress(errors.CudaError):
                memory.close()
        with activated(self._device):
            status, graph = raw.cuStreamEndCapture(self._handle)
        self.end()
        return status, graph

    def close(self) -> None:
        """End the capture and destroy the graph that it recorded; a second call does nothing."""
        if self.ended:
            self.end()  # an interrupt may have cut the first call short
            return
        status, graph = self.finish()
        if not status and not self.body_lost:
            with activated(self._device):
                api.cuGraphDestroy(graph)

    def refuse_in_body(self, call: str) -> None:
        """Raise CaptureError if this captures the body of a conditional node, which cannot contain the call's work."""

    def leave(self, handle: int) -> None:
        """Forget a destroyed stream: the capture ends if it began in this stream, or else continues without it."""
        if _key(handle) == self._key:
            self.end()
        else:
            captures.pop(_key(handle), None)

    def later(self, action: Callable[[], None]) -> None:
        """Call a function when the capture has ended."""
        self._later.append(action)


class BodyCapture(Capture):
    """A capture into the body of a conditional node; `parent` is the capture that records the node."""

    __slots__ = ("_graph", "_parent")

    def __init__(self, handle: int, device: Device, graph: Any, parent: Capture) -> None:
        super().__init__(handle, device)
        self._graph = graph
        self._parent = parent

    @property
    def lineage(self) -> tuple[Capture, ...]:
        """The capture and those that it is inside, the innermost first."""
        return (self, *self._parent.lineage)

    def _begin(self, mode: Any) -> None:
        api.cuStreamBeginCaptureToGraph(self._handle, self._graph, None, None, 0, mode)

    def end(self) -> None:
        """Forget the capture's streams; hand its objects over to the parent, and the deferred actions to the root."""
        parent = self._parent
        parent.retained += self.retained
        parent.conditions += self.conditions
        self.retained, self.conditions = [], []
        if not self.root.ended:
            while self._later:
                self.root.later(self._later.pop(0))
        super().end()

    def close_body(self) -> Any:
        """End the capture and return the driver's status, or None if it had already ended; the node owns the graph."""
        if self.ended:
            self.end()  # an interrupt may have cut the first call short
            return None
        status, _ = self.finish()
        self.root.body_lost |= bool(status)
        return status

    def leave(self, handle: int) -> None:
        """Forget a destroyed stream; if the capture began in this stream, the body's graph is lost."""
        super().leave(handle)
        self.root.body_lost |= self.ended

    def close(self) -> None:
        """End the capture; a second call does nothing."""
        self.close_body()

    def refuse_in_body(self, call: str) -> None:
        """Raise CaptureError, because the body of a conditional node cannot contain the call's work."""
        raise errors.CaptureError(
            f"{call}: the body of a conditional node can contain only kernels, copies, fills, graphs and conditional "
            "nodes"
        )


# Keyed by stream handle; for the per-thread default stream also by thread, because its one handle means many streams.
captures: dict[int | tuple[int, int], Capture] = {}


def _key(handle: int) -> int | tuple[int, int]:
    return (handle, threading.get_ident()) if handle == PER_THREAD else handle


def find(handle: int) -> Capture | None:
    """Return the capture that a stream records into, or None."""
    return captures.get(_key(handle)) if captures else None


def hold(handle: int, what: str, objects: tuple[Any, ...]) -> bool:
    """Keep the objects alive with the graph that the stream records into; return whether there is one."""
    capture = find(handle)
    if capture is None:
        return False
    capture.hold(what, objects)
    return True


def hold_node(handle: int, what: str, objects: tuple[Any, ...]) -> bool:
    """Keep the objects of the most recently captured work alive, like `hold`, and record the node that uses them."""
    capture = find(handle)
    if capture is None:
        return False
    nodes = api.cuStreamGetCaptureInfo(handle)[3]
    capture.retained.append(RetainedObjects(what, objects, int(nodes[0]) if len(nodes) == 1 else 0))
    return True


def refuse(handle: int, what: str, remedy: str) -> None:
    """Raise CaptureError if the stream is being captured. Call this before anything reaches the driver."""
    if find(handle) is not None:
        raise errors.CaptureError(f"{what} cannot be captured: {remedy}")


def defer(handle: int, action: Callable[[], None]) -> bool:
    """Defer an action that must not be captured, such as a free, until the capture ends; return whether there is one.

    The legacy stream is never captured, but work in it would invalidate the captures of blocking streams. So would the
    synchronisation that replaces stream order where no stream orders the action, for which `handle` is LEGACY too.
    """
    capture = next(iter(list(captures.values())), None) if handle == LEGACY else find(handle)
    if capture is None:
        return False
    capture.later(action)
    return True


def note_recorded(event: int, stream: int) -> None:
    """Note that an event was recorded in a stream, captured or not."""
    capture = find(stream)
    for other in set(captures.values()):
        other.events.discard(event)
    if capture is not None:
        capture.events.add(event)


def note_wait(event: int, stream: int) -> None:
    """Note that a stream waits for an event; if the event was recorded in a capture, the stream joins the capture."""
    for capture in set(captures.values()):
        if event in capture.events:
            captures[_key(stream)] = capture


@contextmanager
def relaxed() -> Iterator[None]:
    """Allow calls that a capture forbids, in this thread and inside the block (cuThreadExchangeStreamCaptureMode).

    Use it for calls on which no captured work depends, such as those of a finalizer.
    """
    before = api.cuThreadExchangeStreamCaptureMode(enums.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    try:
        yield
    finally:
        api.cuThreadExchangeStreamCaptureMode(before)

"""Captures under way: which streams record into which graph, and what that graph keeps alive.

Work that is queued in a stream under capture runs only when its graph is launched. A function that
queues work therefore names the objects that the work uses with `hold`, wherever `captures` is not empty.
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
    """One piece of captured work: its kernel, copy or fill by name, and the objects that it uses and that must live.

    `node` is the handle of the graph's node that does the work or has a child graph, 0 for work of several nodes.
    """

    what: str
    objects: tuple[Any, ...]
    node: int = 0

    def check(self) -> None:
        """Raise ValueError if one of the objects was closed by hand."""
        for position, thing in enumerate(self.objects):
            if not getattr(thing, "closed", False):
                continue
            if hasattr(thing, "mapped"):  # the host memory of an argument
                raise ValueError(f"{self.what}: the page-locked or managed memory of an argument is closed")
            raise ValueError(f"argument {position} of {self.what}: the {_noun(thing)} is closed")

    def without_temporaries(self) -> RetainedObjects:
        """Return the same without what lives inside the graph alone, which is closed when the capture has ended."""
        return self._replace(objects=tuple(None if _ends_in_graph(thing) else thing for thing in self.objects))


def _ends_in_graph(thing: Any) -> bool:
    while thing is not None and not hasattr(type(thing), "ends_in_graph"):
        thing = getattr(thing, "base", None)
    return thing is not None


def _noun(thing: Any) -> str:
    name = type(thing).__name__
    return "array" if name in ("DeviceArray", "CudaArray", "ndarray") else name.lower()


class Capture:
    """One capture: what its graph uses, the events recorded inside, and what has to wait for its end.

    `temporaries` has the memory that the graph allocates and has yet to free, by address, and `conditions` has what
    was made for its conditional nodes. `body_lost` says that the body of such a node could not be captured: the driver
    has destroyed that graph, and crashes when the whole graph, which still names it, is destroyed or instantiated.
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
        """Let the stream record into a graph from now on (cuStreamBeginCapture)."""
        captures[self._key] = self
        epoch.watch(self)
        try:
            with activated(self._device):
                self._begin(mode)
        except errors.CudaError:
            self.end()  # the driver has no capture to end, or another library's
            raise

    def _begin(self, mode: Any) -> None:
        api.cuStreamBeginCapture(self._handle, mode)

    def hold(self, what: str, objects: tuple[Any, ...]) -> None:
        """Keep objects alive with the graph."""
        self.retained.append(RetainedObjects(what, objects))

    def end(self) -> None:
        """Forget the capture's streams and do what waited for its end; a second call does nothing."""
        self.ended = True
        epoch.unwatch(self)
        for key in [key for key, capture in list(captures.items()) if capture is self]:
            captures.pop(key, None)
        while self._later:
            # These are frees, for whose errors no caller waits.
            with contextlib.suppress(errors.CudaError):
                self._later.pop(0)()

    def finish(self) -> tuple[Any, Any]:
        """End the capture and return the driver's status and graph (cuStreamEndCapture).

        Only the thread that began a capture gets its graph, unless the mode is "relaxed"; but it ends in any thread.
        """
        for memory in list(self.temporaries.values()):
            # An invalidated capture refuses this too, and says so at its end.
            with contextlib.suppress(errors.CudaError):
                memory.close()
        with activated(self._device):
            status, graph = raw.cuStreamEndCapture(self._handle)
        self.end()
        return status, graph

    def close(self) -> None:
        """End the capture and destroy what it recorded; a second call does nothing."""
        if self.ended:
            self.end()  # an interrupt may have cut the first call short
            return
        status, graph = self.finish()
        if not status and not self.body_lost:
            with activated(self._device):
                api.cuGraphDestroy(graph)

    def refuse_in_body(self, call: str) -> None:
        """Raise CaptureError, in the body of a conditional node, for work that no body can have."""

    def leave(self, handle: int) -> None:
        """Forget a stream that was destroyed: the capture ends with its first stream, and goes on without another."""
        if _key(handle) == self._key:
            self.end()
        else:
            captures.pop(_key(handle), None)

    def later(self, action: Callable[[], None]) -> None:
        """Do something when the capture has ended."""
        self._later.append(action)


class BodyCapture(Capture):
    """A capture into the body of a conditional node, whose graph `parent` makes."""

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
        """Forget the capture's streams; the whole graph keeps what this part uses, and its end is waited for."""
        parent = self._parent
        parent.retained += self.retained
        parent.conditions += self.conditions
        self.retained, self.conditions = [], []
        if not self.root.ended:
            while self._later:
                self.root.later(self._later.pop(0))
        super().end()

    def close_body(self) -> Any:
        """End the capture and return the driver's status, None where it has ended; the node has the graph."""
        if self.ended:
            self.end()  # an interrupt may have cut the first call short
            return None
        status, _ = self.finish()
        self.root.body_lost |= bool(status)
        return status

    def leave(self, handle: int) -> None:
        """Forget a stream that was destroyed, and with the body's first stream its graph."""
        super().leave(handle)
        self.root.body_lost |= self.ended

    def close(self) -> None:
        """End the capture; a second call does nothing."""
        self.close_body()

    def refuse_in_body(self, call: str) -> None:
        """Raise CaptureError for work that no body can have."""
        raise errors.CaptureError(
            f"{call}: the body of a conditional node can contain only kernels, copies, fills, graphs and conditional "
            "nodes"
        )


# By stream. The per-thread default stream is one handle for many streams.
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
    """Keep the objects of the work that was captured last alive with its node, as `hold` does with the graph."""
    capture = find(handle)
    if capture is None:
        return False
    nodes = api.cuStreamGetCaptureInfo(handle)[3]
    capture.retained.append(RetainedObjects(what, objects, int(nodes[0]) if len(nodes) == 1 else 0))
    return True


def refuse(handle: int, what: str, remedy: str) -> None:
    """Raise CaptureError if the stream is being captured; nothing has reached the driver then."""
    if find(handle) is not None:
        raise errors.CaptureError(f"{what} cannot be captured: {remedy}")


def defer(handle: int, action: Callable[[], None]) -> bool:
    """Put off what must not become part of a graph, such as a free; return whether there is a capture.

    The legacy stream is not part of any, but work in it would invalidate the captures of blocking streams, and so would
    the synchronisation that stands for the order of a closed stream, whose handle is 0 here.
    """
    capture = next(iter(list(captures.values())), None) if handle in (0, LEGACY) else find(handle)
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
    """Note that a stream waits for an event: for a captured one, it joins the capture."""
    for capture in set(captures.values()):
        if event in capture.events:
            captures[_key(stream)] = capture


@contextmanager
def relaxed() -> Iterator[None]:
    """Allow this thread, inside, the calls that a capture elsewhere forbids (cuThreadExchangeStreamCaptureMode).

    For calls on which no captured work depends, such as those of a finalizer.
    """
    before = api.cuThreadExchangeStreamCaptureMode(enums.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    try:
        yield
    finally:
        api.cuThreadExchangeStreamCaptureMode(before)

"""Work: the lazy queue. What streams are given waits here and runs as late as the driver's rules allow.

A piece of work names what it comes after: the piece before it in its stream, the events it waits for, and what the
legacy default stream's barriers imply. Completing a piece runs all that it comes after, in the order in which it was
enqueued, and nothing else. Synchronising a context completes its streams, the one used last first: an order that the
driver's rules allow, in which a dependency that was forgotten shows.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from cuda.bindings.driver import CUresult

from .errors import StatusError
from .reports import put_report

if TYPE_CHECKING:
    from .capture import Capture
    from .contexts import Context

__all__ = [
    "Bookkeeping",
    "FaultError",
    "Operation",
    "Stream",
    "Work",
    "complete",
    "complete_context",
    "enqueue",
    "step",
]

_sequence = itertools.count(1)
_stream_ids = itertools.count(1)

# A GPU's queue is bounded too: a launch that finds it full waits for older work.
_LONGEST_QUEUE = 1024


class Operation(Protocol):
    """What a piece of work does; graph nodes hold the same objects."""

    def run(self, context: Context) -> None:
        """Do it now; raise FaultError when it can't be done."""


class Bookkeeping:
    """An operation that only keeps account of memory, and so happens behind work that was broken off too."""

    __slots__ = ()


class FaultError(Exception):
    """What went wrong in a piece of work; a sticky one ends its context."""

    def __init__(self, status: CUresult, report: str, *, sticky: bool = True) -> None:
        super().__init__(report)
        self.status = status
        self.report = report
        self.sticky = sticky


class Piece(Protocol):
    """A piece of work, or a part of one."""

    @property
    def work(self) -> Work:
        """The piece of work that it belongs to."""

    def comes_after(self, piece: Piece) -> bool:
        """Tell whether another one, already done, is put before it."""


class Stream:
    """A stream's place in the queue: its last piece of work."""

    __slots__ = (
        "attributes",
        "blocking",
        "capture",
        "context",
        "flags",
        "handle",
        "identity",
        "is_legacy",
        "priority",
        "tail",
    )

    def __init__(
        self, context: Context, *, handle: int = 0, flags: int = 0, priority: int = 0, is_legacy: bool = False
    ) -> None:
        self.context = context
        self.handle = handle
        self.flags = flags
        self.priority = priority
        self.blocking = not flags & 1
        self.is_legacy = is_legacy
        self.identity = next(_stream_ids)
        self.tail: Work | None = None
        self.capture: Capture | None = None
        self.attributes: dict[int, object] = {}


class Work:
    """A piece of work in a stream; without an operation it only marks a place.

    `sequence` numbers when it was enqueued and `finished` when it was done, in one count. `done` says that the queue is
    through with it; `broken` what was broken off, if it was this work or work that it came after.
    """

    __slots__ = (
        "_behind", "after", "broken", "context", "done", "finished", "operation", "sequence", "stream", "time",
    )  # fmt: skip  # grouped by meaning

    def __init__(self, context: Context, operation: Operation | None, after: tuple[Work, ...], stream: int) -> None:
        self.context = context
        self.operation = operation
        self.after = after
        self.stream = stream
        self.sequence = next(_sequence)
        self.finished = 0
        self._behind = _furthest(stream, after)
        self.done = False
        self.broken = ""
        self.time = 0

    @property
    def work(self) -> Work:
        """The piece of work itself."""
        return self

    def comes_after(self, piece: Piece) -> bool:
        """Tell whether the driver's rules put another piece of work, already done, before this one.

        They do in one stream, where this one was enqueued when the other was known to be done, and along events and
        the legacy default stream.
        """
        other = piece.work
        return (
            other.stream == self.stream
            or other.finished < self.sequence
            or self._behind.get(other.stream, 0) >= other.sequence
        )

    def run(self) -> None:
        """Do the work; a fault ends what its context still has.

        Anything else that is raised (Ctrl-C, an exception of a signal's handler, a mistake of the simulator's own)
        breaks the work off and goes to the caller as itself. What comes after this work doesn't happen then.
        """
        context = self.context
        context.pending -= 1
        # Done from here on, also for what a finalizer asks in the middle of it.
        self.done = True
        self.broken = next((work.broken for work in self.after if work.broken), "")
        self.after = ()
        operation = self.operation
        self.operation = None
        if operation is not None and context.sticky is None and (not self.broken or isinstance(operation, Bookkeeping)):
            runner.piece = self
            try:
                operation.run(context)
            except FaultError as fault:
                if fault.sticky:
                    context.sticky = fault.status
                elif context.failure is None:
                    context.failure = fault.status
                put_report(fault.report)
            except BaseException as error:
                self.broken = context.untold = f"{_named(operation)} was broken off by {type(error).__name__}"
                _drop_behind(context)
                raise
        self.finished = next(_sequence)
        self.time = time.perf_counter_ns()


def _drop_behind(context: Context) -> None:
    """Go through what a context has queued behind work that was broken off."""
    tails = [stream.tail for stream in list(context.busy) if stream.tail is not None]
    for work in _needed(tails):
        if any(before.broken for before in work.after):
            work.run()


def _named(operation: Operation) -> str:
    described = type(operation).__str__ is not object.__str__
    return str(operation) if described else f"work of a stream ({type(operation).__name__})"


def _furthest(stream: int, after: tuple[Work, ...]) -> dict[int, int]:
    """Give, for each other stream, the last of its work that comes before what comes after some."""
    if len(after) == 1 and after[0].stream == stream:
        return after[0]._behind
    found: dict[int, int] = {}
    for work in after:
        for identity, sequence in (*work._behind.items(), (work.stream, work.sequence)):
            found[identity] = max(sequence, found.get(identity, sequence))
    return found


class _Runner:
    """What work is running now, and what a finalizer asked for meanwhile and must wait."""

    def __init__(self) -> None:
        self.piece: Piece | None = None
        self.running = False
        self.in_callback = False
        self.postponed: list[Callable[[], None]] = []

    def run(self, pieces: Iterable[Work]) -> None:
        """Run pieces of work in the order given, then what was postponed."""
        self.running = True
        try:
            for work in pieces:
                if not work.done:
                    work.run()
        finally:
            self.running = False
            self.piece = None
            while self.postponed:
                self.postponed.pop(0)()


runner = _Runner()


def enqueue(stream: Stream, operation: Operation | None, *others: Work) -> Work:
    """Put a piece of work into a stream, after the others' completion too, and return it."""
    context = stream.context
    after = []
    tail = stream.tail
    if tail is not None and not tail.done:
        after.append(tail)
    busy = context.busy
    if stream.is_legacy:
        for blocking in list(busy):
            last = blocking.tail
            if last is None or last.done:
                busy.pop(blocking, None)
            elif blocking.blocking and blocking is not stream:
                after.append(last)
    elif stream.blocking:
        last = context.legacy.tail
        if last is not None and not last.done:
            after.append(last)
    after.extend(other for other in others if not other.done)
    if context.pending >= _LONGEST_QUEUE and not runner.running:
        complete_work(after)
        after = []
    work = Work(context, operation, tuple(after), stream.identity)
    stream.tail = work
    busy[stream] = None
    context.pending += 1
    return work


def join_all(stream: Stream, contexts: Iterable[Context]) -> None:
    """Let a stream's next work come after all that contexts have."""
    others = [other.tail for context in contexts for other in list(context.busy) if other.tail is not None]
    enqueue(stream, None, *others)


def fork_all(stream: Stream, contexts: Iterable[Context]) -> None:
    """Let what contexts are given next come after what a stream has."""
    if stream.tail is None:
        return
    for context in contexts:
        for other in dict.fromkeys((context.legacy, *context.busy)):
            if other is not stream:
                enqueue(other, None, stream.tail)


def complete(work: Work | None) -> None:
    """Run a piece of work and all that it comes after, nothing else; raise the first failure."""
    if work is None:
        return
    if not work.done:
        if not runner.running:
            work.context.tell()
        complete_work((work,))
    refuse_broken(work)


def complete_work(targets: Iterable[Work]) -> None:
    """Run pieces of work and all that they come after, in the order of their enqueuing."""
    contexts = dict.fromkeys(target.context for target in targets)
    if runner.running:
        # Host functions may not ask for this. A finalizer that the garbage collector ran in the middle of other
        # work can't wait for that work, and what it wants to free stays until it is done.
        if runner.in_callback:
            raise StatusError(CUresult.CUDA_ERROR_NOT_PERMITTED)
        return
    runner.run(_needed(targets))
    for context in contexts:
        context.after_work()
        context.raise_failure()


def _needed(targets: Iterable[Work]) -> list[Work]:
    found: dict[Work, None] = {}
    waiting = list(targets)
    while waiting:
        work = waiting.pop()
        if not work.done and work not in found:
            found[work] = None
            waiting.extend(work.after)
    return sorted(found, key=lambda work: work.sequence)


def predecessors(work: Work) -> set[Work]:
    """Return a piece of work and all undone work that it comes after."""
    return set(_needed((work,)))


def refuse_broken(work: Work) -> None:
    """Raise CUDA_ERROR_ILLEGAL_STATE for work that was broken off, or that came after such work."""
    if work.broken:
        # Who hears of it here needn't hear of it again.
        work.context.untold = ""
        raise broken_off(work.broken)


def broken_off(what: str) -> StatusError:
    """Return CUDA_ERROR_ILLEGAL_STATE, with a report that says what was broken off."""
    put_report(f"{what}: what it writes is incomplete, and the work that was queued behind it has not run")
    return StatusError(CUresult.CUDA_ERROR_ILLEGAL_STATE)


def step(work: Work | None) -> bool:
    """Run one piece of what a piece of work needs; return whether it had been complete before."""
    if work is None:
        return True
    refuse_broken(work)
    if work.done:
        return True
    if not runner.running:
        work.context.tell()
        runner.run(_needed((work,))[:1])
        work.context.after_work()
        work.context.raise_failure()
    return False


def complete_context(context: Context, *, freeing: bool = False) -> None:
    """Run all work of a context, the stream used last first.

    What was broken off is told to those who wait for the work, not where something is about to be freed.
    """
    if not (freeing or runner.running):
        context.tell()
    tails = [stream.tail for stream in list(context.busy) if stream.tail is not None and not stream.tail.done]
    tails.sort(key=lambda work: -work.sequence)
    failure: StatusError | None = None
    for tail in tails:
        try:
            complete_work((tail,))
        except StatusError as error:
            failure = failure or error
    # Finalizers may have given streams more work meanwhile.
    for stream in [stream for stream in list(context.busy) if stream.tail is None or stream.tail.done]:
        context.busy.pop(stream, None)
    context.after_work()
    if failure is not None:
        raise failure


def abandon(context: Context) -> None:
    """Drop the work of a context that ends; what other contexts have does not wait for it any longer."""
    tails = [stream.tail for stream in list(context.busy) if stream.tail is not None]
    for work in _needed(tails):
        if work.context is context:
            work.done = True
            work.after = ()
            work.operation = None
    context.busy.clear()


# The captures under way, of all threads.
captures: list[Capture] = []


def refuse_while_capturing() -> None:
    """Raise CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and spoil the capture, where a capture forbids unsafe calls."""
    from .capture import forbidding

    found = forbidding()
    if found:
        for capture in found:
            capture.invalidate()
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)


def refuse_implicit(stream: Stream) -> None:
    """Raise CUDA_ERROR_STREAM_CAPTURE_IMPLICIT for the legacy stream while it would wait for a captured one."""
    if not stream.is_legacy:
        return
    found = [capture for capture in captures if capture.blocks_legacy(stream.context)]
    if found:
        for capture in found:
            capture.invalidate()
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)

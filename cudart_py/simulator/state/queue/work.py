"""Work: the pieces that wait in streams, and the order among them."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cuda.bindings.driver import CUresult

from ....findings.records import has_listeners, note, read_report
from ....host.callers import call_site
from ..fault_reports import put_report, readable, summary
from ..progress import progress
from .operations import AccountingOperation, FaultError, Operation, Waits
from .runner import Piece, runner

if TYPE_CHECKING:
    from ..contexts import Context

_sequence = itertools.count(1)


class Work:
    """A piece of work in a stream; without an operation, it only marks a position.

    `before` are the pieces of work that it comes after: the one before it in its stream, those that recorded the events
    for which it waits, and those that the implicit synchronization of the legacy default stream orders before it.
    `after` are those of them that are not done. `sequence` says when it was enqueued, and `heard` since when the host
    could know that it is done, as numbers of one counter; `heard` is 0 until then. `done` says that the queue has
    finished with it. `broken` says what was interrupted, if that was this work or work that it comes after. `waits` are
    the waits for values in memory that hold up work that has begun.
    """

    __slots__ = (
        "_clock", "_steps", "after", "broken", "context", "done", "heard", "operation", "sequence", "stream", "time",
        "waits",
    )  # fmt: skip  # on two lines

    def __init__(self, context: Context, operation: Operation | None, before: tuple[Work, ...], stream: int) -> None:
        self.context = context
        self.operation = operation
        self.stream = stream
        self.sequence = next(_sequence)
        self.heard = 0
        self._clock = _joined_clocks(stream, before)
        self.done = False
        self.after = tuple(work for work in before if not work.done)
        self.broken = ""
        self.time = 0
        self.waits: Waits = ()
        self._steps: Iterator[Waits] | None = None

    @property
    def work(self) -> Work:
        """The piece of work itself."""
        return self

    def comes_after(self, piece: Piece) -> bool:
        """Return whether another piece of work, already done, happens before this one by the driver's rules.

        It does if it is earlier in the same stream, if the host knew that it was done when it enqueued this one, or if
        events, the legacy default stream or waits for values order the two.
        """
        other = piece.work
        return (
            (other.stream == self.stream and other.sequence <= self.sequence)
            or 0 < other.heard < self.sequence
            or self._clock.get(other.stream, 0) >= other.sequence
            or any(
                self._follows(wait) and clock.get(other.stream, 0) >= other.sequence for wait, clock in _value_orders
            )
        )

    def _follows(self, wait: Work) -> bool:
        """Return whether this is a piece of work that waited for a value, or comes after it by its clock."""
        own = wait.stream == self.stream and wait.sequence <= self.sequence
        return own or self._clock.get(wait.stream, 0) >= wait.sequence

    def shares_graph(self, piece: Piece) -> bool:
        """Return False: work of a stream is not a node of a graph."""
        return False

    @property
    def held(self) -> bool:
        """Whether the work has begun, and waits for values in memory that are not there yet."""
        return bool(self.waits) and not any(wait.met for wait in self.waits)

    def run(self) -> None:
        """Begin or continue the work, until it is done or waits for values in memory.

        After a sticky fault, the remaining work of its context is skipped. Any other exception (Ctrl-C, one that a
        signal handler raises, a bug of the simulator) interrupts the work and is passed on to the caller. The work that
        comes after it then does not run.
        """
        # Done from here on, even for a finalizer that checks while the work runs.
        self.done = True
        self.waits = ()
        if self._steps is None:
            self.broken = next((work.broken for work in self.after if work.broken), "")
            self.after = ()
        operation, context = self.operation, self.context
        skipped = context.sticky is not None or (self.broken and not isinstance(operation, AccountingOperation))
        if operation is not None and not skipped:
            runner.piece, runner.operation = self, operation
            try:
                if isinstance(operation, AccountingOperation):
                    operation.run(context)
                else:
                    self._step_exposed(operation)
            except FaultError as fault:
                self._report(fault)
            except BaseException as error:
                self.broken = context.untold = f"{operation} was interrupted by {type(error).__name__}"
                self._finish()
                _drop_after(context)
                raise
        if self.waits:
            self.done = False
            return
        self._finish()
        if skipped:
            self.time = 0

    def _step_exposed(self, operation: Operation) -> None:
        """Take the next step of an operation that a signal handler may interrupt."""
        try:
            progress.expose()
            if self._steps is None:
                self._steps = operation.steps(self.context)
            self.waits = next(self._steps, ())
        finally:
            progress.conceal()

    def fail(self, fault: FaultError) -> None:
        """End work that waits with a fault."""
        self._report(fault)
        self.drop()

    def drop(self) -> None:
        """End the work without performing the rest of it."""
        self.done = True
        self.waits = self.after = ()
        self._finish()

    def _report(self, fault: FaultError) -> None:
        context = self.context
        if fault.sticky:
            context.sticky = fault.status
            context.ended_by = summary(fault.report)
        elif context.failure is None:
            context.failure = fault.status
        put_report(fault.report)
        if has_listeners():
            kind = "bounds" if fault.status == CUresult.CUDA_ERROR_ILLEGAL_ADDRESS else "fault"
            note(read_report(kind, readable(fault.report), call_site()))

    def _finish(self) -> None:
        self.operation = self._steps = None
        self.context.pending -= 1
        self.heard = 0 if self in _early else next(_sequence)
        self.time = time.perf_counter_ns()


# Work that has run, or is about to run, although no call waits for it: a wait for a value held up the work that a call
# waits for. The host does not know that it is done.
_early: dict[Work, None] = {}
_MOST_EARLY = 1024


def run_early(work: Work) -> None:
    """Note that a piece of work is about to run without a call that waits for it.

    If there are many such pieces, the host is taken to know that the oldest are done.
    """
    _early[work] = None
    if len(_early) > _MOST_EARLY:
        _hear(next(iter(_early)))


def hear(*targets: Work) -> None:
    """Note that the host knows that some pieces of work are done, and with them everything that they come after."""
    for work in list(_early):
        if any(target.done and target.comes_after(work) for target in targets):
            _hear(work)


def hear_all(context: Context) -> None:
    """Note that the host knows that all work of a context that has run is done."""
    for work in list(_early):
        if work.context is context:
            _hear(work)


def is_all_heard() -> bool:
    """Return whether the host knows of all work that has run."""
    return not _early


def _hear(work: Work) -> None:
    del _early[work]
    if work.done:
        work.heard = next(_sequence)


def _drop_after(context: Context) -> None:
    """Mark the work that a context has queued after interrupted work as done and broken."""
    tails = [stream.tail for stream in list(context.busy) if stream.tail is not None]
    for work in needed(tails):
        if any(before.broken for before in work.after):
            work.run()


# The pieces of work that waited for a value in memory, and the vector clocks of the work that wrote the value.
_value_orders: deque[tuple[Work, dict[int, int]]] = deque(maxlen=256)


def order_after(wait: Work, writer: Work) -> None:
    """Order a piece of work that waited for a value, and all work after it, after the work that wrote the value."""
    clock = _joined_clocks(-1, (writer,))
    for earlier, more in _value_orders:
        if writer._follows(earlier):
            for stream, sequence in more.items():
                clock[stream] = max(sequence, clock.get(stream, 0))
    _value_orders.append((wait, clock))


def _joined_clocks(stream: int, after: tuple[Work, ...]) -> dict[int, int]:
    """Return the vector clock of work that comes after some pieces: for each stream, the last piece before the work."""
    if len(after) == 1 and after[0].stream == stream:
        return after[0]._clock
    found: dict[int, int] = {}
    for work in after:
        for identity, sequence in (*work._clock.items(), (work.stream, work.sequence)):
            found[identity] = max(sequence, found.get(identity, sequence))
    return found


def needed(targets: Iterable[Work]) -> list[Work]:
    """Return the unfinished pieces among `targets` and all unfinished work before them, in the order of `sequence`."""
    found: dict[Work, None] = {}
    waiting = list(targets)
    while waiting:
        work = waiting.pop()
        if not work.done and work not in found:
            found[work] = None
            waiting.extend(work.after)
    return sorted(found, key=lambda work: work.sequence)

"""Work: the pieces that wait in streams, and what each of them comes after."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..fault_reports import put_report, summary
from ..progress import progress
from .operations import AccountingOperation, FaultError, Operation
from .runner import Piece, runner

if TYPE_CHECKING:
    from ..contexts import Context

_sequence = itertools.count(1)


class Work:
    """A piece of work in a stream; without an operation it only marks a place.

    `after` are the pieces of work that it comes after: the one before it in its stream, those that recorded the events
    it waits for, and those that the legacy default stream's barriers put before it. `sequence` numbers when it was
    enqueued and `finished` when it was done, in one count. `done` says that the queue is through with it; `broken` says
    what was broken off, if that was this work or work that it comes after.
    """

    __slots__ = (
        "_clock", "after", "broken", "context", "done", "finished", "operation", "sequence", "stream", "time",
    )  # fmt: skip  # grouped by meaning

    def __init__(self, context: Context, operation: Operation | None, after: tuple[Work, ...], stream: int) -> None:
        self.context = context
        self.operation = operation
        self.after = after
        self.stream = stream
        self.sequence = next(_sequence)
        self.finished = 0
        self._clock = _joined_clocks(stream, after)
        self.done = False
        self.broken = ""
        self.time = 0

    @property
    def work(self) -> Work:
        """The piece of work itself."""
        return self

    def comes_after(self, piece: Piece) -> bool:
        """Return whether another piece of work, already done, happens before this one by the driver's rules.

        It does in the same stream, where it was done when this one was enqueued, and along events and the legacy
        default stream.
        """
        other = piece.work
        return (
            other.stream == self.stream
            or other.finished < self.sequence
            or self._clock.get(other.stream, 0) >= other.sequence
        )

    def run(self) -> None:
        """Do the work; a fault ends what its context still has.

        Anything else that is raised (Ctrl-C, an exception of a signal's handler, a mistake of the simulator's own)
        breaks the work off and goes to the caller as itself. The work after it doesn't run then.
        """
        context = self.context
        context.pending -= 1
        # Done from here on, also for what a finalizer asks in the middle of it.
        self.done = True
        self.broken = next((work.broken for work in self.after if work.broken), "")
        self.after = ()
        operation = self.operation
        self.operation = None
        skipped = context.sticky is not None or (self.broken and not isinstance(operation, AccountingOperation))
        if operation is not None and not skipped:
            runner.piece, runner.operation = self, operation
            try:
                if isinstance(operation, AccountingOperation):
                    operation.run(context)
                else:
                    _run_exposed(operation, context)
            except FaultError as fault:
                if fault.sticky:
                    context.sticky = fault.status
                    context.ended_by = summary(fault.report)
                elif context.failure is None:
                    context.failure = fault.status
                put_report(fault.report)
            except BaseException as error:
                self.broken = context.untold = f"{operation} was broken off by {type(error).__name__}"
                _drop_after(context)
                raise
        self.finished = next(_sequence)
        self.time = time.perf_counter_ns()


def _run_exposed(operation: Operation, context: Context) -> None:
    """Run an operation that a signal's handler may break off."""
    try:
        progress.expose()
        operation.run(context)
    finally:
        progress.conceal()


def _drop_after(context: Context) -> None:
    """Mark what a context has queued after work that was broken off as done and broken."""
    tails = [stream.tail for stream in list(context.busy) if stream.tail is not None]
    for work in needed(tails):
        if any(before.broken for before in work.after):
            work.run()


def _joined_clocks(stream: int, after: tuple[Work, ...]) -> dict[int, int]:
    """Return the vector clock of what comes after some pieces of work: for each stream, its last piece before that."""
    if len(after) == 1 and after[0].stream == stream:
        return after[0]._clock
    found: dict[int, int] = {}
    for work in after:
        for identity, sequence in (*work._clock.items(), (work.stream, work.sequence)):
            found[identity] = max(sequence, found.get(identity, sequence))
    return found


def needed(targets: Iterable[Work]) -> list[Work]:
    """Return pieces of work and all undone work that they come after, in the order of their enqueuing."""
    found: dict[Work, None] = {}
    waiting = list(targets)
    while waiting:
        work = waiting.pop()
        if not work.done and work not in found:
            found[work] = None
            waiting.extend(work.after)
    return sorted(found, key=lambda work: work.sequence)

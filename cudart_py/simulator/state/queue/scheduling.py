"""The lazy queue: work that is submitted to streams waits in it, and runs as late as the driver's rules allow.

Completing a piece of work runs everything that it comes after, in the order in which it was enqueued, and nothing else,
unless a piece waits for a value in memory. The work that writes the value may be anywhere, since no event orders it
before the wait. So all other work that can run then runs.

Synchronising a context completes its streams, the most recently used one first. The driver's rules allow this order,
and it reveals missing dependencies.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cuda.bindings.driver import CUresult, CUstream_flags

from ..errors import StatusError
from ..fault_reports import put_report
from ..progress import progress
from .operations import AccountingOperation
from .runner import runner
from .stream import Stream
from .work import Work, hear, hear_all, needed, run_early

if TYPE_CHECKING:
    from ..contexts import Context
    from .operations import Operation

# A GPU's queue is bounded too: a launch that finds it full waits for older work.
_LONGEST_QUEUE = 1024
# The time between two reads of a value that something outside the queue may write.
_PAUSE_SECONDS = 1e-3

# The contexts that have had work since their work was abandoned last.
_used: dict[Context, None] = {}


def enqueue(stream: Stream, operation: Operation | None, *others: Work) -> Work:
    """Add a piece of work to a stream, ordered after the pieces `others` as well, and return it."""
    context = stream.context
    if context.pending >= _LONGEST_QUEUE:
        # Complete destroyed streams as well: they get no later work that would make room.
        ended = [other.tail for other in context.destroyed if other.tail is not None]
        complete_work((*_before(stream, others), *ended))
    work = Work(context, operation, tuple(_before(stream, others)), stream.identity)
    stream.tail = work
    context.busy[stream] = _used[context] = None
    context.pending += 1
    return work


def _before(stream: Stream, others: tuple[Work, ...]) -> list[Work]:
    """Return the work that the next piece of a stream comes after, including `others`.

    Work of which the host knew that it is done is left out: the next piece comes after it anyway.
    """
    context = stream.context
    before = []
    tail = stream.tail
    if tail is not None and not tail.heard:
        before.append(tail)
    busy = context.busy
    if stream.is_legacy:
        for blocking in list(busy):
            last = blocking.tail
            if last is None or last.heard:
                busy.pop(blocking, None)
            elif blocking.blocking and blocking is not stream:
                before.append(last)
    elif stream.blocking:
        last = context.legacy.tail
        if last is not None and not last.heard:
            before.append(last)
    if context.gates:
        context.gates[:] = [gate for gate in context.gates if not gate.heard]
        before.extend(context.gates)
    if stream.green is not None and stream.green.gates:
        stream.green.gates[:] = [gate for gate in stream.green.gates if not gate.heard]
        before.extend(stream.green.gates)
    before.extend(other for other in others if not other.heard)
    return before


def mark_all(context: Context, streams: Iterable[Stream] | None = None) -> Work:
    """Return a piece of work that comes after all work that a context has queued so far, in any of its streams.

    With `streams`, it comes only after the work in these.
    """
    tails = [stream.tail for stream in list(context.busy if streams is None else streams) if stream.tail is not None]
    return enqueue(Stream(context, flags=CUstream_flags.CU_STREAM_NON_BLOCKING.value), None, *tails)


def join_all(stream: Stream, contexts: Iterable[Context]) -> None:
    """Make a stream's next work wait for all work of some contexts."""
    others = [other.tail for context in contexts for other in list(context.busy) if other.tail is not None]
    enqueue(stream, None, *others)


def fork_all(stream: Stream, contexts: Iterable[Context]) -> None:
    """Make the next work of some contexts wait for a stream's work."""
    if stream.tail is None:
        return
    for context in contexts:
        for other in dict.fromkeys((context.legacy, *context.busy)):
            if other is not stream:
                enqueue(other, None, stream.tail)


def complete(work: Work | None) -> None:
    """Run a piece of work and everything that it comes after; raise the first failure."""
    if work is None:
        return
    if not work.done:
        work.context.tell()
        complete_work((work,))
    hear(work)
    refuse_broken(work)


def run_at_once(work: Work) -> None:
    """Run a piece of work and everything that it comes after; failures are left to the calls that wait for the work."""
    _run([work])
    work.context.after_work()


def complete_work(targets: Iterable[Work]) -> None:
    """Run pieces of work and everything that they come after, in the order in which they were enqueued."""
    targets = list(targets)
    contexts = dict.fromkeys(target.context for target in targets)
    _run(targets)
    hear(*targets)
    for context in contexts:
        context.after_work()
        context.raise_failure()


def _run(targets: list[Work]) -> None:
    """Run pieces of work and everything that they come after; a wait that nothing can end becomes a fault."""
    while True:
        runner.run(_next_pieces(targets))
        if all(target.done for target in targets):
            return
        _wait_for_value(targets)


def _next_pieces(targets: list[Work]) -> Iterator[Work]:
    """Yield the piece of work to run next, until the targets are done or wait for values that no queued work writes."""
    for work in needed(targets):
        while not work.done:
            piece = _runnable_beside() if work.held else work
            if piece is None:
                return
            if piece is not work:
                run_early(piece)
            yield piece


def _runnable_beside() -> Work | None:
    """Return the first piece of work of any context that neither waits for a value nor comes after one that does."""
    tails = [stream.tail for context in list(_used) for stream in list(context.busy) if stream.tail is not None]
    held: set[Work] = set()
    for work in needed(tails):
        if work.held or not held.isdisjoint(work.after):
            held.add(work)
        else:
            return work
    return None


def _wait_for_value(targets: list[Work]) -> None:
    """Wait until something outside the queue lets work go on; a wait that nothing can end becomes a fault."""
    work, start = needed(targets)[0], time.monotonic()
    while not work.done and next(_next_pieces(targets), None) is None:
        faults = [wait.deadlock(time.monotonic() - start) for wait in work.waits]
        if faults[0] is not None and all(faults):
            work.fail(faults[0])
        else:
            progress.pause(_PAUSE_SECONDS)


def predecessors(work: Work) -> set[Work]:
    """Return a piece of work and all unfinished work that it comes after."""
    return set(needed((work,)))


def refuse_broken(work: Work) -> None:
    """Raise CUDA_ERROR_ILLEGAL_STATE for work that was interrupted, or that came after such work."""
    if work.broken:
        # This report replaces the one that the next waiting call would make.
        work.context.untold = ""
        raise broken_off(work.broken)


def broken_off(what: str) -> StatusError:
    """Return CUDA_ERROR_ILLEGAL_STATE, and store a report that names the interrupted work."""
    put_report(f"{what}: its output is incomplete, and the work that was queued after it has not run")
    return StatusError(CUresult.CUDA_ERROR_ILLEGAL_STATE)


def step(work: Work | None) -> bool:
    """Run the first unfinished piece that a piece of work needs; return whether the work was already complete."""
    if work is None:
        return True
    refuse_broken(work)
    if work.done:
        hear(work)
        return True
    work.context.tell()
    first = next(_next_pieces([work]), None)
    if first is None:  # a query does not wait for a value
        return False
    runner.run((first,))
    work.context.after_work()
    work.context.raise_failure()
    return False


def settle(context: Context) -> None:
    """Run the allocations and frees in destroyed streams that need not wait for other work.

    A program can't wait for a destroyed stream, so the stream's last frees would otherwise keep their memory, and the
    checks' records of that memory, until the context is synchronized. Kernels and copies stay queued: destroying a
    stream does not wait for them, and a program that forgets to wait should see stale data.
    """
    for stream in list(context.destroyed):
        tail = stream.tail
        if tail is not None and not tail.done:
            runner.keep_account(work for work in needed((tail,)) if _only_keeps_account(work))
        if tail is None or tail.heard:
            context.destroyed.pop(stream, None)
            context.busy.pop(stream, None)


def _only_keeps_account(work: Work) -> bool:
    """Return whether a piece of work only keeps account of memory, and everything before it has run."""
    operation = work.operation
    return (operation is None or isinstance(operation, AccountingOperation)) and all(one.done for one in work.after)


def complete_context(context: Context, *, freeing: bool = False) -> None:
    """Run all work of a context, the most recently used stream first.

    An interrupted launch is reported to callers that wait for the work, but not to those that are about to free
    something (`freeing`).
    """
    if not freeing:
        context.tell()
    tails = [stream.tail for stream in list(context.busy) if stream.tail is not None and not stream.tail.done]
    tails.sort(key=lambda work: work.sequence, reverse=True)
    failure: StatusError | None = None
    for tail in tails:
        try:
            complete_work((tail,))
        except StatusError as error:
            failure = failure or error
    hear_all(context)
    # Signal handlers may have submitted more work in the meantime.
    for stream in [stream for stream in list(context.busy) if stream.tail is None or stream.tail.done]:
        context.busy.pop(stream, None)
        context.destroyed.pop(stream, None)
    context.after_work()
    if failure is not None:
        raise failure


def run_ready(context: Context) -> bool:
    """Run the work of a context that need not wait for values in memory; return whether there was any."""
    tails = [stream.tail for stream in list(context.busy) if stream.tail is not None]
    if next(_next_pieces(tails), None) is None:
        return False
    runner.run(_next_pieces(tails))
    hear_all(context)  # the host may be waiting for a signal of the work
    context.after_work()
    context.raise_failure()
    return True


def abandon(context: Context) -> None:
    """Drop the work of a context that ends; work of other contexts no longer waits for it."""
    tails = [stream.tail for stream in list(context.busy) if stream.tail is not None]
    for work in needed(tails):
        if work.context is context:
            work.drop()
    hear_all(context)
    context.busy.clear()
    context.destroyed.clear()
    _used.pop(context, None)

"""Waits for values in memory: the work that may run while a stream waits, and the order that a wait makes.

A wait orders the work after it after the work that wrote the value, although no event connects the two.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .runner import runner
from .work import Work, needed, order_after

if TYPE_CHECKING:
    from ..contexts import Context

# The pieces of work that wait now. While one waits, another that it runs may begin to wait too.
_waiting: list[Work] = []
# The work that last wrote a value to an address.
_writers: dict[int, Work] = {}
_MOST_WRITERS = 256


@contextlib.contextmanager
def waiting() -> Iterator[Work]:
    """Mark the running piece of work as waiting, and restore it as the running one afterwards."""
    piece, operation = runner.piece, runner.operation
    if piece is None:
        raise RuntimeError("only work of the queue can wait")
    _waiting.append(piece.work)
    try:
        yield piece.work
    finally:
        _waiting.pop()
        runner.piece, runner.operation = piece, operation


def runnable_beside(contexts: Iterable[Context]) -> Work | None:
    """Return the first piece of work that need not come after any piece that waits, or None."""
    tails = [stream.tail for context in contexts for stream in list(context.busy) if stream.tail is not None]
    blocked = set(_waiting)
    for work in needed(tails):
        if not blocked.isdisjoint(work.after) or (work.operation is not None and work.operation.blocked):
            blocked.add(work)
        else:
            return work
    return None


def forget_writers() -> None:
    """Forget who wrote values, after a reset."""
    _writers.clear()


def note_writer(address: int) -> None:
    """Note that the running piece of work has written a value to an address."""
    if runner.piece is not None:
        _writers.pop(address, None)
        _writers[address] = runner.piece.work
        while len(_writers) > _MOST_WRITERS:
            del _writers[next(iter(_writers))]


def join_writer(address: int, other: Work | None) -> None:
    """Order the running piece of work, and what comes after it, after the work that wrote the value at an address.

    `other` is a kernel that wrote the value, if it is known.
    """
    for writer in (_writers.get(address), other):
        if runner.piece is not None and writer is not None:
            order_after(runner.piece.work, writer)

"""The order that waits for values establish: work after a wait comes after the work that wrote the value.

No event connects the two. A wait whose condition holds before a write may end before that write, so the two are not
ordered: if the value was there from the start, or if an earlier write satisfies the wait too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from .runner import runner
from .work import Work, order_after


class Write(NamedTuple):
    """A write of a value of `size` bytes by a stream; `before` is the value that was there, and `work` the writer."""

    work: Work
    size: int
    before: int
    value: int


# The last writes of values to each address, the latest last.
_writes: dict[int, deque[Write]] = {}
_MOST_ADDRESSES = 256
_MOST_WRITES = 16


def forget_writers() -> None:
    """Forget who wrote values, after a reset."""
    _writes.clear()


def note_write(address: int, size: int, before: int, value: int) -> None:
    """Note that the running piece of work writes a value of `size` bytes to an address, in place of another value."""
    if runner.piece is None:
        return
    writes = _writes.pop(address, deque(maxlen=_MOST_WRITES))
    writes.append(Write(runner.piece.work, size, before, value))
    _writes[address] = writes
    while len(_writes) > _MOST_ADDRESSES:
        del _writes[next(iter(_writes))]


def join_writer(address: int, size: int, now: int, meets: Callable[[int], bool], kernel: Work | None) -> None:
    """Order the running piece of work, and all work after it, after the write of a value for which it has waited.

    `now` is the value at the address, and `meets` says whether a value satisfies the wait. `kernel` is the launch that
    wrote the value, if it is known.
    """
    if runner.piece is None:
        return
    waiting = runner.piece.work
    for writer in (_first_satisfying(waiting, _writes.get(address, deque()), size, now, meets), kernel):
        if writer is not None:
            order_after(waiting, writer)


def _first_satisfying(
    waiting: Work, writes: deque[Write], size: int, now: int, meets: Callable[[int], bool]
) -> Work | None:
    """Return the work whose write made the condition of a wait hold, as it has done since; None if there is none."""
    for write in reversed(writes):
        if write.size != size:
            return write.work  # assume an order, since only a part of one of the two values is known
        # The value is from elsewhere, such as the host, or no value from before this write can have ended the wait.
        if write.value != now or waiting.comes_after(write.work):
            return None
        if not meets(write.before):
            return write.work
        now = write.before
    # Writes that were not kept may have made the condition hold: assume that the oldest one that was kept did.
    return writes[0].work if len(writes) == _MOST_WRITES else None

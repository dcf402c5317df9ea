"""The order that waits for values make: work after a wait comes after the work that wrote the value.

No event connects the two.
"""

from __future__ import annotations

from .runner import runner
from .work import Work, order_after

# The work that last wrote a value to an address.
_writers: dict[int, Work] = {}
_MOST_WRITERS = 256


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

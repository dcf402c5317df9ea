"""Locks that stay free when a signal's handler raises."""

from __future__ import annotations

import threading

SECONDS_PER_WAIT = 0.05


def take(lock: threading.Lock | threading.RLock, taken: list[bool], *, blocking: bool = True) -> None:
    """Acquire a lock, and append True to `taken` if the caller must release it.

    One call into C does both. Python runs signal handlers between such calls. If a handler raises between the two
    steps, nothing will release the lock: after `lock.acquire()`, and in Python 3.14 also before the first line within
    `with lock:`. So call this in the `try` whose `finally` releases the lock.
    """
    if not blocking:
        taken.extend(filter(None, map(lock.acquire, (False,))))
    # Again and again: a signal that arrives immediately before Python begins to wait does not end the wait.
    while blocking and not taken:
        taken.extend(filter(None, map(lock.acquire, (True,), (SECONDS_PER_WAIT,))))

"""Locks that stay free when a signal's handler raises."""

from __future__ import annotations

import threading


def take(lock: threading.Lock | threading.RLock, taken: list[bool], *, blocking: bool = True) -> None:
    """Take a lock, and put something in `taken` if the caller must release it.

    One call of C does both. Python runs signal handlers after calls of C, and one that raises between the two would
    leave the lock to nobody: after `lock.acquire()`, and in Python 3.14 also before the first line within `with lock:`.
    So call this in the `try` whose `finally` releases the lock.
    """
    taken.extend(filter(None, map(lock.acquire, (blocking,))))

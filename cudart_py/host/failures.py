"""Exceptions of host functions, which are kept until a call that waits for the device raises them."""

from __future__ import annotations

import sys
import threading

_NOTE = "A host function that was queued in a stream raised this exception, before the call that waited for the device"


class HostFailures:
    """The exceptions that have not been raised yet, in order, each with the ordinal of the function's device."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, BaseException]] = []
        self._lock = threading.Lock()  # the driver runs host functions in its own threads

    def keep(self, error: BaseException, ordinal: int) -> None:
        """Keep an exception until `deliver`."""
        error.add_note(_NOTE)
        with self._lock:
            self._kept.append((ordinal, error))

    def drop(self, error: BaseException) -> None:
        """Forget an exception that will reach the program in another way."""
        with self._lock:
            self._kept = [kept for kept in self._kept if kept[1] is not error]

    def deliver(self, ordinal: int) -> None:
        """Raise the exceptions that functions of a device have raised: a single one itself, several as one group."""
        if not self._kept:
            return
        with self._lock:
            errors = [error for device, error in self._kept if device == ordinal]
            self._kept = [kept for kept in self._kept if kept[0] != ordinal]
        if len(errors) > 1:
            raise BaseExceptionGroup("several host functions have raised exceptions", errors)
        if errors:
            raise errors[0]

    def clear(self) -> None:
        """Forget all exceptions."""
        with self._lock:
            self._kept.clear()

    def print_all(self) -> None:
        """Print the exceptions as Python prints those that end a program, and forget them."""
        with self._lock:
            kept, self._kept = self._kept, []
        for _, error in kept:
            sys.excepthook(type(error), error, error.__traceback__)


host_failures = HostFailures()

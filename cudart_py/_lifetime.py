"""The life of a handle: made once, closed once, by hand, by `with` or by the garbage collector."""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn, Self

from . import _driver
from .capture import captures, relaxed
from .debugging import state as launched

__all__ = [
    "Handle",
    "close_postponed",
    "closes",
    "finalize",
    "in_host_function",
    "postponed",
    "refuse_copy",
]


class _Closes:
    """What tells that something was closed, so that who checked his arguments once knows when to check again."""

    __slots__ = ("latest",)

    def __init__(self) -> None:
        # Another object after every close. No number: where threads run at once, adding to one could bring an earlier
        # one back.
        self.latest = object()


closes = _Closes()
# The threads that run a host function just now, which must not call the driver, and what was dropped there.
in_host_function: set[int] = set()
postponed: deque[Any] = deque()

_exiting = False


@atexit.register
def _note_exit() -> None:
    # The driver tears itself down at exit; calls into it from finalizers may then crash.
    global _exiting
    _exiting = True


def close_postponed() -> None:
    """Close what was dropped in host functions since the last call."""
    while postponed:
        with contextlib.suppress(IndexError):  # another thread may be here too
            _close(postponed.popleft())


def finalize(thing: Any, _forked: Callable[[], bool] = _driver.forked) -> None:
    """Close what nobody refers to any more, wherever the interpreter finds that out.

    Does nothing when the interpreter ends, which may have taken this module's names away already, or in a forked child.
    """
    if _exiting is not False or _forked():
        return
    if in_host_function and threading.get_ident() in in_host_function:
        postponed.append(thing)
        return
    _close(thing)
    if postponed:
        close_postponed()


def _close(thing: Any) -> None:
    # A finalizer has nobody to tell, and the context may be lost. Garbage is collected at any time, also while
    # somebody captures.
    try:
        if captures:
            with relaxed():
                thing.close()
        else:
            thing.close()
    except Exception:  # as above; contextlib.suppress would cost as much as the rest of a free
        pass


def refuse_copy(thing: Any, remedy: str) -> NoReturn:
    """Raise the TypeError of what can be neither copied nor pickled, since its handle is given back once."""
    raise TypeError(f"this {type(thing).__name__} cannot be copied or pickled: {remedy}")


class Handle:
    """Something of the driver's that must be given back exactly once.

    A subclass sets `_value` to what it owns and says in `_release` how to give it back. A borrowed
    handle sets `_owned` to False and is never destroyed.
    """

    __slots__ = ("__weakref__", "_owned", "_value")

    _value: Any
    _owned: bool

    def _release(self, value: Any) -> None:
        raise NotImplementedError

    @property
    def handle(self) -> int:
        """The driver's own handle as an int, which raw `cuda.bindings` calls take; ValueError when closed."""
        if self._value is None:
            raise ValueError(f"this {type(self).__name__} is closed")
        return int(self._value)

    @property
    def closed(self) -> bool:
        """Whether `close()` was called."""
        return self._value is None

    def close(self) -> None:
        """Give the handle back; a second call does nothing."""
        value = self._value
        if value is None:
            return
        try:
            # Of several threads that close one handle at once, one succeeds, by the interpreter's lock: one of ours
            # would take four times as long.
            owned = self._owned
            del self._owned
        except AttributeError:
            return
        self._value = None
        closes.latest = object()
        launched.last = None
        if owned:
            self._release(value)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> str | tuple[Any, ...]:
        refuse_copy(self, "a copy would be given back as well")

    def __del__(self, _finalize: Callable[[Any], None] = finalize) -> None:
        try:
            if self._value is None:
                return
        except AttributeError:  # the constructor failed before the driver made anything
            return
        _finalize(self)

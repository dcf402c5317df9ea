"""The life of a handle: made once, closed once, by hand, by `with` or by the garbage collector."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import threading
import weakref
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar, Self

from .. import arguments, errors
from ..driver.backend import forked, in_use
from .capture import captures, relaxed
from .epoch import epoch

# The threads that are running a host function, which must not call the driver, and the functions that give back the
# handles that were dropped there.
in_host_function: set[int] = set()
postponed: deque[Callable[[], None]] = deque()

# Functions that give back handles that were closed while the device had yet to reach the last use. Each returns whether
# it has done so; until then it is called again after every synchronization.
unfinished: deque[Callable[[], bool]] = deque()

_exiting = False


@atexit.register
def _note_exit() -> None:
    # The driver tears itself down at exit; calls into it from finalizers may then crash.
    global _exiting
    _exiting = True
    # The first function that is registered is the last to run: others wait for callbacks, for example.
    backend = in_use()
    if backend is not None:
        backend.note_exit()


def close_postponed() -> None:
    """Give back what was dropped in host functions since the last call."""
    while postponed:
        with contextlib.suppress(IndexError):  # another thread may be here too
            _quietly(postponed.popleft())


def close_waiting() -> None:
    """Give back what waited for a synchronization, after which callers call this."""
    if postponed:
        close_postponed()
    if unfinished:
        close_unfinished()


def close_unfinished(most: int | None = None) -> None:
    """Give back closed handles that the device has finished with; of the waiting ones, try the first `most` only."""
    for _ in range(len(unfinished) if most is None else min(most, len(unfinished))):
        try:
            attempt = unfinished.popleft()
        except IndexError:  # another thread is here too
            return
        finished = False
        try:
            finished = attempt()
        except errors.CudaError:  # the context is lost, and nobody here has asked for anything
            pass
        finally:
            if not finished:  # also after an interrupt
                unfinished.append(attempt)


def finalize(give_back: Callable[[], None]) -> None:
    """Call the function that gives back what has no reference left, in whatever thread the interpreter notices it.

    Does nothing when the interpreter ends, which may have taken this module's names away already, or in a forked child.
    """
    if _exiting is not False:
        return
    if in_host_function and threading.get_ident() in in_host_function:
        postponed.append(give_back)
        return
    _quietly(give_back)
    if postponed:
        close_postponed()


def _quietly(give_back: Callable[[], None]) -> None:
    # No caller waits for a finalizer's error, and the context may be lost. Garbage is collected at any time, also
    # during a capture.
    try:  # contextlib.suppress would take as long as the rest of a free
        backend = in_use()
        action = functools.partial(_call_relaxed, give_back) if captures else give_back
        if backend is not None:
            backend.in_finalizer(action)
        elif not forked():  # what was made without a driver
            action()
    except Exception:  # as above
        pass


def _call_relaxed(give_back: Callable[[], None]) -> None:
    with relaxed():
        give_back()


class Handle:
    """Something of the driver's that must be given back exactly once.

    A subclass sets `_value` to what it owns and says in `_release` how to give it back. A borrowed
    handle sets `_owned` to False and is never destroyed. A closed handle has no `_owned` any more.
    """

    __slots__ = ("__weakref__", "_owned", "_value")

    _value: Any
    _owned: bool
    # What the error of a use after the end says besides, by subclass.
    _closed_how: ClassVar[str] = ""

    def _release(self, value: Any) -> None:
        raise NotImplementedError

    @property
    def handle(self) -> int:
        """The driver's handle as an int, for raw `cuda.bindings` calls; raises ValueError when closed."""
        return self._open_handle()

    def _open_handle(self) -> int:
        """Return the handle as an int; ValueError when closed."""
        if self._value is None:
            raise ValueError(f"this {type(self).__name__} is closed{self._closed_by()}")
        return int(self._value)

    @property
    def closed(self) -> bool:
        """Whether `close()` was called."""
        return self._value is None

    def _closed_by(self) -> str:
        """Return by what it may have been closed, as the end of a sentence that says that it is."""
        return ", by cuda.reset()" if _lost.get(id(self)) is self else self._closed_how

    def close(self) -> None:
        """Release the handle; a second call does nothing."""
        if self._value is None:
            return
        try:
            owned = self._owned
            del self._owned  # of several threads that close it at once, one can
        except AttributeError:
            return
        value, self._value = self._value, None
        if value is None:  # a reset has taken it in between
            return
        epoch.advance()
        if owned:
            self._give_back(value)

    def _give_back(self, value: Any) -> None:
        """Call `_release` where it may call the driver: after the call that the thread is in, and in any capture."""
        backend = in_use()
        if backend is not None and backend.in_a_call():
            # By the `__del__` of something that the garbage collector has found there.
            finalize(functools.partial(self._release, value))
        elif captures:  # no captured work depends on it
            _call_relaxed(functools.partial(self._release, value))
        else:
            self._release(value)

    def _lose(self) -> None:
        """Close it without giving the handle back: a reset has taken what the driver had."""
        _lost[id(self)] = self
        self._value = None

    def _drop(self) -> None:
        """Give the handle back at the end of its last reference."""
        self.close()

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
        arguments.refuse_copy(self, "a copy would be given back as well")

    def __del__(self, _finalize: Callable[[Callable[[], None]], None] = finalize) -> None:
        try:
            if self._value is None or not self._owned:
                return
        except AttributeError:  # the constructor failed before the driver made anything
            return
        _finalize(self._drop)


# The handles that a reset has closed, by identity. Few programs reset, so that a handle has no attribute for it.
_lost: weakref.WeakValueDictionary[int, Handle] = weakref.WeakValueDictionary()


def live_handles() -> list[Handle]:
    """Return all handles of the process that are open, borrowed ones too.

    The garbage collector knows them; to note each where it is made would take longer than many a call. It finds nothing
    that `gc.freeze()` has set aside, so that all of this is given back to it.
    """
    if gc.get_freeze_count():
        gc.unfreeze()
    # An object refers to its type. gc.get_objects() would refer to all objects, among them tuples that other threads
    # are still building, and CPython cannot lengthen a tuple that anyone else refers to.
    kinds = _kinds(Handle)
    found = [thing for thing in gc.get_referrers(*kinds) if type(thing) in kinds]
    return [handle for handle in found if getattr(handle, "_value", None) is not None]


def _kinds(kind: type[Handle]) -> set[type]:
    kinds = {kind}
    for subclass in kind.__subclasses__():
        kinds |= _kinds(subclass)
    return kinds


class ComparedHandle(Handle):
    """A handle that several objects may have: open objects with the same handle are equal."""

    __slots__ = ("_hash",)

    _hash: int

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        related = isinstance(other, type(self)) or isinstance(self, type(other))
        if not isinstance(other, ComparedHandle) or not related:
            return NotImplemented
        return self._value is not None and other._value is not None and int(self._value) == int(other._value)

    def __hash__(self) -> int:
        # It stays what it was while the handle was open, since a closed one may still be a key.
        if not hasattr(self, "_hash"):
            self._hash = hash(self._value) if self._value is not None else id(self)
        return self._hash

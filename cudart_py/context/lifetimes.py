"""Lifetime of a handle: created once, and closed once, explicitly, by `with` or by the garbage collector."""

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
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .. import errors
from ..base import arguments
from ..driver.backend import forked, in_use
from ..driver.calls import api
from .capture import LEGACY, captures, defer, relaxed
from .current import activated
from .epoch import epoch

if TYPE_CHECKING:
    from .device import Device

# The threads that are running a host function, which must not call the driver, and the functions that will release the
# handles that were dropped there.
in_host_function: set[int] = set()
postponed: deque[Callable[[], None]] = deque()

# Functions that release handles that were closed before the device had reached their last use. Each returns whether it
# has released its handle; until then, it is called again after every synchronization.
unfinished: deque[Callable[[], bool]] = deque()

_exiting = False


@atexit.register
def _note_exit() -> None:
    # The driver tears itself down at exit; calls into it from finalizers may then crash.
    global _exiting
    _exiting = True
    # atexit runs the function that was registered first last. Other functions, which wait for host functions for
    # example, have already run.
    backend = in_use()
    if backend is not None:
        backend.note_exit()


def close_postponed() -> None:
    """Release the handles that were dropped in host functions since the last call."""
    while postponed:
        with contextlib.suppress(IndexError):  # another thread may have taken the last one
            _quietly(postponed.popleft())


def close_waiting() -> None:
    """Release the handles that waited for a synchronization. Call this after one."""
    if postponed:
        close_postponed()
    if unfinished:
        close_unfinished()


def close_unfinished(most: int | None = None) -> None:
    """Release closed handles that the device has finished with; with `most`, try only that many of the waiting ones."""
    for _ in range(len(unfinished) if most is None else min(most, len(unfinished))):
        try:
            attempt = unfinished.popleft()
        except IndexError:  # another thread has taken the last one
            return
        finished = False
        try:
            finished = attempt()
        except errors.CudaError:  # the context is lost, and no caller waits for this error
            pass
        finally:
            if not finished:  # even after an interrupt
                unfinished.append(attempt)


def finalize(give_back: Callable[[], None]) -> None:
    """Call the function that releases an unreferenced handle, in whatever thread the interpreter finalizes it.

    Does nothing while the interpreter exits, when the names of this module may already be gone, or in a forked child.
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
    # No caller waits for a finalizer's error, and the context may be lost. Garbage is collected at any time, even
    # during a capture.
    try:  # contextlib.suppress would take as long as the rest of a free
        backend = in_use()
        action = functools.partial(_call_relaxed, give_back) if captures else give_back
        if backend is not None:
            backend.in_finalizer(action)
        elif not forked():  # the object was created without a driver
            action()
    except Exception:  # as above
        pass


def _call_relaxed(give_back: Callable[[], None]) -> None:
    with relaxed():
        give_back()


class Handle:
    """An object of the driver that must be released exactly once.

    A subclass sets `_value` to the driver's handle and implements `_release`, which releases it. A borrowed handle sets
    `_owned` to False and is never destroyed. A closed handle no longer has `_owned`.
    """

    __slots__ = ("__weakref__", "_owned", "_value")

    _value: Any
    _owned: bool
    # The ways in which objects of a subclass may have been closed, as part of the error for using a closed one.
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
        """Whether the object has been closed."""
        return self._value is None

    @property
    def _is_lost(self) -> bool:
        """Whether a reset has closed the object."""
        return _lost.get(id(self)) is self

    def _closed_by(self) -> str:
        """Return how the handle may have been closed, as the end of the error message about a closed handle."""
        return ", by cuda.reset()" if self._is_lost else self._closed_how

    def close(self) -> None:
        """Release the handle; a second call does nothing."""
        if self._value is None:
            return
        try:
            owned = self._owned
            del self._owned  # if several threads close it at once, only one succeeds here
        except AttributeError:
            return
        value, self._value = self._value, None
        if value is None:  # a reset has taken it in between
            return
        epoch.advance()
        if owned:
            self._give_back(value)

    def _give_back(self, value: Any) -> None:
        """Call `_release` when it may call the driver: after any call that the thread is in, and despite captures."""
        backend = in_use()
        if backend is not None and backend.in_a_call():
            # The garbage collector ran during that call, and the `__del__` of some object closed this handle.
            finalize(functools.partial(self._release, value))
        elif captures:  # no captured work depends on it
            _call_relaxed(functools.partial(self._release, value))
        else:
            self._release(value)

    def _lose(self) -> None:
        """Close the handle without releasing it, because a reset has destroyed the driver's object."""
        _lost[id(self)] = self
        self._value = None

    def _drop(self) -> None:
        """Release the handle when the last reference is gone."""
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
        arguments.refuse_copy(self, "a copy would be released as well")

    def __del__(self, _finalize: Callable[[Callable[[], None]], None] = finalize) -> None:
        try:
            if self._value is None or not self._owned:
                return
        except AttributeError:  # the constructor failed before the driver made anything
            return
        _finalize(self._drop)


# The handles that a reset has closed, keyed by id. Few programs reset, so handles have no attribute for this.
_lost: weakref.WeakValueDictionary[int, Handle] = weakref.WeakValueDictionary()


def live_handles() -> list[Handle]:
    """Return all open handles of the process, including borrowed ones.

    The garbage collector finds them, because registering each handle at creation would take longer than many a call. It
    does not find objects that `gc.freeze()` has set aside, so all of these are unfrozen.
    """
    if gc.get_freeze_count():
        gc.unfreeze()
    # An object refers to its type. gc.get_objects() would create references to all objects, including tuples that other
    # threads are still building, and CPython cannot resize a tuple that has other references.
    kinds = _kinds(Handle)
    found = [thing for thing in gc.get_referrers(*kinds) if type(thing) in kinds]
    return [handle for handle in found if getattr(handle, "_value", None) is not None]


def _kinds(kind: type[Handle]) -> set[type]:
    kinds = {kind}
    for subclass in kind.__subclasses__():
        kinds |= _kinds(subclass)
    return kinds


class ComparedHandle(Handle):
    """A handle that several objects may share: open objects with the same handle are equal."""

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
        # The hash does not change when the handle is closed, because a closed object may still be a key.
        if not hasattr(self, "_hash"):
            self._hash = hash(self._value) if self._value is not None else id(self)
        return self._hash


class WaitingHandle(Handle):
    """A handle that is destroyed only after all work on its device has finished, because that work may use it.

    The driver would destroy it at once, even while a kernel uses it, and nothing records which streams have such
    kernels. A subclass implements `_destroy`, which destroys the handle.
    """

    __slots__ = ()

    @property
    def device(self) -> Device:
        """The device on which the handle can be used."""
        raise NotImplementedError

    def _destroy(self, value: Any) -> None:
        raise NotImplementedError

    def _release(self, value: Any) -> None:
        # No synchronisation is allowed during a capture, so this is deferred until it ends.
        if not (captures and defer(LEGACY, lambda: self._wait_and_destroy(value))):
            self._wait_and_destroy(value)

    def _wait_and_destroy(self, value: Any) -> None:
        with activated(self.device):
            try:
                api.cuCtxSynchronize()
            finally:
                self._destroy(value)

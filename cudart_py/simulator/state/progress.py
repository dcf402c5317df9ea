"""Progress: the thread in the middle of a driver call, and the frees and signals that wait until it returns.

Python may run signal handlers and finalizers between any two instructions: between two changes to the driver's tables,
or while a kernel is half executed. A GPU's driver is written in C, so Python runs neither during its calls.
Therefore, signal handlers wait here while a call changes tables, and finalizers wait until the call returns.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed knows it only as `signal`
import contextlib
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from threading import get_ident
from types import FrameType
from typing import Any

# These are several times as fast as the functions of `signal`, which convert the results to enums.
getsignal: Callable[[int], Any] = _signal.getsignal
set_handler: Callable[[int, Any], Any] = _signal.signal

# A call raises RecursionError before it begins if fewer than this many frames of Python's stack are left. Changing the
# tables takes fewer frames, so that a change is never interrupted halfway.
_FRAMES = 100
_SIGNALS = sorted(map(int, signal.valid_signals()))
# Signals whose handlers wait from the first call on. Looking for handlers of all signals takes longer than many calls,
# so only running work does that (`has_handlers`), and from then on the handlers that it has found wait too.
_USUAL = tuple(map(int, (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)))


class _Progress:
    """The call in progress, and the lock that makes it the only one.

    `thread` is the thread that is in the middle of a call, 0 for none, and `workers` are others that run work of that
    call. `printed` contains the output of kernels, and `postponed` finalizers and frees; both wait until the call
    returns.
    """

    def __init__(self) -> None:
        # Re-entrant, because a thread may handle a signal while it waits for work that runs in another thread, and the
        # handler may call the driver.
        self.lock = threading.RLock()
        self.thread = 0
        self.workers: set[int] = set()
        self.printed: list[str] = []
        # A finalizer returns False if a call is in progress, so that it must be called again.
        self.postponed: deque[Callable[[], object]] = deque()
        # The frees in `postponed`, keyed by what they free.
        self._frees: dict[Hashable, Callable[[], None]] = {}
        # The threads that are calling what was postponed.
        self._emptying: set[int] = set()
        # Functions that update the accounts for objects that were garbage-collected, perhaps in another thread. The
        # next call runs them when it begins.
        self.dropped: deque[Callable[[], None]] = deque()
        # The reason why the last call in the middle of another one was refused, until it is read.
        self.refusal: str | None = None
        self._main = threading.main_thread().ident
        # `_watched`: the usual signals and those that the program was found to handle. `_held`: those of them whose
        # handlers currently wait. `_handlers`: the handlers. A signal may arrive between any two lines that change
        # these.
        self._watched: tuple[int, ...] = _USUAL
        self._held: set[int] = set()
        self._handlers: dict[int, Any] = {}
        self._reveals = 0
        self._seen: tuple[Any, ...] = ()
        self._arrived: deque[tuple[int, FrameType | None]] = deque()
        self._recorder = self._record  # one bound method, so that `is` recognizes it

    @property
    def here(self) -> bool:
        """Return whether the calling thread is in the middle of a call."""
        thread = get_ident()
        return thread == self.thread or thread in self.workers

    @property
    def waiting(self) -> bool:
        """Return whether anything waits for the end of the call."""
        return bool(self.printed or self.postponed or self._arrived)

    def begin(self) -> None:
        """Begin a call; raise RecursionError, before anything changes, if Python's stack is nearly used up."""
        try:
            sys._getframe(sys.getrecursionlimit() - _FRAMES)
        except ValueError:  # the stack is not that deep
            pass
        else:
            raise RecursionError(f"a call of the driver needs {_FRAMES} frames of Python's stack")
        self.enter()
        while self.dropped:
            self.dropped.popleft()()

    def enter(self) -> None:
        """Mark this thread as being in the middle of a call, so that signal handlers and finalizers wait."""
        reveals = -1
        # Repeat if a handler or a finalizer that still ran in between has called the driver, because that call has put
        # the handlers back.
        while reveals != self._reveals:
            self.thread = 0
            reveals = self._reveals
            self.conceal()
            self.thread = get_ident()

    def leave(self) -> None:
        """End a call. Signal handlers still wait for `reveal`, and signals that have arrived for `deliver`."""
        self.thread = 0
        self.refusal = None

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Count the calling thread as one that runs work of the call in progress, whose caller waits for it."""
        thread = get_ident()
        self.workers.add(thread)
        try:
            yield
        finally:
            self.workers.discard(thread)

    def postpone_free(self, thing: Hashable, free: Callable[[], None]) -> bool:
        """Free an object at the end of the call; return False if that has already been requested."""
        # One atomic step, because other threads postpone frees too.
        if self._frees.setdefault(thing, free) is not free:
            return False
        self.postponed.append(partial(self._free, thing))
        return True

    def _free(self, thing: Hashable) -> None:
        self._frees.pop(thing)()

    def catch_up(self) -> None:
        """Call the finalizers and frees that were postponed, and then handle the signals that have arrived.

        Driver calls that those finalizers make leave both to this call. If they ran the rest themselves, each call
        would be nested in the previous one, until Python's stack was used up. Also, an exception that a signal handler
        raises in a finalizer is lost.
        """
        thread = get_ident()
        if thread in self._emptying:
            return
        # Those that a call of another thread, or the work for which this thread waits, keeps from running now.
        unready: list[Callable[[], object]] = []
        try:
            try:
                self._emptying.add(thread)
                while self.postponed:
                    with contextlib.suppress(Exception):  # no caller waits for their errors
                        finalizer = self.postponed.popleft()
                        if finalizer() is False:
                            unready.append(finalizer)
            finally:
                self._emptying.discard(thread)
                self.postponed.extend(unready)
        finally:
            self.deliver()

    def conceal(self) -> None:
        """Make signal handlers wait: put `_record` in their place."""
        if get_ident() != self._main:
            return
        for which in self._watched:
            handler = getsignal(which)
            if handler is self._recorder:
                self._held.add(which)
            elif callable(handler):
                self._handlers[which] = handler
                self._held.add(which)
                set_handler(which, self._recorder)

    def reveal(self) -> None:
        """Put the handlers back, except those that the program has since replaced."""
        if not self._held or get_ident() != self._main:
            return
        self._reveals += 1
        try:
            for which in (*self._held,):
                if getsignal(which) is self._recorder:
                    set_handler(which, self._handlers[which])
                self._held.discard(which)
        except BaseException:
            # A handler that is back may raise at once. Put the others back nevertheless.
            self.reveal()
            raise

    def expose(self) -> None:
        """Allow signals to be handled in the middle of a call, and handle those that have arrived."""
        self.reveal()
        self.deliver()

    def pause(self, seconds: float) -> None:
        """In the middle of a call that waits, let other threads call the driver, and signals be handled.

        The tables must be consistent, and the caller must expect other calls to have changed them.
        """
        self.thread = 0
        self.lock.release()
        try:
            self.expose()
            time.sleep(seconds)
        finally:
            self.conceal()  # so that no handler raises before the lock is taken
            self.lock.acquire()
            self.enter()

    def deliver(self) -> None:
        """Handle the signals that have arrived in the meantime."""
        try:
            while self._arrived and get_ident() == self._main:
                which, frame = self._arrived.popleft()
                handler = getsignal(which)
                if callable(handler):
                    handler(which, frame)
        except BaseException:
            # Handle the other signals nevertheless, as Python does when several arrive at once.
            self.deliver()
            raise

    def has_handlers(self) -> bool:
        """Return whether the program has signal handlers, other than Python's for Ctrl-C, that run in this thread."""
        if get_ident() != self._main:
            return False
        found = tuple(map(getsignal, _SIGNALS))
        if found != self._seen:
            self._seen = found
            handled = {which for which, handler in zip(_SIGNALS, found, strict=True) if callable(handler)}
            self._watched = tuple(handled.union(_USUAL))
        return any(map(self._is_programs, self._watched))

    def _is_programs(self, which: int) -> bool:
        """Return whether the program's own handler handles a signal."""
        handler = getsignal(which)
        if handler is self._recorder:
            handler = self._handlers[which]
        return callable(handler) and handler is not signal.default_int_handler

    def _record(self, which: int, frame: FrameType | None) -> None:
        """Handle a signal in place of the program's handler: record it while that handler waits, or else call it."""
        if which in self._held:
            self._arrived.append((which, frame))
        else:
            self._handlers[which](which, frame)


progress = _Progress()

"""The runner: runs work of the queue, beside the calling thread where that may have to handle signals."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from ..progress import progress

if TYPE_CHECKING:
    from .operations import Operation
    from .work import Work


class Piece(Protocol):
    """A piece of work, or a node of a graph inside one."""

    @property
    def work(self) -> Work:
        """The piece of work that it belongs to."""

    def comes_after(self, piece: Piece) -> bool:
        """Return whether another piece, already done, happens before this one."""


class _Runner:
    """The work that runs now: its piece of the queue, and the operation of that."""

    def __init__(self) -> None:
        self.piece: Piece | None = None
        self.operation: Operation | None = None
        self.running = False
        self.in_callback = False
        # Exceptions of signal handlers that ran while the work ran beside them. The first one breaks that work off.
        self._stops: list[BaseException] = []
        self._ended = threading.Lock()

    def run(self, pieces: Iterable[Work]) -> None:
        """Run pieces of work in the order given.

        A driver of a GPU executes kernels beside the host, whose signal handlers may call the driver and wait for them.
        So where the program has handlers, a thread of its own runs the pieces, and this one waits for it.
        """
        self.running = True
        try:
            if not (progress.has_handlers() and self._run_beside(pieces)):
                self._run_here(pieces)
        finally:
            self.running = False
            self.piece = self.operation = None

    def keep_account(self, pieces: Iterable[Work]) -> None:
        """Run pieces of work that only keep account of memory, during which signal handlers wait."""
        try:
            for work in pieces:
                work.run()
        finally:
            self.piece = self.operation = None

    def wait(self) -> None:
        """Wait until the work has ended that runs beside this thread."""
        with self._ended:
            pass

    def poll(self) -> None:
        """Raise the exception that is to break off the work that runs, if there is one."""
        if self._stops:
            raise self._stops[0]

    def _run_here(self, pieces: Iterable[Work]) -> None:
        for work in pieces:
            self.poll()
            if not work.done:
                work.run()

    def _run_beside(self, pieces: Iterable[Work]) -> bool:
        """Run pieces in another thread, and wait; return whether there can be one, which the end of a program forbids.

        A handler of a signal runs here meanwhile. Its calls of the driver wait for the pieces; what it raises breaks
        them off, and is raised when they have ended.
        """
        failures: list[BaseException] = []
        stops: list[BaseException] = []
        ended = self._ended = threading.Lock()
        running = True

        def run() -> None:
            nonlocal running
            try:
                with progress.working():
                    self._run_here(pieces)
            except BaseException as error:
                failures.append(error)
            finally:
                # Before a handler's call can begin: its own work is not to be broken off.
                self._stops = []
                running = False
                ended.release()

        ended.acquire()
        self._stops = stops
        try:
            threading.Thread(target=run, name="cudart_py simulator").start()
        except RuntimeError:
            return False
        # From here on no call is in progress in this thread: a handler's may begin one.
        progress.thread = 0
        while running:
            try:
                progress.expose()
                self.wait()
            except BaseException as error:
                stops.append(error)
        progress.enter()
        if stops:
            raise stops[0]
        if failures:
            raise failures[0]
        return True


runner = _Runner()

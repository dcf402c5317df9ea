"""The runner, which runs work of the queue: in another thread, if the calling thread may have to handle signals."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from ....host.locks import SECONDS_PER_WAIT
from ..progress import progress

if TYPE_CHECKING:
    from .operations import Operation
    from .work import Work


class Piece(Protocol):
    """A piece of work, or a node of a graph that a piece of work launched."""

    @property
    def work(self) -> Work:
        """The piece of work that it belongs to."""

    def comes_after(self, piece: Piece) -> bool:
        """Return whether another piece, already done, happens before this one."""

    def shares_graph(self, piece: Piece) -> bool:
        """Return whether this piece and another one are nodes of the same launch of a graph."""


class _Runner:
    """The running work: its piece of the queue, and the operation of that piece."""

    def __init__(self) -> None:
        self.piece: Piece | None = None
        self.operation: Operation | None = None
        self.running = False
        # The number of times that a call has begun to run work.
        self.runs = 0
        self.in_callback = False
        # Exceptions of signal handlers that ran while the work ran in another thread. The first one interrupts it.
        self._stops: list[BaseException] = []
        # Whether work runs in another thread, and a lock that is released when it ends.
        self._is_beside = False
        self._ended = threading.Lock()

    def run(self, pieces: Iterable[Work]) -> None:
        """Run pieces of work in the order given.

        A GPU executes kernels concurrently with the host, whose signal handlers may call the driver and wait for the
        kernels. Therefore, if the program has signal handlers, a separate thread runs the pieces, and this one waits.
        """
        assert progress.here, "work runs in the middle of a call: the wait for the other thread begins that call again"
        self.running = True
        self.runs += 1
        try:
            if not (progress.has_handlers() and self._run_beside(pieces)):
                self._run_here(pieces)
        finally:
            self.running = False
            self.piece = self.operation = None

    def keep_account(self, pieces: Iterable[Work]) -> None:
        """Run pieces of work that only do bookkeeping of memory, while signal handlers wait."""
        try:
            for work in pieces:
                work.run()
        finally:
            self.piece = self.operation = None

    def wait(self) -> None:
        """Wait until the work that runs in another thread has ended."""
        # Again and again: a signal that arrives immediately before Python begins to wait does not end the wait.
        while self._is_beside:
            self._ended.acquire(timeout=SECONDS_PER_WAIT)

    def poll(self) -> None:
        """Raise the exception that must interrupt the running work, if there is one."""
        if self._stops:
            raise self._stops[0]

    def _run_here(self, pieces: Iterable[Work]) -> None:
        for work in pieces:
            self.poll()
            if not work.done:
                work.run()

    def _run_beside(self, pieces: Iterable[Work]) -> bool:
        """Run pieces in another thread, and wait; return False if no thread can start, as at the end of a program.

        In the meantime, signal handlers run in this thread. Their driver calls wait for the pieces. An exception that a
        handler raises interrupts the pieces, and is raised here when they have ended.
        """
        failures: list[BaseException] = []
        stops: list[BaseException] = []
        ended = self._ended = threading.Lock()

        def run() -> None:
            try:
                with progress.working():
                    self._run_here(pieces)
            except BaseException as error:
                failures.append(error)
            finally:
                # Before a handler's call can begin, so that its own work is not interrupted.
                self._stops = []
                self._is_beside = False
                ended.release()

        ended.acquire()
        self._stops = stops
        self._is_beside = True
        try:
            threading.Thread(target=run, name="cudart_py simulator").start()
        except RuntimeError:
            self._is_beside = False
            return False
        # From here on, no call is in progress in this thread, so that a handler may begin one.
        progress.thread = 0
        while self._is_beside:
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

"""Run the blocks of a launch in several host threads, each of which repeatedly takes the next few untaken blocks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from ..layout import Context
from .launch import NativeLaunch
from .turns import run_in_turns

ThreadContext = Callable[[], AbstractContextManager[None]]

# The number of pieces per thread into which the blocks are divided. With only one piece each, the other threads would
# be idle while one thread runs long blocks.
_PIECES = 16


class _Crew:
    """The host threads of one launch, and the state they share: the blocks that are left, and the failures."""

    def __init__(self, launches: Sequence[NativeLaunch], in_thread: ThreadContext) -> None:
        self._launches = launches
        self._blocks = launches[0].state.blocks
        self._piece = max(1, self._blocks // (len(launches) * _PIECES))
        self._in_thread = in_thread
        self._following = launches[0].state.first_block
        self._lock = threading.Lock()
        # The exceptions that ended threads, keyed by the first block of the piece that failed.
        self._failures: dict[int, BaseException] = {}

    def run(self) -> None:
        """Run all blocks; if several pieces fail, raise the failure of the first."""
        others = [threading.Thread(target=self._help, args=(launch,)) for launch in self._launches[1:]]
        for thread in others:
            thread.start()
        try:
            self._work(self._launches[0])
            for thread in others:
                thread.join()
        finally:
            # A signal may have interrupted the wait.
            self._stop()
            for thread in others:
                thread.join()
        if self._failures:
            raise self._failures[min(self._failures)]

    def _help(self, launch: NativeLaunch) -> None:
        with self._in_thread():
            self._work(launch)

    def _work(self, launch: NativeLaunch) -> None:
        context = launch.context
        while (first := self._take()) is not None:
            context[Context.BLOCK], context[Context.FRESH] = first, 1
            context[Context.LAST_BLOCK] = min(first + self._piece, self._blocks)
            try:
                if not launch.go_on():
                    run_in_turns(launch, self._behind(int(context[Context.BLOCK]), int(context[Context.LAST_BLOCK])))
            except BaseException as error:
                with self._lock:
                    self._failures[first if isinstance(error, Exception) else -1] = error
                    self._following = self._blocks
                if not isinstance(error, Exception):
                    self._stop()
                return

    def _behind(self, block: int, end: int) -> Iterator[int]:
        """Yield the rest of a piece, and then blocks that no thread has taken."""
        yield from range(block + 1, end)
        while (first := self._take()) is not None:
            yield from range(first, min(first + self._piece, self._blocks))

    def _stop(self) -> None:
        """Make all threads end at their next return from machine code."""
        for launch in self._launches:
            launch.stops = True

    def _take(self) -> int | None:
        """Take the next piece and return its first block, or None if all blocks are taken."""
        with self._lock:
            first = self._following
            if first >= self._blocks:
                return None
            self._following += self._piece
            return first


def run_in_threads(launches: Sequence[NativeLaunch], in_thread: ThreadContext) -> None:
    """Run all blocks of a launch in one host thread per item: this thread, and others within `in_thread` contexts."""
    for launch in launches:
        launch.answer_calls()
    if len(launches) == 1:
        launches[0].run()
    else:
        _Crew(launches, in_thread).run()

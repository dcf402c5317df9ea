"""Run all blocks of a launch, with or without checks that watch it, in one or several host threads.

Each of several threads repeatedly takes the next few untaken blocks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ...faults import Fault
from ..layout import LANES, Context
from ..library.checking.records import MOST_THREADS
from .launch import NativeLaunch
from .reports import report_findings
from .speculation import Speculation, SpeculationFailed
from .waiting import run_in_turns

if TYPE_CHECKING:
    from ...running.launch import LaunchState
    from ...running.observer import AccessRecords
    from ..machine import Kernel

# A kernel whose speculation has failed this many times is left to the NumPy engine.
_MOST_DOUBTS = 3
ThreadContext = Callable[[], AbstractContextManager[None]]
# The number of pieces per thread into which the blocks are divided. With only one piece each, the other threads would
# be idle while one thread runs long blocks.
_PIECES = 16


def run_blocks(kernel: Kernel, state: LaunchState, threads: int, in_thread: ThreadContext) -> None:
    """Run all blocks of a launch."""
    launches = [NativeLaunch(kernel, state) for _ in range(threads)]
    try:
        run_in_threads(launches, in_thread)
    finally:
        for launch in launches:
            launch.end()
            launch.give_back()


def run_checked(kernel: Kernel, state: LaunchState, threads: int, in_thread: ThreadContext) -> bool:
    """Run all blocks of a launch that checks watch; return True if there is nothing to report.

    Return False, with all its changes to memory undone, if the NumPy engine must run the launch.
    """
    observer = state.observer
    assert observer is not None
    if state.blocks * -(-state.threads // LANES) * LANES > MOST_THREADS:
        observer.lack_records()
        return False
    while kernel.recorded.doubts < _MOST_DOUBTS:
        records = observer.records()
        try:
            launches = [NativeLaunch(kernel, state) for _ in range(threads)]
            speculation = Speculation(launches, records, kernel.recorded)
        except MemoryError:
            # Nothing has run, and the NumPy engine needs less memory.
            observer.lack_records()
            break
        try:
            try:
                run_in_threads(launches, in_thread)
            except Fault:
                # A race with other work may have caused the fault.
                _compare(kernel, speculation, records)
                raise
            _compare(kernel, speculation, records)
        except SpeculationFailed as doubted:
            speculation.undo()
            again = doubted.again
            kernel.recorded.doubts += doubted.counts and not again
            kernel.recorded.unwritten |= doubted.unwritten
            if doubted.lacks_records:
                observer.lack_records()
        except BaseException:
            _keep(launches, speculation, records)
            raise
        else:
            _keep(launches, speculation, records)
            return True
        finally:
            speculation.end()
            for launch in launches:
                launch.give_back()
        if not again:
            break
    # The observer's checks start again, at times later than the accesses that were undone.
    observer.start(state)
    return False


def _compare(kernel: Kernel, speculation: Speculation, records: AccessRecords) -> None:
    """Raise SpeculationFailed if the launch, which has just run, may race with other work."""
    if not records.complete:
        return
    instructions = [site.instruction for site in kernel.sites.sites]
    try:
        races = records.races(speculation.used(), speculation.unrecorded(), kernel.sites.shift, instructions)
    except MemoryError:
        raise SpeculationFailed(counts=False, lacks_records=True) from None
    if races:
        raise SpeculationFailed


def _keep(launches: list[NativeLaunch], speculation: Speculation, records: AccessRecords) -> None:
    """End a launch that is not undone."""
    records.keep(speculation.changed())
    report_findings(launches)
    for launch in launches:
        launch.end()


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

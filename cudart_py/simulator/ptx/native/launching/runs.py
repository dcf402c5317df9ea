"""Run all blocks of a launch, with or without checks that watch it, in one or several host threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...faults import Fault
from ..layout import LANES
from ..library.checking.records import MOST_THREADS
from .launch import NativeLaunch
from .reports import report_findings
from .speculation import Speculation, SpeculationFailed
from .threads import ThreadContext, run_in_threads

if TYPE_CHECKING:
    from ...running.launch import LaunchState
    from ...running.observer import AccessRecords
    from ..machine import Kernel

# A kernel whose speculation has failed this many times is left to the NumPy engine.
_MOST_DOUBTS = 3


def run_blocks(kernel: Kernel, state: LaunchState, threads: int, in_thread: ThreadContext) -> None:
    """Run all blocks of a launch."""
    launches = [NativeLaunch(kernel, state) for _ in range(threads)]
    try:
        run_in_threads(launches, in_thread)
    finally:
        _end(launches)
        _give_back(launches)


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
            _give_back(launches)
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
    _end(launches)


def _end(launches: list[NativeLaunch]) -> None:
    for launch in launches:
        launch.end()


def _give_back(launches: list[NativeLaunch]) -> None:
    for launch in launches:
        launch.give_back()

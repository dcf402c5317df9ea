"""Unwaited work, which has not run: whether there is any, and a report of it at the end of a program."""

from __future__ import annotations

import contextlib
import sys

from ..checks.findings import mode, take_texts
from ..state import contexts
from ..state.devices import state
from ..state.errors import StatusError
from ..state.fault_reports import readable
from ..state.progress import progress
from ..state.queue.operations import Operation
from ..state.queue.runner import runner
from ..state.queue.scheduling import complete_context
from ..state.queue.work import needed
from .entry import alone


def has_unwaited() -> bool:
    """Return whether a context that no fault has ended has work that has not run."""
    return state.initialised and any(context.pending for context in contexts.all_active())


def note_exit() -> None:
    """Report on standard error, in one line, kernels and similar work that nothing waited for and that has not run.

    If there are none, remaining copies and fills are run, and the checks report their races. A copy that a kernel in
    another stream should have waited for is found in this way even if the program never synchronizes the copy's stream.

    Nothing is reported if an uncaught exception has ended the program, because that has a message of its own.
    """
    if not state.initialised or hasattr(sys, "last_type"):
        return
    tails = [stream.tail for context in contexts.all_active() for stream in list(context.busy)]
    operations = [work.operation for work in needed(tail for tail in tails if tail is not None)]
    found = [operation for operation in operations if operation is not None and operation.computes]
    if not found:
        if operations and mode() != "off":
            _run_unless_waiting(operations)
            for text in take_texts():
                print(f"cudart-py: when the program ended: {text}", file=sys.stderr)  # noqa: T201  # as below
        return
    first = readable(str(found[0])).rstrip(",")
    others = f" and {len(found) - 1} more after it" if len(found) > 1 else ""
    print(  # noqa: T201  # because nothing else is left to say it
        f"cudart-py: the program ended without waiting for {first}{others}, so the work was not run: synchronize the "
        "stream or the device, or copy the result to the host",
        file=sys.stderr,
    )


def _run_unless_waiting(operations: list[Operation | None]) -> None:
    """Run all work, unless that may take forever: it waits for values, or another thread is in the driver."""
    if any(operation is not None and operation.may_wait for operation in operations):
        return
    if not progress.lock.acquire(blocking=False):
        return
    try:
        if not runner.running:
            alone(_run_all, (), {})
    finally:
        progress.lock.release()


def _run_all() -> None:
    for context in contexts.all_active():
        with contextlib.suppress(StatusError):  # a lost context cannot run its work, which has been reported
            complete_context(context, freeing=True)

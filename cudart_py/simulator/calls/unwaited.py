"""Unwaited work: a report, at the end of a program, of work that it queued but never waited for."""

from __future__ import annotations

import sys

from ..state import contexts
from ..state.devices import state
from ..state.fault_reports import readable
from ..state.queue.work import needed


def note_exit() -> None:
    """Report on standard error, in one line, kernels and similar work that nothing waited for and that has not run.

    Nothing is reported if an uncaught exception has ended the program, because that has a message of its own.
    """
    if not state.initialised or hasattr(sys, "last_type"):
        return
    tails = [stream.tail for context in contexts.all_active() for stream in list(context.busy)]
    operations = [work.operation for work in needed(tail for tail in tails if tail is not None)]
    found = [operation for operation in operations if operation is not None and operation.computes]
    if not found:
        return
    first = readable(str(found[0])).rstrip(",")
    others = f" and {len(found) - 1} more after it" if len(found) > 1 else ""
    print(  # noqa: T201  # because nothing else is left to say it
        f"cudart-py: the program ended without waiting for {first}{others}, so the work was not run: synchronize the "
        "stream or the device, or copy the result to the host",
        file=sys.stderr,
    )

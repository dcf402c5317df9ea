"""Progress for hosts that wait without calling the driver: a C++ program may wait for a host function's signal."""

from __future__ import annotations

from ..state import contexts
from ..state.queue import captures
from ..state.queue.scheduling import run_ready
from .entry import entry


@entry(values=1)
def run_queued() -> bool:
    """Run the queued work of all contexts that need not wait for values, and return whether there was any.

    Do nothing during a capture. Work otherwise runs as late as the driver's rules allow, in calls of the driver.
    """
    waiting = [] if captures.active else [context for context in contexts.all_active() if context.pending]
    ran = [run_ready(context) for context in waiting]
    return any(ran)

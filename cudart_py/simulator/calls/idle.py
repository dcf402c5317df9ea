"""Progress for hosts that wait without calling the driver: a C++ program may wait for a host function's signal."""

from __future__ import annotations

from ..state import contexts
from ..state.queue import captures
from ..state.queue.scheduling import complete_context
from .entry import entry


@entry(values=1)
def run_queued() -> bool:
    """Run the work of all contexts that is queued, and return whether there was any; do nothing during a capture.

    Work otherwise runs as late as the driver's rules allow, in calls of the driver.
    """
    waiting = [] if captures.active else [context for context in contexts.all_active() if context.pending]
    for context in waiting:
        complete_context(context)
    return bool(waiting)

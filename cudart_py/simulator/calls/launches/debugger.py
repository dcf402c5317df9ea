"""The debugger that is attached to the simulator: every launch runs for it instruction by instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...state import contexts
from ...state.queue.scheduling import complete_context
from ..entry import entry

if TYPE_CHECKING:
    from ...debugging.recorder import Listener, Recorder


# The listeners of the debuggers that are attached, the latest last; launches belong to the latest.
_attached: list[Listener] = []


def is_attached() -> bool:
    """Return whether a debugger is attached."""
    return bool(_attached)


def recorder() -> Recorder | None:
    """Return the recorder of a launch that begins now, or None if no debugger is attached."""
    if not _attached:
        return None
    from ...debugging.recorder import Recorder  # imported late, because few programs need it

    return Recorder(_attached[-1])


def _complete() -> None:
    for context in contexts.all_active():
        complete_context(context)


@entry()
def attach_debugger(listener: Listener) -> None:
    """Run the queued work, then attach a debugger to the launches from now on."""
    _complete()
    _attached.append(listener)


@entry()
def detach_debugger() -> None:
    """Run the queued work, then detach the latest debugger."""
    try:
        _complete()
    finally:
        _attached.pop()

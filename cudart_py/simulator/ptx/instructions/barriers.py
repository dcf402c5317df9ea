"""The instructions on mbarriers that compute with a barrier's state alone."""

from __future__ import annotations

from .values import Value

# The bits of an mbarrier's word that count the pending arrivals.
MISSING = (1 << 20) - 1


def pending_count(state: Value) -> Value:
    """``mbarrier.pending_count``: return the arrivals that were pending before the arrival that returned `state`."""
    return (state & MISSING).to("u32")

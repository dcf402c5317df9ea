"""Barriers in memory, as far as their instructions compute with states alone."""

from __future__ import annotations

from .values import Value

# The bits of a barrier's word that count the missing arrivals.
MISSING = (1 << 20) - 1


def pending_count(state: Value) -> Value:
    """``mbarrier.pending_count``: return the arrivals that were missing before the one that gave a state."""
    return (state & MISSING).to("u32")

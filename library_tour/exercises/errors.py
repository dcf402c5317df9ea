"""Find out which of several launches is the first to fail.

The starting code returns the first launch that raises an exception. But a launch returns before its kernel has run, so
the error is raised later by another call, or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import cudart_py as cuda


def first_that_fails(launches: Sequence[cuda.BoundLaunch]) -> int | None:
    """Perform the launches in order; return the index of the first one that fails, or None if all succeed."""
    for index, launch in enumerate(launches):
        try:
            launch()
        except cuda.CudaError:
            return index
    return None

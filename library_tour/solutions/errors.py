"""Find out which of several launches is the first to fail."""

from __future__ import annotations

from collections.abc import Sequence

import cudart_py as cuda


def first_that_fails(launches: Sequence[cuda.BoundLaunch]) -> int | None:
    """Perform the launches in order; return the index of the first one that fails, or None if all succeed."""
    with cuda.debug():
        for index, launch in enumerate(launches):
            try:
                launch()
            except cuda.CudaError:
                return index
    return None

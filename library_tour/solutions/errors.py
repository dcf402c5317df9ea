"""Find out which of several launches fails."""

from __future__ import annotations

from collections.abc import Sequence

import cudart_py as cuda


def first_that_fails(launches: Sequence[cuda.BoundLaunch]) -> int | None:
    """Launch one after the other; return the place of the first that fails, None if all work."""
    with cuda.debug():
        for place, launch in enumerate(launches):
            try:
                launch()
            except cuda.CudaError:
                return place
    return None

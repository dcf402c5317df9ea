"""Queue a step of a strip so that its edges are sent while its inside is computed.

In the starting code, nothing overlaps: the copies begin after the whole strip is computed.
"""

from __future__ import annotations

from collections.abc import Callable

import cudart_py as cuda

Work = Callable[[cuda.Stream], None]


def take_step(edges: Work, inside: Work, send: Work, compute: cuda.Stream, copies: cuda.Stream) -> None:
    """Queue a step: `edges` and `inside` in the stream `compute`, and `send` in the stream `copies`."""
    compute.wait(copies)
    edges(compute)
    inside(compute)
    copies.wait(compute)
    send(copies)

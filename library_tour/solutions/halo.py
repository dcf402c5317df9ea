"""Queue a step of a strip so that its edges are sent while its interior is computed."""

from __future__ import annotations

from collections.abc import Callable

import cudart_py as cuda

Work = Callable[[cuda.Stream], None]


def take_step(edges: Work, inside: Work, send: Work, compute: cuda.Stream, copies: cuda.Stream) -> None:
    """Queue a step: `edges` and `inside` in the `compute` stream, and `send` in the `copies` stream."""
    # The interior needs no halo, but it is queued after the edges, and so runs after the previous step's copies.
    compute.wait(copies)
    edges(compute)
    copies.wait(compute)
    send(copies)
    inside(compute)

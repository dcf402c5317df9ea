"""Queue a step of a strip so that its edges are sent while its inside is computed."""

from __future__ import annotations

from collections.abc import Callable

import cudart_py as cuda

Work = Callable[[cuda.Stream], None]


def take_step(edges: Work, inside: Work, send: Work, compute: cuda.Stream, copies: cuda.Stream) -> None:
    """Queue a step: `edges` and `inside` in the stream `compute`, and `send` in the stream `copies`."""
    # The inside needs no halo, but it comes after the edges, and so after the halo of the previous step.
    compute.wait(copies)
    edges(compute)
    copies.wait(compute)
    send(copies)
    inside(compute)

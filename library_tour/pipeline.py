"""Pieces that are copied in, computed and copied out: orders to queue them in, and a model of when each runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

STAGES = ("copy in", "kernel", "copy out")
DEPTH, BREADTH = ORDERS = ("depth-first", "breadth-first")

Spans = dict[str, list[tuple[float, float]]]


class Operation(NamedTuple):
    """One stage of a piece, and the number of the stream that it is queued in."""

    stage: str
    piece: int
    stream: int


def issued(order: str, streams: int, pieces: int) -> Iterator[Operation]:
    """Yield the operations in the order in which they are queued. Pieces are assigned to streams round-robin.

    Depth-first queues all stages of a piece before the next piece. Breadth-first takes one piece per stream,
    and queues one stage of all these pieces before the next stage.
    """
    if order == DEPTH:
        yield from (Operation(stage, piece, piece % streams) for piece in range(pieces) for stage in STAGES)
        return
    for first in range(0, pieces, streams):
        turn = range(first, min(first + streams, pieces))
        yield from (Operation(stage, piece, piece % streams) for stage in STAGES for piece in turn)


def modelled(operations: Iterable[Operation], copy_engines: int) -> Spans:
    """Return the times at which each stage is busy, according to a model of the hardware.

    Every operation takes one unit of time. Kernels have one queue. With one copy engine, copies in both directions
    share a queue. With two engines, each direction has its own queue. Each queue executes its operations in the order
    in which they were queued: an operation that must wait for its stream holds up everything queued after it.
    """
    free: dict[str, float] = {}
    reached: dict[int, float] = {}
    marks = []
    for operation in operations:
        engine = operation.stage if copy_engines == 2 or operation.stage == "kernel" else "copies"
        start = max(free.get(engine, 0.0), reached.get(operation.stream, 0.0))
        free[engine] = reached[operation.stream] = start + 1
        marks.append((operation, start, start + 1))
    return spans(marks)


def spans(marks: Iterable[tuple[Operation, float, float]]) -> Spans:
    """Return the spans of each stage; a span begins no earlier than the stage's previous one ends."""
    found: Spans = {stage: [] for stage in STAGES}
    for operation, start, end in sorted(marks, key=lambda mark: mark[2]):
        lane = found[operation.stage]
        lane.append((max(start, lane[-1][1]) if lane else start, end))
    return found

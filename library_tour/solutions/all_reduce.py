"""Copy an array from one worker to all others, in at most the time that it takes to send two such arrays."""

from __future__ import annotations

from collections.abc import Callable

# send(source, target, begin, end) copies the elements [begin, end) of one worker's array to another worker's array.
Send = Callable[[int, int, int, int], None]


def broadcast(send: Send, workers: int, size: int) -> None:
    """Copy the array of worker 0 to all workers by calling send(source, target, begin, end)."""
    ends = [size * number // workers for number in range(workers + 1)]
    # Worker 0 sends each worker its part and keeps the first one.
    for target in range(1, workers):
        send(0, target, *ends[target : target + 2])
    # The parts travel around the ring: each worker passes on the part that it received in the previous step. Nothing
    # is sent to worker 0.
    for step in range(workers - 1):
        for source in range(workers):
            target, part = (source + 1) % workers, (source - step) % workers
            if target:
                send(source, target, *ends[part : part + 2])

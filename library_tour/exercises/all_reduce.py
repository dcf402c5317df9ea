"""Copy an array from one worker to all others, in at most the time that it takes to send two such arrays.

For now, worker 0 sends the whole array to each of the others, whose outgoing links are idle.
"""

from __future__ import annotations

from collections.abc import Callable

# send(source, target, begin, end) copies the elements [begin, end) of one worker's array to another worker's array.
Send = Callable[[int, int, int, int], None]


def broadcast(send: Send, workers: int, size: int) -> None:
    """Copy the array of worker 0 to all workers by calling send(source, target, begin, end)."""
    for target in range(1, workers):
        send(0, target, 0, size)

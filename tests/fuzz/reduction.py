"""Make a kernel smaller while it still shows a difference."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from .kernels import Kernel
from .statements import Node

__all__ = ["reduce"]


def reduce(kernel: Kernel, fails: Callable[[Kernel], bool], seconds: float = 120) -> None:
    """Leave out what a kernel that fails doesn't need for that, as long as the time lasts.

    `fails` says whether the kernel as it is then shows the difference; one that doesn't compile any more doesn't.
    """
    end = time.monotonic() + seconds
    smaller = True
    while smaller:
        smaller = False
        for nodes in list(_lists(kernel)):
            size = max(len(nodes), 1)
            while size:
                for start in range(len(nodes) - size, -1, -size):
                    if time.monotonic() > end:
                        return
                    smaller |= _left_out(nodes, start, size, lambda: fails(kernel))
                size //= 2


def _left_out(nodes: list[Node], start: int, size: int, fails: Callable[[], bool]) -> bool:
    """Leave out some statements of a block if the kernel fails without them; return whether it does."""
    taken = nodes[start : start + size]
    kept = [node for node in taken if node.fixed]
    if len(kept) == len(taken):
        return False
    nodes[start : start + size] = kept
    if fails():
        return True
    nodes[start : start + len(kept)] = taken
    return False


def _lists(kernel: Kernel) -> Iterator[list[Node]]:
    """Yield the blocks of a kernel, those outside before those inside of them."""
    waiting = [kernel.body, kernel.definitions]
    for nodes in waiting:
        yield nodes
        waiting += [node.body for node in nodes if node.body is not None]

"""The latency of the host's memory, by a chain of places that each name the next."""

from __future__ import annotations

import math
import time

import numpy as np

from . import timing
from .stop import Row

# So many bytes are in the host's first-level cache, in others of its caches, and in none of them.
FIRST_LEVEL, OTHERS = 16 << 10, (256 << 10, 16 << 20, 512 << 20)
LINE, STEPS = 64, 2**16
# A step i -> i * A + C passes through 2^k places before it comes back.
A, C = 1664525, 1013904223


def host_latencies() -> list[Row]:
    """Return how many nanoseconds a step takes longer than in the first-level cache; no rows without times.

    The steps are Python's. Their own time is taken off with that of the first-level cache.
    """
    if not timing.available():
        return []
    least = host_step(FIRST_LEVEL)
    return [Row(f"host, {in_words(nbytes)}", {"ns": max(0.0, host_step(nbytes) - least)}) for nbytes in OTHERS]


def host_step(nbytes: int) -> float:
    """Return the nanoseconds of a step through so many bytes, a power of two, with Python's own time."""
    places, words = nbytes // LINE, LINE // 8
    links = np.zeros(places * words, np.int64)
    links[::words] = (np.arange(places) * A + C) % places * words
    chain = links.data  # quicker to index than the array
    best, place = math.inf, 0
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(STEPS):
            place = chain[place]
        best = min(best, time.perf_counter() - begin)
    return 1e9 * best / STEPS


def in_words(nbytes: int) -> str:
    """Return a number of bytes as a text."""
    return f"{nbytes >> 20:,} MiB" if nbytes >= 1 << 20 else f"{nbytes >> 10:,} KiB"

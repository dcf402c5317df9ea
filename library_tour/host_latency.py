"""The latency of host memory, measured by following a chain of indices (pointer chasing)."""

from __future__ import annotations

import math
import time

import numpy as np

from . import timing
from .stop import Row

# Sizes in bytes: one that fits in the host's L1 cache, and larger ones, the last of which exceeds all its caches.
FIRST_LEVEL, OTHERS = 16 << 10, (256 << 10, 16 << 20, 512 << 20)
LINE, STEPS = 64, 2**16
# The step i -> i * A + C modulo 2^k visits all 2^k places before it repeats.
A, C = 1664525, 1013904223


def host_latencies() -> list[Row]:
    """Return how many nanoseconds longer a step takes than in the L1 cache; no rows if nothing is timed.

    The loop runs in Python. Its overhead is subtracted together with the time of the L1 cache.
    """
    if not timing.available():
        return []
    least = host_step(FIRST_LEVEL)
    return [Row(f"host, {in_words(nbytes)}", {"ns": max(0.0, host_step(nbytes) - least)}) for nbytes in OTHERS]


def host_step(nbytes: int) -> float:
    """Return the nanoseconds per step through `nbytes` bytes, a power of two, including Python's overhead."""
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
    """Return a size in bytes as KiB or MiB."""
    return f"{nbytes >> 20:,} MiB" if nbytes >= 1 << 20 else f"{nbytes >> 10:,} KiB"

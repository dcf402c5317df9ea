"""The processors that this process may use, and NumPy's work spread over them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def in_threads(function: Callable[..., Any], *arrays: NDArray[Any]) -> list[Any]:
    """Call a function on parts of the arrays, in as many threads as there are processors; return the results in order.

    The first axis of each array is split into four parts per processor. NumPy releases the GIL while it computes.
    """
    parts = [np.array_split(array, 4 * processors()) for array in arrays]
    with ThreadPoolExecutor(processors()) as pool:
        return list(pool.map(function, *parts))

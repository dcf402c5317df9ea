"""Apply the same steps to one batch after another.

The results are correct, but the host launches every step again for each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

import cudart_py as cuda

STEPS = 20


def process(
    batches: Sequence[NDArray[Any]],
    array: cuda.DeviceArray,
    pinned: NDArray[Any],
    step: Callable[[], object],
    stream: cuda.Stream,
) -> list[NDArray[Any]]:
    """Return each batch after all steps; `step` queues one step on `array` in `stream`."""
    results = []
    for batch in batches:
        pinned[:] = batch
        cuda.memcpy(array, pinned, stream=stream)
        for _ in range(STEPS):
            step()
        cuda.memcpy(pinned, array, stream=stream)
        stream.synchronize()
        results.append(pinned.copy())
    return results

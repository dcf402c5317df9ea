"""Large inputs, generated quickly by repeating one block, from which NumPy computes the expected sums and counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

import cudart_py as cuda

# Elements in a block: many more than any kernel processes at once.
INPUT_BLOCK = 2**22

Array = NDArray[Any]


def repeated(block: Array, size: int) -> cuda.DeviceArray:
    """Return a device array of `size` elements that repeats the block."""
    array = cuda.empty(size, block.dtype)
    done = min(block.size, size)
    array[:done].copy_from(block[:done])
    while done < size:
        length = min(done, size - done)
        cuda.memcpy(array[done : done + length], array[:length])
        done += length
    return array


def repeat(block: Array, out: Array) -> None:
    """Fill a host array by repeating the block."""
    for start in range(0, out.size, block.size):
        part = out[start : start + block.size]
        part[:] = block[: part.size]


def over_all(figure: Callable[[Array], Any], block: Array, size: int) -> Any:
    """Return an additive figure, such as a sum or counts, over the first `size` rows of the repeated block.

    A row of a one-dimensional block is one element, as in `repeated`.
    """
    times, rest = divmod(size, len(block))
    return times * figure(block) + figure(block[:rest])

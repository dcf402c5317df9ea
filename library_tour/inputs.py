"""Large inputs in little time: a block of numbers again and again, whose sums and counts NumPy knows from one block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

import cudart_py as cuda

# Numbers in a block: many more than any kernel takes at once.
INPUT_BLOCK = 2**22

Array = NDArray[Any]


def repeated(block: Array, size: int) -> cuda.DeviceArray:
    """Return `size` numbers on the device, the block's again and again."""
    array = cuda.empty(size, block.dtype)
    done = min(block.size, size)
    array[:done].copy_from(block[:done])
    while done < size:
        length = min(done, size - done)
        cuda.memcpy(array[done : done + length], array[:length])
        done += length
    return array


def repeat(block: Array, out: Array) -> None:
    """Fill an array of the host with the block's numbers again and again."""
    for start in range(0, out.size, block.size):
        part = out[start : start + block.size]
        part[:] = block[: part.size]


def over_all(figure: Callable[[Array], Any], block: Array, size: int) -> Any:
    """Return a figure that adds up, such as a sum or counts, of the first `size` rows of the block repeated.

    A row of a block of one dimension is a number, as `repeated` returns them.
    """
    times, rest = divmod(size, len(block))
    return times * figure(block) + figure(block[:rest])

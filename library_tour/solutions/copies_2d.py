"""Swap the diagonally opposite quarters of a matrix, as numpy.fft.fftshift does."""

from __future__ import annotations

import cudart_py as cuda


def halves(length: int) -> list[tuple[slice, slice]]:
    """Return the slice of each half of an axis, in the target and in the source."""
    middle = length // 2
    return [(slice(0, middle), slice(length - middle, length)), (slice(middle, length), slice(0, length - middle))]


def exchange_quarters(target: cuda.DeviceArray, source: cuda.DeviceArray, stream: cuda.Stream) -> None:
    """Copy each quarter of the source to the opposite quarter of the target."""
    for to_rows, from_rows in halves(source.shape[0]):
        for to_columns, from_columns in halves(source.shape[1]):
            cuda.memcpy2d(target[to_rows, to_columns], source[from_rows, from_columns], stream=stream)

"""Swap the diagonally opposite quarters of a matrix, as numpy.fft.fftshift does.

The result is right, but it takes two copies per row.
"""

from __future__ import annotations

import cudart_py as cuda


def exchange_quarters(target: cuda.DeviceArray, source: cuda.DeviceArray, stream: cuda.Stream) -> None:
    """Copy each quarter of the source to the opposite quarter of the target."""
    rows, columns = source.shape
    middle = columns // 2
    for row in range(rows):
        to = (row + rows // 2) % rows
        cuda.memcpy(target[to, middle:], source[row, : columns - middle], stream=stream)
        cuda.memcpy(target[to, :middle], source[row, columns - middle :], stream=stream)

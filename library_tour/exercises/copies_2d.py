"""Exchange the quarters of a matrix across its middle, as numpy.fft.fftshift does.

The result is right, but there are two copies for each row.
"""

from __future__ import annotations

import cudart_py as cuda


def exchange_quarters(target: cuda.DeviceArray, source: cuda.DeviceArray, stream: cuda.Stream) -> None:
    """Copy the source's quarters to the opposite ones of the target."""
    rows, columns = source.shape
    middle = columns // 2
    for row in range(rows):
        to = (row + rows // 2) % rows
        cuda.memcpy(target[to, middle:], source[row, : columns - middle], stream=stream)
        cuda.memcpy(target[to, :middle], source[row, columns - middle :], stream=stream)

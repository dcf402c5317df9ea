"""Swap the contents of two arrays on two devices, with one stream per device and copies through spare arrays.

For now, nothing orders the work of the two streams.
"""

from __future__ import annotations

from collections.abc import Sequence

import cudart_py as cuda


def swap(
    arrays: Sequence[cuda.DeviceArray], spares: Sequence[cuda.DeviceArray], streams: Sequence[cuda.Stream]
) -> None:
    """Queue the swap of two arrays; each has a spare array and a stream on its own device."""
    for mine, other in ((0, 1), (1, 0)):
        cuda.memcpy_peer(spares[mine], arrays[other], stream=streams[mine])
    for array, spare, stream in zip(arrays, spares, streams, strict=True):
        cuda.memcpy(array, spare, stream=stream)

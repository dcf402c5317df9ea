"""Swap the contents of two arrays on two devices, with one stream per device and copies through spare arrays."""

from __future__ import annotations

from collections.abc import Sequence

import cudart_py as cuda


def swap(
    arrays: Sequence[cuda.DeviceArray], spares: Sequence[cuda.DeviceArray], streams: Sequence[cuda.Stream]
) -> None:
    """Queue the swap of two arrays; each has a spare array and a stream on its own device."""
    written = [stream.record() for stream in streams]
    for mine, other in ((0, 1), (1, 0)):
        streams[mine].wait(written[other])
        cuda.memcpy_peer(spares[mine], arrays[other], stream=streams[mine])
    # Neither array may be overwritten before the other device has read it.
    read = [stream.record() for stream in streams]
    for mine, other in ((0, 1), (1, 0)):
        streams[mine].wait(read[other])
        cuda.memcpy(arrays[mine], spares[mine], stream=streams[mine])

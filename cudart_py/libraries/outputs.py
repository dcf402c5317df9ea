"""Outputs of calls: `out` if the caller gives it, or a new array."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import arguments
from ..context.current import activated
from ..context.device import Device
from ..memory.array import DeviceArray
from ..memory.creation import empty
from ..streams.stream import Stream
from . import views


def output_for(
    call: str,
    out: DeviceArray | None,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    place: tuple[Stream, Device],
    *,
    like: str = "like 'a'",
    reason: str = "",
) -> DeviceArray:
    """Return a new array on a stream and its device, or `out` after a check of its device, dtype and shape.

    Raises TypeError or ValueError that name `out`: `like` and `reason` are the reasons for the dtype and the shape in
    the error messages. Other arguments must have been checked before, so that no array is allocated for a call that is
    refused.
    """
    stream, device = place
    if out is None:
        with activated(device):
            return empty(shape, dtype, stream=stream)
    views.check_place(call, device, out=out)
    views.require_dtype(call, "out", out, dtype, like)
    arguments.same_shape(call, "out", out, shape, reason)
    return out

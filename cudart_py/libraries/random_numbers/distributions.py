"""Distributions that cuRAND does not generate: passes over its uniform numbers, on the device or on the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...context.device import Device
from ...memory.array import DeviceArray
from ...streams.stream import Stream
from ..device_code import kernel_of

SOURCE = Path(__file__).parent / "device_code" / "distributions.cu"
BLOCK = 256
_REAL = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}


def make_exponential(numbers: DeviceArray | NDArray[Any], device: Device | None, stream: Stream, scale: float) -> None:
    """Make uniform numbers in (0, 1] exponentially distributed with the mean `scale`."""
    if isinstance(numbers, np.ndarray):
        numbers[...] = 0 - numbers.dtype.type(scale) * np.log(numbers)
    else:
        _queue("make_exponential", numbers, device, stream, scale)


def stretch(
    numbers: DeviceArray | NDArray[Any], device: Device | None, stream: Stream, low: float, high: float
) -> None:
    """Make uniform numbers in (0, 1] uniform in (low, high]."""
    if isinstance(numbers, np.ndarray):
        numbers[...] = numbers.dtype.type(low) + numbers.dtype.type(high - low) * numbers
    else:
        _queue("stretch", numbers, device, stream, low, high)


def _queue(name: str, numbers: DeviceArray, device: Device | None, stream: Stream, *parameters: float) -> None:
    """Queue a kernel for a contiguous array; the device must be current."""
    assert device is not None  # since host generators fill NumPy arrays
    kernel = kernel_of(SOURCE, f"{name}<{_REAL[numbers.dtype]}>", device)
    kernel[-(-numbers.size // BLOCK), BLOCK, 0, stream](numbers, numbers.size, *parameters)

"""Passes over the elements of an array that cuFFT does not do: scaling, and conversion from real to complex."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ... import arguments
from ...context.device import Device
from ...context.resetting import at_reset
from ...launch.kernel import Kernel
from ...launch.loading import compile
from ...pointer import Pointer
from ...streams.stream import Stream
from ..dtypes import complex32

SOURCE = Path(__file__).parent / "device_code" / "elements.cu"
BLOCK = 256
MOST_DIMENSIONS = 8
# The C++ types of the real components, keyed by the dtype of the elements.
_REAL = {
    np.dtype(np.float16): "Half",
    complex32: "Half",
    np.dtype(np.float32): "float",
    np.dtype(np.complex64): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.complex128): "double",
}
# `Layout` in elements.cu.
_LAYOUT = np.dtype(
    [("sizes", np.int64, MOST_DIMENSIONS), ("steps", np.int64, MOST_DIMENSIONS), ("dimensions", np.int32)], align=True
)


class Pass(NamedTuple):
    """A kernel that handles `size` elements, and its other arguments."""

    kernel: Kernel
    size: int
    layouts: tuple[Any, ...]
    factor: float = 1.0

    def queue(self, stream: Stream, *addresses: int) -> None:
        """Queue the kernel for one array that is scaled, or for the real and the complex array of a conversion."""
        grid = -(-self.size // BLOCK)
        if len(addresses) == 1:
            self.kernel[grid, BLOCK, 0, stream](Pointer(addresses[0]), self.layouts[0], self.size, self.factor)
        else:
            real, target = map(Pointer, addresses)
            self.kernel[grid, BLOCK, 0, stream](real, self.layouts[0], target, self.layouts[1], self.size)


def scaling(
    call: str, device: Device, shape: Sequence[int], strides: Sequence[int], dtype: np.dtype[Any], factor: float
) -> Pass:
    """Return a pass that multiplies each element of `out` by a real factor. The device must be current."""
    component = dtype.itemsize // 2 if dtype.kind in "cV" else dtype.itemsize
    if component != dtype.itemsize:  # each complex element is two real ones
        shape, strides = (*shape, 2), (*strides, component)
    layout = _layout(call, "out", shape, [step // component for step in strides])
    return Pass(_kernel(device, f"scale<{_REAL[dtype]}>"), math.prod(shape), (layout,), factor)


def conversion(
    call: str,
    device: Device,
    shape: Sequence[int],
    strides: tuple[Sequence[int], Sequence[int]],
    dtypes: tuple[np.dtype[Any], np.dtype[Any]],
) -> Pass:
    """Return a pass that copies real elements to the complex array `out`. The device must be current."""
    layouts = tuple(
        _layout(call, name, shape, [step // dtype.itemsize for step in steps])
        for name, steps, dtype in zip(("x", "out"), strides, dtypes, strict=True)
    )
    return Pass(_kernel(device, f"make_complex<{_REAL[dtypes[0]]}>"), math.prod(shape), layouts)


def _layout(call: str, name: str, shape: Sequence[int], steps: Sequence[int]) -> Any:
    """Return the structure `Layout` for an array, after merging dimensions that are contiguous."""
    sizes, distances = [1], [1]
    for size, step in zip(reversed(shape), reversed(steps), strict=True):
        if size == 1:
            continue
        if sizes[-1] == 1:
            sizes[-1], distances[-1] = size, step
        elif step == sizes[-1] * distances[-1]:
            sizes[-1] *= size
        else:
            sizes.append(size)
            distances.append(step)
    if len(sizes) > MOST_DIMENSIONS:
        rule = f"have at most {MOST_DIMENSIONS} dimensions with gaps between them"
        raise arguments.unusable(call, name, rule, len(sizes), "pass a contiguous array")
    layout = np.zeros((), _LAYOUT)
    layout["dimensions"] = len(sizes)
    layout["sizes"][: len(sizes)] = sizes[::-1]
    layout["steps"][: len(sizes)] = distances[::-1]
    return layout[()]


@functools.cache
def _kernel(device: Device, name: str) -> Kernel:
    # Cached here, since even a hit in the compile cache reads the source and loads the image. The device is current.
    return compile(SOURCE, names=[name])[name]


at_reset(_kernel.cache_clear)

"""Passes over elements that cuFFT does not do: scaling, copies between layouts, and from real to complex elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...base import arguments
from ...base.pointer import Pointer
from ...context.device import Device
from ...launch.kernel import Kernel
from ...streams.stream import Stream
from ..device_code import kernel_of
from ..dtypes import complex32
from .callbacks import Callback, address_of, calling_kernel

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
# `Layout` in layout.cuh.
_LAYOUT = np.dtype(
    [("sizes", np.int64, MOST_DIMENSIONS), ("steps", np.int64, MOST_DIMENSIONS), ("dimensions", np.int32)], align=True
)


class Pass(NamedTuple):
    """A kernel that reads `size` elements of one array and writes those of another, or of the same one.

    `rest` are its last arguments.
    """

    kernel: Kernel
    size: int
    layouts: tuple[Any, Any]
    rest: tuple[Any, ...] = ()

    def queue(self, stream: Stream, source: int, target: int) -> None:
        """Queue the kernel for arrays at two addresses."""
        launch = self.kernel[-(-self.size // BLOCK), BLOCK, 0, stream]
        launch(Pointer(source), self.layouts[0], Pointer(target), self.layouts[1], self.size, *self.rest)


def movement(
    call: str,
    device: Device,
    shape: Sequence[int],
    strides: tuple[Sequence[int], Sequence[int]],
    dtype: np.dtype[Any],
    factor: float = 1.0,
) -> Pass:
    """Return a pass that copies elements, multiplied by a real factor, from one layout to another.

    The strides of both arrays are in bytes. The device must be current.
    """
    component = dtype.itemsize // 2 if dtype.kind in "cV" else dtype.itemsize
    if component != dtype.itemsize:  # each complex element consists of two real ones
        shape, strides = (*shape, 2), ((*strides[0], component), (*strides[1], component))
    layouts = [_layout(call, shape, [step // component for step in steps]) for steps in strides]
    kernel = kernel_of(SOURCE, f"move<{_REAL[dtype]}>", device)
    return Pass(kernel, math.prod(shape), (layouts[0], layouts[1]), (factor,))


def conversion(
    call: str,
    device: Device,
    shape: Sequence[int],
    strides: tuple[Sequence[int], Sequence[int]],
    dtype: np.dtype[Any],
) -> Pass:
    """Return a pass that copies real elements of a dtype to a complex array of the same precision."""
    real, pairs = (
        [step // size for step in steps]
        for steps, size in zip(strides, (dtype.itemsize, 2 * dtype.itemsize), strict=True)
    )
    kernel = kernel_of(SOURCE, f"make_complex<{_REAL[dtype]}>", device)
    return Pass(kernel, math.prod(shape), (_layout(call, shape, real), _layout(call, shape, pairs)))


def calling(
    call: str,
    callback: Callback,
    shape: Sequence[int],
    strides: tuple[Sequence[int], Sequence[int]],
    dtype: np.dtype[Any],
    *,
    loads: bool,
) -> Pass:
    """Return a pass that calls a callback for each element. The device must be current."""
    layouts = [_layout(call, shape, [step // dtype.itemsize for step in steps]) for steps in strides]
    kernel = calling_kernel(callback, dtype, loads=loads)
    return Pass(kernel, math.prod(shape), (layouts[0], layouts[1]), (Pointer(address_of(callback), callback.data),))


def _layout(call: str, shape: Sequence[int], steps: Sequence[int]) -> Any:
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
        raise arguments.unusable(call, "x", rule, len(sizes), "pass contiguous arrays")
    layout = np.zeros((), _LAYOUT)
    layout["dimensions"] = len(sizes)
    layout["sizes"][: len(sizes)] = sizes[::-1]
    layout["steps"][: len(sizes)] = distances[::-1]
    return layout[()]

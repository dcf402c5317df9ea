"""Operands: the device memory that a library call reads or writes, given by address, shape, strides and dtype."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from cuda.bindings.driver import CUresult
from numpy.typing import NDArray

from ...checks.findings import mode, put_finding
from ...checks.races import concurrency
from ...state import memory
from ...state.contexts import Context
from ...state.queue.operations import FaultError


class Operand:
    """An array of elements in device memory; strides are in bytes."""

    __slots__ = ("address", "dtype", "shape", "strides")

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.address = address
        self.shape = shape
        self.strides = strides
        self.dtype = dtype

    @property
    def extent(self) -> int:
        """The size in bytes from the first element to the end of the last."""
        if not math.prod(self.shape):
            return 0
        steps = zip(self.shape, self.strides, strict=True)
        return sum((size - 1) * stride for size, stride in steps) + self.dtype.itemsize

    @property
    def elements(self) -> NDArray[Any]:
        """The elements themselves, which a call may read and write while it runs."""
        if not self.extent:  # an empty array has no memory, and its address may be 0
            return np.empty(self.shape, self.dtype)
        return memory.space.window(self.address, self.shape, self.strides, self.dtype)

    def rows(self) -> Iterator[tuple[int, int]]:
        """Yield the address and the size in bytes of each contiguous piece."""
        size = self.dtype.itemsize
        outer = []
        for stride, count in sorted(zip(self.strides, self.shape, strict=True)):
            if stride == size or count == 1:
                size *= count
            else:
                outer.append((stride, count))
        starts = np.array([self.address])
        for stride, count in outer:
            starts = (np.arange(count)[:, None] * stride + starts).ravel()
        return ((int(start), size) for start in starts)

    def require(self, context: Context, what: str) -> None:
        """Raise the fault that a kernel would, if the memory is not allocated or the device can't access it."""
        allocation = memory.live.find(self.address)
        if allocation is None or self.address + self.extent > allocation.end or not context.reaches(allocation):
            place = memory.describe(self.address, context)
            raise FaultError(
                CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, f"{what} touches {self.extent} bytes at {self.address:#x}: {place}"
            )

    def check_read(self, what: str) -> None:
        """Report a race with other work, and elements that have never been written."""
        concurrency.touch(self.rows(), what, writes=False)
        allocation = memory.live.find(self.address)
        if mode() == "off" or allocation is None or allocation.on_host:
            return
        shadow = allocation.shadow
        shadow.look_through()
        if shadow.initialised:
            return
        history = shadow.history
        for address, size in self.rows():
            start = address - shadow.first
            missing = history.unwritten(start, start + size)
            if missing is not None:
                place = shadow.first + missing
                put_finding(
                    "uninitialised",
                    f"{what} reads an uninitialised value at {place:#x} ({memory.describe(place)}), where nothing has "
                    f"been written{memory.unordered_writer(place)}",
                )
                return

    def check_write(self, what: str) -> None:
        """Report a race with other work."""
        concurrency.touch(self.rows(), what, writes=True)

    def note_written(self) -> None:
        """Record that every element has been written."""
        allocation = memory.live.find(self.address)
        if allocation is None or allocation.on_host or allocation.shadow.initialised:
            return
        for address, size in self.rows():
            allocation.shadow.fill(address, size)


def array(address: int, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None) -> Operand:
    """Return an operand in C order, or with the given strides in elements."""
    kind = np.dtype(dtype)
    if strides is None:
        strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return Operand(address, shape, tuple(stride * kind.itemsize for stride in strides), kind)


def vector(address: int, size: int, dtype: Any, step: int = 1) -> Operand:
    """Return a vector with a stride of `step` elements."""
    return array(address, (size,), dtype, (step,))


def columns(address: int, rows: int, count: int, leading: int, dtype: Any) -> Operand:
    """Return a column-major matrix; `leading` is the distance in elements from one column to the next."""
    return array(address, (rows, count), dtype, (1, leading))

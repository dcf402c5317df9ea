"""Batches of matrices in software, given by an array of their addresses in device memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...state import memory
from ..common.calls import queue
from ..common.operands import Operand, array, vector


class Batch:
    """Column-major matrices, or vectors with one column, whose addresses are in device memory.

    The addresses are read when the call runs, because earlier work may write them.
    """

    def __init__(self, addresses: int, count: int, rows: int, columns: int, leading: int, dtype: Any) -> None:
        self.addresses = vector(int(addresses), count, np.uint64)
        self._layout = rows, columns, leading, np.dtype(dtype)
        self._operands: list[Operand] = []

    def resolve(self) -> list[Operand]:
        """Read the addresses; evenly spaced matrices of one allocation become one operand."""
        rows, columns, leading, dtype = self._layout
        places = self.addresses.elements.astype(np.int64)
        steps = np.unique(np.diff(places))
        even = len(steps) == 1 and steps[0] > 0 and steps[0] % dtype.itemsize == 0
        if even:
            strides = int(steps[0]) // dtype.itemsize, 1, leading
            whole = array(int(places[0]), (len(places), rows, columns), dtype, strides)
            allocation = memory.live.find(whole.address)
            if allocation is not None and whole.address + whole.extent <= allocation.end:
                self._operands = [whole]
                return self._operands
        self._operands = [array(int(place), (1, rows, columns), dtype, (0, 1, leading)) for place in places]
        return self._operands

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for operand in self._operands:
            yield from operand.elements


def queue_batches(
    stream: int,
    name: str,
    compute: Callable[[], None],
    *,
    reads: tuple[Batch, ...],
    writes: tuple[Batch, ...] = (),
    inputs: tuple[Operand, ...] = (),
    outputs: tuple[Operand, ...] = (),
) -> None:
    """Queue a call that reads and writes batches, and other operands (`inputs`, `outputs`) in device memory.

    A batch in `writes` that is not in `reads` is only written.
    """
    batches = dict.fromkeys((*reads, *writes))

    def resolve() -> tuple[list[Operand], list[Operand]]:
        found = {batch: batch.resolve() for batch in batches}
        read = [operand for batch in reads for operand in found[batch]]
        return read, [operand for batch in writes for operand in found[batch]]

    addresses = [batch.addresses for batch in batches]
    queue(stream, name, compute, reads=[*addresses, *inputs], writes=outputs, indirect=resolve)

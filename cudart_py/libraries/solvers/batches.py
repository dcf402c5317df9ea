"""Batches of matrices for cuBLAS's batched functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...base import arguments
from ...context.device import current_device
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..device_code import kernel_of
from .layout import SOURCE, THREADS


def check_batch(call: str, name: str, array: DeviceArray, *, square: bool) -> views.Matrix:
    """Return the layout of a batch of matrices; raise ValueError if they have no elements or `square` isn't met."""
    view = views.matrix(call, name, array, batched=True)
    if not view.rows or not view.columns:
        raise arguments.unusable(call, name, "have at least one row and one column", f"the shape {array.shape}")
    if square and view.rows != view.columns:
        raise arguments.unusable(call, name, "have square matrices", f"the shape {array.shape}")
    return view


def addresses_of(batch: DeviceArray, stream: Stream) -> DeviceArray:
    """Return a uint64 array of the addresses of the items of a contiguous batch, which a kernel writes."""
    count = batch.shape[0]
    addresses = empty(count, np.uint64, stream=stream)
    if count:
        kernel = kernel_of(SOURCE, "address_matrices", current_device())
        kernel[-(-count // THREADS), THREADS, 0, stream](addresses, batch.pointer, batch.nbytes // count, count)
    return addresses


def one_by_one(
    batch: DeviceArray, function: Callable[[DeviceArray], tuple[DeviceArray, ...]], stream: Stream
) -> tuple[DeviceArray, ...]:
    """Apply a function to each matrix of a batch with at least one, and return its results as batches."""
    batches: tuple[DeviceArray, ...] = ()
    for index in range(batch.shape[0]):
        results = function(batch[index])
        if not batches:
            batches = tuple(empty((batch.shape[0], *each.shape), each.dtype, stream=stream) for each in results)
        for items, result in zip(batches, results, strict=True):
            items[index].copy_from(result, stream=stream)
    return batches

"""Copy between host and device in every direction, with every kind of host memory.

On the software driver, which checks and does not time:

    $ library-tour run copies
    copies: Copies between host and device, by kind of host memory
    size 4,194,309: bytes to copy
    limit: the link to the host
                              check
    ───────────────────────────────
    pageable to device        right
    pinned to device          right
    write-combined to device  right
    device to pageable        right
    device to pinned          right
    device to device          right
    host to host              right
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import compare, on_host, poison
from ..limits import link_limit
from ..stop import Curve, Result, Row, Size
from ..variants import Variant, measure

TITLE = "Copies between host and device, by kind of host memory"
SIZE = Size("bytes to copy", full=2**28 + 5, small=2**22 + 5)

Array = cuda.DeviceArray | NDArray[np.uint8]
Ways = dict[str, tuple[Array, Array]]


def make_ways(data: NDArray[np.uint8]) -> tuple[Ways, Ways]:
    """Return the target and the source of each copy: those over the link to the host, and those within one memory."""
    pinned, pinned_target = (cuda.pinned_empty(data.shape, data.dtype) for _ in range(2))
    combined = cuda.pinned_empty(data.shape, data.dtype, write_combined=True)
    pinned[:] = combined[:] = data
    on_device, target = cuda.to_device(data), cuda.empty_like(data)
    link: Ways = {
        "pageable to device": (target, data),
        "pinned to device": (target, pinned),
        "write-combined to device": (target, combined),
        "device to pageable": (np.empty_like(data), on_device),
        "device to pinned": (pinned_target, on_device),
    }
    return link, {"device to device": (target, on_device), "host to host": (np.empty_like(data), data)}


def run(device: cuda.Device, size: int) -> Result:
    """Check every kind of copy, synchronous and in a stream; time the copy, and how soon its call returns."""
    data = np.random.default_rng().integers(0, 256, size, np.uint8)
    link, beside = make_ways(data)
    ways = link | beside

    checks = []
    for name, (target, source) in ways.items():
        poison(target)
        cuda.memcpy(target, source, stream=cuda.legacy_default)
        cuda.legacy_default.synchronize()
        checks.append(compare(f"{name} in a stream arrives", on_host(target), data))

    def variants(some: Ways, nbytes: int) -> list[Variant]:
        return [
            Variant(
                name=name, launch=partial(cuda.memcpy, *way), output=way[0], expected=data, amount=nbytes,
                timed=partial(cuda.memcpy, *way, stream=cuda.legacy_default),
            )
            for name, way in some.items()
        ]  # fmt: skip  # rows of a table

    limit = link_limit(size)
    rows = measure(variants(link, size), limit) + measure(variants(beside, 2 * size), None)
    if not timing.available():
        return Result(rows, limit, checks)
    return Result([with_call(row, *ways[row.name]) for row in rows], limit, checks, [bandwidths(link, size)])


def with_call(row: Row, target: Array, source: Array) -> Row:
    """Return the row with the time until the call of a copy in a stream returns; with pinned memory that is at once."""
    call = timing.host_ms(partial(cuda.memcpy, target, source, stream=cuda.legacy_default), wait=False)
    return replace(row, values={**row.values, "call ms": call})


def bandwidths(ways: Ways, size: int) -> Curve:
    """Measure the bandwidth of synchronous copies against their size."""
    lengths = [*(4**power for power in range(5, 20) if 2 * 4**power < size), size]
    lines = {
        name: [
            (length, 1e-6 * length / timing.waiting_ms(partial(cuda.memcpy, target[:length], source[:length])))
            for length in lengths
        ]
        for name, (target, source) in ways.items()
    }
    return Curve("bandwidth", "bytes", "GB/s", lines, logarithmic="x")

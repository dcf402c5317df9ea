"""Copy a window of a matrix. The rows of a window are not contiguous in memory.

On the simulator, which checks results but does not measure time:

    $ library-tour run copies_2d
    copies_2d: 2-D copies: one call for a window of a matrix
    size 1,024: rows and columns of the matrix
                                calls  check
    ────────────────────────────────────────
    host to device, row by row    767  right
    host to device                  1  right
    device to host                  1  right
    both ways at once               2  right
    device to device                1  right
    memset of the window            1  right
    When the call returns, the copy is
                      memcpy2d  in a stream  check
    ──────────────────────────────────────────────
    host to device    done      queued       right
    device to host    done      queued       right
    device to device  queued    queued       right
    The rows of a window are one pitch apart. memcpy2d takes the pitch from the
    arrays' strides and copies all rows in one call. In a stream
    (cudaMemcpy2DAsync), a copy to or from pinned memory is only queued, so copies
    in two streams can use both directions of the link at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import compare, on_host, on_return, poison
from ..limits import link_limit
from ..stop import Check, Result, Row, Size
from ..variants import Variant, measure

TITLE = "2-D copies: one call for a window of a matrix"
SIZE = Size("rows and columns of the matrix", full=8192, small=1024, least=4)
OUTSIDE = -1  # the value of a poisoned int32
FILL = 7

Array = cuda.DeviceArray | NDArray[np.int32]


class Way(NamedTuple):
    """A way to copy or fill windows: `calls` driver calls write `windows` windows, the last of them in `output`."""

    launch: Callable[[], object]
    output: Array
    expected: NDArray[np.int32]
    calls: int = 1
    windows: int = 1


def run(device: cuda.Device, size: int) -> Result:
    """Check that the window is right and that nothing outside it has changed; then time each variant."""
    host, host_target = (cuda.pinned_empty((size, size), np.int32) for _ in range(2))
    host[:] = np.random.default_rng().integers(0, 2**31, host.shape, np.int32)
    source, target = (cuda.empty_pitched(host.shape, host.dtype) for _ in range(2))
    source.copy_from(host)
    rows, columns = range(size // 4, size - 1), slice(1, size // 2)
    window = slice(rows.start, rows.stop), columns

    copied, filled = (np.full_like(host, OUTSIDE) for _ in range(2))
    copied[window], filled[window] = host[window], FILL

    def row_by_row() -> None:
        for row in rows:
            cuda.memcpy(target[row, columns], host[row, columns], stream=cuda.legacy_default)
        cuda.legacy_default.synchronize()

    up, down = cuda.Stream(), cuda.Stream()

    def both_ways() -> None:
        cuda.memcpy2d(target[window], host[window], stream=up)
        cuda.memcpy2d(host_target[window], source[window], stream=down)
        up.synchronize()
        down.synchronize()

    to_device, to_host, within = (
        partial(cuda.memcpy2d, to[window], of[window])
        for to, of in ((target, host), (host_target, source), (target, source))
    )
    over_the_link = {
        "host to device, row by row": Way(row_by_row, target, copied, len(rows)),
        "host to device": Way(to_device, target, copied),
        "device to host": Way(to_host, host_target, copied),
        "both ways at once": Way(both_ways, host_target, copied, 2, 2),
    }
    on_the_device = {
        "device to device": Way(within, target, copied),
        "memset of the window": Way(partial(cuda.memset, target[window], FILL), target, filled),
    }

    def work(way: Way, to_or_from_host: bool) -> dict[str, float]:
        nbytes = way.windows * host[window].nbytes
        over_link = nbytes if to_or_from_host else 0
        return {"calls": way.calls, "bytes per call": nbytes // way.calls, "bytes over the link": over_link}

    def variants(ways: Mapping[str, Way]) -> list[Variant]:
        return [
            Variant(
                name=name, launch=way.launch, output=way.output, expected=way.expected,
                amount=way.windows * host[window].nbytes, columns={"calls": way.calls},
                work=work(way, ways is over_the_link),
            )
            for name, way in ways.items()
        ]  # fmt: skip  # rows of a table

    limit = link_limit(host[window].nbytes)
    found = measure(variants(over_the_link), limit) + measure(variants(on_the_device), None)
    poison(target)
    both_ways()
    checks = [compare("both ways at once: the copy to the device arrives", on_host(target), copied)]
    calls = {"host to device": to_device, "device to host": to_host, "device to device": within}
    tables = {"When the call returns, the copy is": [returned(name, call) for name, call in calls.items()]}
    notes = [
        "The rows of a window are one pitch apart. memcpy2d takes the pitch from the arrays' strides and copies all "
        "rows in one call. In a stream (cudaMemcpy2DAsync), a copy to or from pinned memory is only queued, so copies "
        "in two streams can use both directions of the link at the same time.",
    ]
    return Result(found, limit, checks, tables=tables, notes=notes)


def returned(name: str, copy: Callable[..., object]) -> Row:
    """Return a row that says whether a copy is done or only queued when its call returns, without and with a stream."""
    alone, in_stream = on_return(copy), on_return(partial(copy, stream=cuda.legacy_default))
    check = Check(f"{name}: done on return without a stream", alone == "done" or name == "device to device")
    return Row(name, {"memcpy2d": alone, "in a stream": in_stream}, check)

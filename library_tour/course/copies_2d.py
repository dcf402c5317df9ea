"""Copy a window of a larger matrix: its rows do not follow one another in memory.

On the software driver, which checks and does not time:

    $ library-tour run copies_2d
    copies_2d: 2-D copies and fills of a window of a matrix
    size 1,024: rows and columns of the matrix
    limit: the link to the host
                                calls  check
    ────────────────────────────────────────
    host to device, row by row    767  right
    host to device                  1  right
    device to host                  1  right
    device to device                1  right
    memset of the window            1  right
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..limits import link_limit
from ..stop import Result, Size
from ..variants import Variant, measure

TITLE = "2-D copies and fills of a window of a matrix"
SIZE = Size("rows and columns of the matrix", full=8192, small=1024, least=4)
OUTSIDE = -1  # what a poisoned int32 is
FILL = 7

Array = cuda.DeviceArray | NDArray[np.int32]
Ways = dict[str, tuple[Callable[[], object], Array, NDArray[np.int32], int]]


def run(device: cuda.Device, size: int) -> Result:
    """Check that the window is right and that nothing outside of it changed, then time."""
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

    # For each way: the call, the array it writes, its expected content, and the number of driver calls.
    over_the_link: Ways = {
        "host to device, row by row": (row_by_row, target, copied, len(rows)),
        "host to device": (partial(cuda.memcpy2d, target[window], host[window]), target, copied, 1),
        "device to host": (partial(cuda.memcpy2d, host_target[window], source[window]), host_target, copied, 1),
    }
    on_the_device: Ways = {
        "device to device": (partial(cuda.memcpy2d, target[window], source[window]), target, copied, 1),
        "memset of the window": (partial(cuda.memset, target[window], FILL), target, filled, 1),
    }

    def variants(ways: Ways) -> list[Variant]:
        return [
            Variant(
                name=name, launch=launch, output=output, expected=expected,
                amount=host[window].nbytes, columns={"calls": calls},
            )
            for name, (launch, output, expected, calls) in ways.items()
        ]  # fmt: skip  # rows of a table

    limit = link_limit(host[window].nbytes)
    return Result(measure(variants(over_the_link), limit) + measure(variants(on_the_device), None), limit)

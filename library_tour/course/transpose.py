"""Transpose a matrix: coalesced on both sides by way of shared memory.

On the software driver, which checks and does not time:

    $ library-tour run transpose
    transpose: Coalesced on both sides, by way of shared memory
    size 1,024: rows and columns of the matrix
    limit: copy bandwidth
                         course GB/s  check
    ───────────────────────────────────────
    naive                         35  right
    tile                          66  right
    tile, padded by one          165  right
    copy through a tile          169  right
    plain copy                   160  right
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..device_code import blocks_for, load
from ..stop import Result, Size
from ..timing import copy_limit
from ..variants import Variant, measure

TITLE = "Coalesced on both sides, by way of shared memory"
SIZE = Size("rows and columns of the matrix", full=16384, small=1024, least=2)
TILE = 32
BLOCK = (TILE, 8)
# Kernel, whether it transposes, and the GB/s that the course measured.
VARIANTS = {
    "naive": ("transpose_naive", True, 35),
    "tile": ("transpose_tile<0>", True, 66),
    "tile, padded by one": ("transpose_tile<1>", True, 165),
    "copy through a tile": ("copy_tile", False, 169),
    "plain copy": ("copy_plain", False, 160),
}

Floats = NDArray[np.float32]


def reference(matrix: Floats) -> Floats:
    """Return the transpose, row by row."""
    return np.ascontiguousarray(matrix.T)


def run(device: cuda.Device, size: int) -> Result:
    """Check every variant on a matrix that is neither square nor made of whole tiles; time a square one."""
    matrix = np.random.default_rng().random((size - 1, size + 1), np.float32)
    source, target = cuda.zeros(size**2, np.float32), cuda.empty(size**2, np.float32)
    source[: matrix.size].copy_from(matrix.ravel())
    transposed = reference(matrix)
    module = load("transpose", names=("transpose_tile<0>", "transpose_tile<1>"))

    def launch(kernel: str, rows: int, columns: int) -> Callable[[], object]:
        grid = (blocks_for(columns, TILE), blocks_for(rows, TILE))
        return module[kernel][grid, BLOCK].bind(source, target, rows, columns)

    variants = [
        Variant(
            name=name,
            launch=launch(kernel, *matrix.shape),
            output=target[: matrix.size],
            expected=(transposed if turns else matrix).ravel(),
            timed=launch(kernel, size, size),
            nbytes=2 * source.nbytes,
            columns={"course GB/s": course},
        )
        for name, (kernel, turns, course) in VARIANTS.items()
    ]
    limit = copy_limit(source.nbytes)
    return Result(measure(variants, limit), limit)

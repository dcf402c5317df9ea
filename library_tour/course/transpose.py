"""Transpose a matrix with coalesced loads and stores, through a tile in shared memory.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run transpose
    transpose: Matrix transpose with coalesced loads and stores
    size 1,024: rows and columns of the matrix
    counters: measured over 1,024 x 1,032 elements
                         load efficiency  store efficiency  conflicts  check
    ────────────────────────────────────────────────────────────────────────
    naive                        100.0 %            12.5 %          0  right
    tile                         100.0 %           100.0 %  1,023,744  right
    tile, padded by one          100.0 %           100.0 %          0  right
    4 x 4 in registers           100.0 %           100.0 %          0  right
    4 x 4, then a tile           100.0 %           100.0 %          0  right
    down the columns             100.0 %           100.0 %          0  right
    copy through a tile          100.0 %           100.0 %          0  right
    plain copy                   100.0 %           100.0 %          0  right
    Each store of the naive kernel touches 32 sectors where 4 would be enough. With
    the tile in shared memory, the stores are coalesced. One element of padding per
    row removes the bank conflicts that occur when the tile is read column by
    column. A warp's 16-byte load touches 16 sectors and uses all of their bytes.
    The 'down the columns' variant executes the same instructions as the one before
    it, but consecutive blocks lie one below the other in the input. Blocks that run
    at about the same time then write whole rows of the output.
    The lectures report 35, 66 and 165 GB/s for the first three variants, and 169
    and 160 GB/s for the two copies, on an unnamed card.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..checks import poison
from ..device_code import blocks_for, load
from ..limits import copy_limit
from ..stop import Result, Size
from ..variants import Variant, measure

TITLE = "Matrix transpose with coalesced loads and stores"
SIZE = Size("rows and columns of the matrix", full=16384, small=1024, least=4)
EXPLAINED_BY = ("load efficiency", "store efficiency", "conflicts")

Floats = NDArray[np.float32]


class Way(NamedTuple):
    """A kernel with its launch: the block's tile and threads, and the number that must divide rows and columns.

    `course` is the lectures' rate in GB/s. The grid's x counts tiles along a row or, with `down`, down a column.
    """

    kernel: str
    course: int | str
    tile: tuple[int, int] = (32, 32)
    block: tuple[int, int] = (32, 8)
    multiple: int = 1
    turns: bool = True
    down: bool = False


WAYS = {
    "naive": Way("transpose_naive", 35),
    "tile": Way("transpose_tile<0>", 66),
    "tile, padded by one": Way("transpose_tile<1>", 165),
    "4 x 4 in registers": Way("transpose_registers", "", (32, 128), (8, 32), 4),
    "4 x 4, then a tile": Way("transpose_vector<false>", "", (64, 64), (16, 16), 4),
    "down the columns": Way("transpose_vector<true>", "", (64, 64), (16, 16), 4, down=True),
    "copy through a tile": Way("copy_tile", 169, turns=False),
    "plain copy": Way("copy_plain", 160, turns=False),
}


def reference(matrix: Floats) -> Floats:
    """Return the transpose, stored by rows."""
    return np.ascontiguousarray(matrix.T)


def run(device: cuda.Device, size: int) -> Result:
    """Check every variant on a matrix that is not square and has partial tiles; time it on a square one."""
    square = size // 4 * 4
    source, target = (cuda.zeros(size * (size + 8), np.float32) for _ in range(2))
    module = load("transpose", names=[way.kernel for way in WAYS.values() if "<" in way.kernel])
    random = np.random.default_rng()
    matrices = {1: random.random((size, size + 8), np.float32), 4: random.random((square, square + 8), np.float32)}
    turned = {multiple: reference(matrix) for multiple, matrix in matrices.items()}

    def launch(way: Way, rows: int, columns: int) -> Callable[[], object]:
        grid = (blocks_for(columns, way.tile[0]), blocks_for(rows, way.tile[1]))
        return module[way.kernel][grid[::-1] if way.down else grid, way.block].bind(source, target, rows, columns)

    def variant(name: str, way: Way) -> Variant:
        matrix = matrices[way.multiple]
        return Variant(
            name=name,
            prepare=lambda: prepare(matrix),
            launch=launch(way, *matrix.shape),
            output=target[: matrix.size],
            expected=(turned[way.multiple] if way.turns else matrix).ravel(),
            timed=launch(way, square, square),
            amount=2 * 4 * square**2,
            columns={"course GB/s": way.course} if timing.available() else {},
        )

    def prepare(matrix: Floats) -> None:
        source[: matrix.size].copy_from(matrix.ravel())
        poison(target)

    limit = copy_limit(device)
    rows = measure([variant(name, way) for name, way in WAYS.items()], limit, EXPLAINED_BY)
    notes = [
        "Each store of the naive kernel touches 32 sectors where 4 would be enough. With the tile in shared memory, "
        "the stores are coalesced. One element of padding per row removes the bank conflicts that occur when the tile "
        "is read column by column. A warp's 16-byte load touches 16 sectors and uses all of their bytes.",
        "The 'down the columns' variant executes the same instructions as the one before it, but consecutive blocks "
        "lie one below the other in the input. Blocks that run at about the same time then write whole rows of the "
        "output.",
        "The lectures report 35, 66 and 165 GB/s for the first three variants, and 169 and 160 GB/s for the two "
        "copies, on an unnamed card.",
    ]
    # The matrices differ only if the size is not a multiple of four.
    shapes = dict.fromkeys(f"{rows:,} x {columns:,}" for rows, columns in (each.shape for each in matrices.values()))
    return Result(rows, limit, notes=notes, counted=f"{' or '.join(shapes)} elements")

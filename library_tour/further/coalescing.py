"""The further exercises of `coalescing`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, at_most, uses_all_bytes
from ..stop import Check, Value

# A warp's 32 elements of 4 bytes fill 4 sectors.
SECTORS = 4
TILE, TILE_ROWS = 32, 8
BLOCK = 128
COLUMNS = ["sectors/load", "sectors/store", "load efficiency", "store efficiency"]


def check_brighten(answer: cuda.Module) -> Iterator[Check]:
    """Brighten an image of whole tiles, for which the counts are exact, and one of partial tiles."""
    for rows, columns in ((32, 64), (21, 45)):
        picture = np.random.default_rng(5).integers(0, 200, (rows, columns)).astype(np.uint32)
        out = poisoned(picture.shape, np.uint32)
        grid = (blocks_for(columns, TILE), blocks_for(rows, TILE_ROWS))
        launch = answer["brighten"][grid, (TILE, TILE_ROWS)].bind(cuda.to_device(picture), out, rows, columns)
        counted = counters.count(launch, COLUMNS)
        yield compare(f"an image of {rows} x {columns} is brighter by 10", out.to_host(), picture + np.uint32(10))
        if columns % TILE == 0:
            yield from _coalesced(counted)


def check_split(answer: cuda.Module) -> Iterator[Check]:
    """Split points that fill their blocks, and points that do not."""
    for size in (2 * BLOCK, 333):
        points = np.random.default_rng(5).random((size, 3), np.float32)
        out = [poisoned(size, np.float32) for _ in range(3)]
        launch = answer["split"][blocks_for(size, BLOCK), BLOCK].bind(cuda.to_device(points), *out, size)
        counted = counters.count(launch, [*COLUMNS, "conflicts"])
        for axis, name in enumerate("xyz"):
            yield compare(f"the {name} of {size} points", out[axis].to_host(), np.ascontiguousarray(points[:, axis]))
        if size % BLOCK == 0:
            yield from _coalesced(counted)
            yield at_most("shared memory has no bank conflicts", counted["conflicts"], 0)


def _coalesced(counted: dict[str, Value]) -> Iterator[Check]:
    for kind in ("load", "store"):
        yield at_most(f"a {kind} of a warp touches at most {SECTORS} sectors", counted[f"sectors/{kind}"], SECTORS)
        yield uses_all_bytes(kind, counted[f"{kind} efficiency"])


FURTHER = [
    Exercise(
        name="easy",
        task="A kernel adds 10 to each element of an image, which is stored in row-major order. A block of 32 x 8 "
        "threads handles a tile of 32 columns and 8 rows. The kernel numbers the threads of a block down the columns, "
        "so adjacent lanes access different rows. Renumber them so that each load and each store of a warp touches 4 "
        "sectors.",
        hints=[
            "Here a warp is 32 threads with consecutive values of `threadIdx.x`. Which index of the image should "
            "change from one lane to the next?",
            "The block has the shape of the tile, so no division is needed: `threadIdx.x` and `threadIdx.y` are the "
            "column and the row within the tile.",
        ],
        answer="A thread's column follows from `threadIdx.x`, and its row from `threadIdx.y`. A warp then reads 32 "
        "adjacent elements of one row, which are in 4 sectors. In the original kernel, it read 4 elements in each of 8 "
        "rows.",
        check=check_brighten,
    ),
    Exercise(
        name="hard",
        task="`n` points are stored as `x y z x y z ...`, an array of structures. Split them into three arrays, a "
        "structure of arrays. The kernel reads three elements per thread, so the lanes are 12 bytes apart and each "
        "load touches 12 sectors. Rewrite it so that each load and each store of a warp touches at most 4 sectors, "
        "without causing bank conflicts. A block has 128 threads, and `n` need not be a multiple of 128. The "
        "`variables` stop explains shared memory, and the guide's page on profiling without a GPU explains bank "
        "conflicts.",
        hints=[
            "The 128 points of a block are 384 contiguous elements. In which order should its threads load them?",
            "First copy the 384 elements to shared memory, in three coalesced steps. After a barrier, each thread "
            "takes its own three.",
            "In shared memory, the lanes are 3 words apart. 3 and 32 have no common factor, so the 32 lanes use 32 "
            "different banks.",
        ],
        answer="The block loads its 384 elements into shared memory with coalesced loads: three per thread, 128 "
        "elements apart. After the barrier, each thread reads the three coordinates of its point and writes them with "
        "coalesced stores. Threads without a point may have to load elements of other points, so they must not return "
        "before they have done so.",
        check=check_split,
    ),
]

"""Choose a launch's grid and block: which threads exist, why few threads are slow, and which shapes are refused.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run launch_shapes
    launch_shapes: Grids and blocks: shapes, limits, and how threads share work
    size 4,099: cells to cool, and about as many elements per timed matrix
    counters: measured over 4,099 cells to cool, or matrices of 67 x 101 elements
                         cells  instructions  active lanes  sectors/load  check
    ───────────────────────────────────────────────────────────────────────────
    1 thread             4,099        45,103          1.00          1.00  right
    2 threads            4,099        22,564          2.00          1.00  right
    32 threads           4,099         1,433          31.8          3.98  right
    256 threads          4,099         1,531          31.8          3.98  right
    one thread per cell  4,099         3,295          31.9          3.98  right
    matrix, 32 x 8       6,767         8,936          29.2          4.02  right
    matrix, 16 x 16      6,767         8,372          30.6          5.26  right
    matrix, 20 x 50      6,767        10,510          29.6          5.23  right
    matrix, 3 x 3        6,767        25,024          8.85          3.63  right
    matrix, 1 x 256      6,767        18,786          29.8          22.3  right
    Shapes <<<grid, block>>> that are allowed
                                threads  warps/block  threads/warp  check
    ─────────────────────────────────────────────────────────────────────
    <<<10, 256>>>                 2,560            8          32.0  right
    <<<10, 16>>>                    160            1          16.0  right
    <<<10, 33>>>                    330            2          16.5  right
    <<<(4, 3), (16, 16)>>>        3,072            8          32.0  right
    <<<(3, 3, 3), (4, 2, 2)>>>      432            1          16.0  right
    <<<2, (20, 50)>>>             2,000           32          31.2  right
    <<<1, (4, 4, 64)>>>           1,024           32          32.0  right
    <<<(1, 65535), 1>>>          65,535            1          1.00  right
    <<<(1, 1, 65535), 1>>>       65,535            1          1.00  right
    Shapes at the limits and beyond
                              check
    ─────────────────────────────────
    <<<2147483647, 256>>>     allowed
    <<<10, 2048>>>            refused
    <<<10, (20, 100)>>>       refused
    <<<10, (1, 1, 65)>>>      refused
    <<<(1, 65536), 256>>>     refused
    <<<(1, 1, 65536), 256>>>  refused
    <<<2147483648, 256>>>     refused
    <<<0, 256>>>              refused
    <<<10, 2048>>>: empty_kernel: argument 'block.x' must be an int from 1 to 1024,
    not the int 2048
    <<<10, (20, 100)>>>: empty_kernel: a block of (20, 100, 1) has 2000 threads, but
    the device's limit is 1024
    <<<10, (1, 1, 65)>>>: empty_kernel: argument 'block.z' must be an int from 1 to
    64, not the int 65
    <<<(1, 65536), 256>>>: empty_kernel: argument 'grid.y' must be an int from 1 to
    65535, not the int 65536
    <<<(1, 1, 65536), 256>>>: empty_kernel: argument 'grid.z' must be an int from 1
    to 65535, not the int 65536
    <<<2147483648, 256>>>: empty_kernel: argument 'grid.x' must be an int from 1 to
    2147483647, not the int 2147483648
    <<<0, 256>>>: empty_kernel: argument 'grid.x' must be an int from 1 to
    2147483647, not the int 0
    Instructions are executed by warps of 32 threads, so a block of 1 thread costs
    as much as one of 32, and a block of 33 as much as one of 64. Choose a multiple
    of 32 threads per block, and let x run along elements that are adjacent in
    memory. The names of the 'matrix' rows give the block size in x and y. A 3 x 3
    block leaves 23 lanes of its warp idle, and in a 1 x 256 block each lane of a
    warp reads from a different row.
    A block runs on one multiprocessor, so it takes many blocks to use the whole
    device. A few threads also have only a few loads in flight. Even with one thread
    per cell, one 4-byte load per thread does not saturate the memory of a large GPU
    (see the lesson coalescing). The 'cells' column shows the number of cells, or of
    elements per matrix. On a GPU, 1 and 2 threads are timed with at most 2^20
    cells, 32 threads with 2^23 and 256 threads with 2^25. In lectures on GPU
    programming, 10 steps over 5.12 million cells on an unnamed card took 4.15 s
    with 1 thread, 2.06 s with 2, 0.037 s with 256, and 0.0003 s with one thread per
    cell.
    For the table of allowed shapes, each thread wrote its own number. Threads are
    numbered along x first, then along y, then along z, and so are blocks.
    Each message begins with the kernel's name, here `empty_kernel`. The driver
    refuses the same shapes with CUDA_ERROR_INVALID_VALUE, which does not identify
    the axis. For these launches, the runtime reports cudaErrorInvalidConfiguration.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import counters, timing
from ..checks import compare, poisoned, refusal
from ..device_code import blocks_for, load
from ..inputs import INPUT_BLOCK, repeated
from ..limits import copy_limit
from ..stop import Check, Curve, Limit, Result, Row, Size
from ..variants import Variant, measure, points

TITLE = "Grids and blocks: shapes, limits, and how threads share work"
SIZE = Size("cells to cool, and about as many elements per timed matrix", full=2**26 + 3, small=2**12 + 3, least=4)
CHECKED = 2**12 + 5
CHECKED_MATRIX = 67, 101  # rows and columns
EXPLAINED_BY = ("instructions", "active lanes", "sectors/load")
WARP = 32

Floats = NDArray[np.float32]
Extent = tuple[int, ...]


class Shape(NamedTuple):
    """A grid and a block, each with one to three sizes: x, y, z."""

    grid: Extent
    block: Extent

    def __str__(self) -> str:
        return f"<<<{', '.join(self._in_words(extent) for extent in self)}>>>"

    @staticmethod
    def _in_words(extent: Extent) -> str:
        return str(extent[0]) if len(extent) == 1 else f"({', '.join(map(str, extent))})"


# Name: blocks (0: as many as the cells need), threads per block, the most cells to time with so few threads.
THREADS = {
    "1 thread": (1, 1, 2**20),
    "2 threads": (1, 2, 2**20),
    "32 threads": (1, 32, 2**23),
    "256 threads": (1, 256, 2**25),
    "one thread per cell": (0, 256, SIZE.full),
}
# Seconds for 10 steps over 5.12 million cells, each of which is read and written.
COURSE = {"1 thread": 4.15, "2 threads": 2.06, "256 threads": 0.037, "one thread per cell": 0.0003}
COURSE_BYTES = 10 * 5.12e6 * 8
MATRIX_BLOCKS = ((32, 8), (16, 16), (20, 50), (3, 3), (1, 256))
CURVE_CELLS = 2**25
CURVE_BLOCKS = (1, 2, 4, 8, 16, 24, 31, 32, 33, 40, 48, 56, 63, 64, 65, 80, 95, 96, 97, 112, 127, 128)

VALID = (
    Shape((10,), (256,)),
    Shape((10,), (16,)),
    Shape((10,), (33,)),
    Shape((4, 3), (16, 16)),
    Shape((3, 3, 3), (4, 2, 2)),
    Shape((2,), (20, 50)),
    Shape((1,), (4, 4, 64)),
    Shape((1, 65535), (1,)),
    Shape((1, 1, 65535), (1,)),
)
LARGEST = Shape((2**31 - 1,), (256,))
REFUSED = (
    Shape((10,), (2048,)),
    Shape((10,), (20, 100)),
    Shape((10,), (1, 1, 65)),
    Shape((1, 65536), (256,)),
    Shape((1, 1, 65536), (256,)),
    Shape((2**31,), (256,)),
    Shape((0,), (256,)),
)


def numbers(shape: Shape) -> NDArray[np.uint32]:
    """Return every thread's number as an array with the layout of the grid: planes of z, rows of y, columns of x."""
    blocks, threads = (xyz(extent)[::-1] for extent in shape)
    count = math.prod(blocks) * math.prod(threads)
    # Numbered by block, then by thread; the transpose puts each axis of the grid before the same axis of a block.
    numbered = np.arange(count, dtype=np.uint32).reshape(*blocks, *threads).transpose(0, 3, 1, 4, 2, 5)
    return numbered.reshape([grid * block for grid, block in zip(blocks, threads, strict=True)])


def xyz(extent: Extent) -> tuple[int, int, int]:
    """Return all three sizes of a grid or a block."""
    x, y, z = (*extent, 1, 1)[:3]
    return x, y, z


def cooled(cells: Floats) -> Floats:
    """Return temperatures after one step, halfway to 20 degrees."""
    return (cells + np.float32(0.5) * (np.float32(20) - cells)).astype(np.float32)


def run(device: cuda.Device, size: int) -> Result:
    """Share work among more and more threads, add matrices with several block shapes, and try refused shapes."""
    module = load("launch_shapes")
    limit = copy_limit(device)
    cells = Cells(module, size)
    rows = measure([cells.variant(name, *threads) for name, threads in THREADS.items()], limit, EXPLAINED_BY)
    rows += measure(matrix_variants(module, size), limit, EXPLAINED_BY)
    pictures = []
    if timing.available() or counters.available():
        pictures = [lanes(cells, limit)]
    tables = {
        "Shapes <<<grid, block>>> that are allowed": [
            numbered(module, shape) for shape in VALID
        ],
        "Shapes at the limits and beyond": [
            allowed(module["empty_kernel"]), *(refused(module["empty_kernel"], shape) for shape in REFUSED)
        ],
    }  # fmt: skip  # rows of a table
    notes = [
        "Instructions are executed by warps of 32 threads, so a block of 1 thread costs as much as one of 32, and a "
        "block of 33 as much as one of 64. Choose a multiple of 32 threads per block, and let x run along elements "
        "that are adjacent in memory. The names of the 'matrix' rows give the block size in x and y. A 3 x 3 block "
        "leaves 23 lanes of its warp idle, and in a 1 x 256 block each lane of a warp reads from a different row.",
        "A block runs on one multiprocessor, so it takes many blocks to use the whole device. A few threads also have "
        "only a few loads in flight. Even with one thread per cell, one 4-byte load per thread does not saturate the "
        "memory of a large GPU (see the lesson coalescing). The 'cells' column shows the number of cells, or of "
        "elements per matrix. On a GPU, 1 and 2 threads are timed with at most 2^20 cells, 32 threads with 2^23 and "
        "256 threads with 2^25. In lectures on GPU programming, 10 steps over 5.12 million cells on an unnamed card "
        "took 4.15 s with 1 thread, 2.06 s with 2, 0.037 s with 256, and 0.0003 s with one thread per cell.",
        "For the table of allowed shapes, each thread wrote its own number. Threads are numbered along x first, then "
        "along y, then along z, and so are blocks.",
        "Each message begins with the kernel's name, here `empty_kernel`. The driver refuses the same shapes with "
        "CUDA_ERROR_INVALID_VALUE, which does not identify the axis. For these launches, the runtime reports "
        "cudaErrorInvalidConfiguration.",
    ]
    few_rows, few_columns = CHECKED_MATRIX
    return Result(
        rows,
        limit,
        pictures=pictures,
        notes=notes,
        tables=tables,
        counted=f"{cells.few:,} cells to cool, or matrices of {few_rows} x {few_columns} elements",
    )


class Cells:
    """One step of cooling, with any number of threads; checked on a few cells and timed on many."""

    def __init__(self, module: cuda.Module, size: int) -> None:
        self.kernel = module["cool"]
        block = np.random.default_rng().normal(20, 10, min(size, INPUT_BLOCK)).astype(np.float32)
        self.before = repeated(block, size)
        self.after = cuda.empty_like(self.before)
        self.few = min(size, CHECKED)
        self.expected = cooled(block[: self.few])

    def variant(self, name: str, blocks: int, block: int, most: int) -> Variant:
        """Return the variant with `blocks` blocks (0: as many as the cells need) of `block` threads each."""
        many = min(self.before.size, most)

        def launch(count: int) -> cuda.BoundLaunch:
            grid = blocks or blocks_for(count, block)
            return self.kernel[grid, block].bind(self.before, self.after, count)

        course = 1e-9 * COURSE_BYTES / COURSE[name] if name in COURSE else ""
        return Variant(
            name=name,
            launch=launch(self.few),
            output=self.after[: self.few],
            expected=self.expected,
            timed=launch(many),
            amount=2 * 4 * many,
            columns={"cells": many, "course GB/s": course} if timing.available() else {"cells": self.few},
        )


def matrix_variants(module: cuda.Module, size: int) -> list[Variant]:
    """Return matrix sums with several block shapes, checked on small matrices and timed on large ones."""
    random = np.random.default_rng()
    a, b = random.random((2, *CHECKED_MATRIX), np.float32)
    on_device = [cuda.to_device(a), cuda.to_device(b), cuda.empty_like(a)]
    side = math.isqrt(size)
    large = side - 1, side + 5
    many = [cuda.full(large, value, np.float32) for value in (1.0, 2.0, 3.0)]
    kernel = module["matrix_add"]

    def launch(matrices: list[cuda.DeviceArray], block: tuple[int, int]) -> cuda.BoundLaunch:
        rows, columns = matrices[0].shape
        grid = blocks_for(columns, block[0]), blocks_for(rows, block[1])
        return kernel[grid, block].bind(*matrices, rows, columns)

    return [
        Variant(
            name=f"matrix, {' x '.join(map(str, block))}",
            launch=launch(on_device, block),
            output=on_device[2],
            expected=a + b,
            timed=launch(many, block),
            amount=3 * many[0].nbytes,
            columns={"cells": many[0].size if timing.available() else a.size},
        )
        for block in MATRIX_BLOCKS
    ]


def lanes(cells: Cells, limit: Limit) -> Curve:
    """Return a curve of the rate against threads per block, or of active lanes if nothing is timed."""
    column = limit.unit if timing.available() else "active lanes"
    variants = [cells.variant(str(block), 0, block, CURVE_CELLS) for block in CURVE_BLOCKS]
    rows = measure(variants, limit, ["active lanes"], quick=True)
    return Curve("block", "threads per block", column, {"one thread per cell": points(CURVE_BLOCKS, rows, column)})


def numbered(module: cuda.Module, shape: Shape) -> Row:
    """Let every thread of a shape write its number, check the numbers, and return how full the warps are."""
    expected = numbers(shape)
    places = poisoned(expected.shape, np.uint32)
    module["number_threads"][shape](places)
    threads = math.prod(shape.block)
    warps = blocks_for(threads, WARP)
    values = {"threads": expected.size, "warps/block": warps, "threads/warp": threads / warps}
    return Row(str(shape), values, compare(f"{shape} numbers its threads", places.to_host(), expected))


def allowed(kernel: cuda.Kernel) -> Row:
    """Prepare the launch with the largest grid in x; do not run it, since so many blocks take seconds on any device."""
    launch = kernel[LARGEST]
    return Row(
        str(LARGEST), check=Check("the largest grid in x is allowed", launch.shape.grid[0] == 2**31 - 1, word="allowed")
    )


def refused(kernel: cuda.Kernel, shape: Shape) -> Row:
    """Request a shape that no device can launch, from this package and from the driver; show the package's message."""
    here = refusal(f"{shape} is refused", ValueError, partial(kernel.configure, *shape))
    by_driver = refusal(
        f"{shape} is refused by the driver",
        cuda.errors.InvalidValueError,
        lambda: cuda.check(cuda.raw.cuLaunchKernel(kernel.handle, *xyz(shape.grid), *xyz(shape.block), 0, 0, 0, 0)),
    )
    failed = next((check for check in (here, by_driver) if not check.holds), None)
    return Row(str(shape), check=failed or Check(here.fact, True, word="refused"), note=here.detail)

"""Multiply matrices from global memory, through tiles in shared memory and registers, and with cuBLAS.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run matmul
    matmul: Matrix multiplication: tiles in shared memory and registers
    size 125: rows and columns of the matrices
    counters: measured over matrices of 125 x 63 and 63 x 252 elements
                              loads  wavefronts  instructions  check
    ────────────────────────────────────────────────────────────────
    one thread per element  127,008           0       413,616  right
    tiles of 8 x 8           16,384     147,456       472,064  right
    tiles of 16 x 16          8,128     139,264       362,320  right
    tiles of 32 x 32          4,016     135,168       304,744  right
    4 x 4 per thread          2,032      26,624       129,632  right
    8 x 8 per thread          1,016      13,312       107,000  right
    8 x 16, pipelined           382       7,008        75,800  right
    cuBLAS                                                     right
    One block: 32 x 32 matrices
                             loads  wavefronts  instructions  check
    ───────────────────────────────────────────────────────────────
    CPU, three loops                                          right
    one block                2,048           0         6,912  right
    4 blocks, same elements  8,192           0        27,648  right
    Half precision, sums of single precision
                               loads  wavefronts  instructions  check
    ─────────────────────────────────────────────────────────────────
    tensor cores, tensor maps      0           0         5,638  right
    cuBLAS, half precision                                      right
    Each element of a 16 x 16 tile is used by 16 threads, so the number of loads
    from global memory falls by a factor of the tile's width. Then shared memory
    becomes the limit, since each multiply-add reads two elements from it. On an
    H200, 8 x 8 tiles gain nothing over one thread per element without tiles,
    because the L1 cache serves the loads of that kernel. A thread that computes 8 x
    8 elements reads 16 elements for 64 multiply-adds. The pipelined kernel copies
    the next tiles while it multiplies. Its asynchronous copies need no registers.
    A block has at most 1,024 threads, so a single block can multiply matrices of at
    most 32 x 32 elements. (The oldest cards in the lectures allow 512 threads per
    block, and the lectures use 16 x 16 matrices.) Additional blocks compute the
    same elements again if the kernel does not use blockIdx. A grid has at most
    65,535 blocks in y, so 16 x 16 blocks cover at most 16 * 65,535 = 1,048,560
    rows.
    In the last table, the elements are halves. One thread starts the copies of
    whole tiles through tensor maps, which take no loads of threads, and tensor
    cores read the tiles from shared memory. The threads execute few other
    instructions. On an H200, the kernel is as fast as cuBLAS for 8,192 rows and
    columns. The times in this table are for twice as many rows and columns as those
    in the first one.
    The film follows a product that is computed with 2 x 2 tiles. Each stage shows
    which tiles of a (lower left) and b (upper right) the first block has in shared
    memory, and how far its sums in c have progressed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py import libraries

from .. import timing
from ..checks import compare
from ..device_code import blocks_for, load
from ..inputs import INPUT_BLOCK, repeated
from ..limits import arithmetic_limit, copy_limit
from ..stop import Curve, Film, Limit, Picture, Result, Row, Size
from ..variants import Variant, measure

TITLE = "Matrix multiplication: tiles in shared memory and registers"
SIZE = Size("rows and columns of the matrices", full=4096, small=125, least=4)
EXPLAINED_BY = ("loads", "wavefronts", "instructions")
# The largest number of rows that is checked, and the number of columns of `a` in every check.
CHECKED, INNER = 125, 63
# The same for half precision, whose elements are copied in units of 16 bytes.
HALF_INNER, HALF_UNIT = 72, 8
# The rows and columns that a block of matmul_hopper computes, its threads, and the boxes of its tensor maps.
HOPPER_TILE, HOPPER_THREADS, BOX_OF_A, BOX_OF_B = (128, 256), 384, (128, 64), (64, 64)
# Four stages of a tile of a and four boxes of b, and bytes to align them to the 1,024 that their swizzle needs.
HOPPER_SHARED = 4 * 2 * (128 * 64 + 4 * 64 * 64) + 1024
# Rows of the matrices that one block, or a loop in Python, multiplies: a block has at most 1,024 threads.
ONE_BLOCK = 32
CURVE_LEAST, LONGEST_MS = 256, 100
# The film of the phases: rows of the matrices, rows of a tile, frames per moment, and a brightness for each state of an
# element. The brightnesses are evenly spaced.
PHASES_SIDE, PHASES_TILE, HOLD = 4, 2, 5
ELEMENT, SUMMED, SHARED, MULTIPLIED, DONE = 0.2, 0.4, 0.6, 0.8, 1.0

Floats = NDArray[np.float32]
Operands = tuple[cuda.DeviceArray, cuda.DeviceArray, cuda.DeviceArray]
Multiply = Callable[[cuda.DeviceArray, cuda.DeviceArray, cuda.DeviceArray], Callable[[], object]]


class Way(NamedTuple):
    """A kernel, the rows and columns that a block computes, and the shape of the block.

    `shared` is the dynamic shared memory in bytes, and `more` contains further arguments. If `linear`, the grid has one
    dimension; otherwise, it has the shape of the matrix.
    """

    kernel: str
    tile: tuple[int, int]
    block: int | tuple[int, int]
    shared: int = 0
    more: tuple[float, ...] = ()
    linear: bool = False


WAYS = {
    "one thread per element": Way("matmul_elements", (16, 16), (16, 16)),
    "tiles of 8 x 8": Way("matmul_tile<8>", (8, 8), (8, 8)),
    "tiles of 16 x 16": Way("matmul_tile<16>", (16, 16), (16, 16)),
    "tiles of 32 x 32": Way("matmul_tile<32>", (32, 32), (32, 32)),
    "4 x 4 per thread": Way("matmul_registers<4>", (64, 64), 256),
    "8 x 8 per thread": Way("matmul_registers<8>", (128, 128), 256),
    # Two stages, each with a tile of 128 + 4 rows of a and one of 256 columns of b, 16 elements each; alpha is 1.
    "8 x 16, pipelined": Way("matmul_pipelined", (128, 256), 256, 2 * 16 * (132 + 256) * 4, (1.0,), True),
}


def reference(a: Floats, b: Floats) -> Floats:
    """Return the product, summed in double precision."""
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)


def error_bound(a: Floats, b: Floats) -> float:
    """Return the largest possible error of an element of the product: each of its additions rounds once."""
    return float(a.shape[1] * 2.0**-24 * (abs(a) @ abs(b)).max())


def run(device: cuda.Device, size: int) -> Result:
    """Check every variant on matrices with partial tiles, and time it on square ones."""
    module = load("matmul", names=[way.kernel for way in WAYS.values() if "<" in way.kernel])
    ways = {name: by_kernel(module, way) for name, way in WAYS.items()} | {"cuBLAS": by_cublas}
    limit = arithmetic_limit(device)
    rows = measure(variants(ways, size), limit, EXPLAINED_BY)
    side = min(size, ONE_BLOCK)
    small = [python_row(side, limit), *measure(one_block_variants(module, side), limit, EXPLAINED_BY)]
    pictures: list[Picture] = [phases(PHASES_SIDE, PHASES_TILE)]
    if timing.available():
        curve = rates(ways, size, device, limit)
        rows = [replace(row, values={**row.values, **last_rate(curve, row.name)}) for row in rows]
        pictures.append(curve)
    notes = [
        "Each element of a 16 x 16 tile is used by 16 threads, so the number of loads from global memory falls by a "
        "factor of the tile's width. Then shared memory becomes the limit, since each multiply-add reads two elements "
        "from it. On an H200, 8 x 8 tiles gain nothing over one thread per element without tiles, because the L1 "
        "cache serves the loads of that kernel. A thread that computes 8 x 8 elements reads 16 elements for 64 "
        "multiply-adds. The pipelined kernel copies the next tiles while it multiplies. Its asynchronous copies need "
        "no registers.",
        "A block has at most 1,024 threads, so a single block can multiply matrices of at most 32 x 32 elements. (The "
        "oldest cards in the lectures allow 512 threads per block, and the lectures use 16 x 16 matrices.) Additional "
        "blocks compute the same elements again if the kernel does not use blockIdx. A grid has at most 65,535 blocks "
        "in y, so 16 x 16 blocks cover at most 16 * 65,535 = 1,048,560 rows.",
        "In the last table, the elements are halves. One thread starts the copies of whole tiles through tensor maps, "
        "which take no loads of threads, and tensor cores read the tiles from shared memory. The threads execute few "
        "other instructions. On an H200, the kernel is as fast as cuBLAS for 8,192 rows and columns. The times in this "
        "table are for twice as many rows and columns as those in the first one.",
        "The film follows a product that is computed with 2 x 2 tiles. Each stage shows which tiles of a (lower left) "
        "and b (upper right) the first block has in shared memory, and how far its sums in c have progressed.",
    ]
    tables = {f"One block: {side} x {side} matrices": small}
    if device.compute_capability == (9, 0):  # tensor cores of other devices have other instructions
        cores = Limit("tensor cores", limit.unit)
        tables["Half precision, sums of single precision"] = measure(half_variants(size), cores, EXPLAINED_BY)
    few = min(size, CHECKED)
    shape = f"matrices of {few} x {INNER} and {INNER} x {columns_for(few)} elements"
    return Result(rows, limit, pictures=pictures, notes=notes, tables=tables, counted=shape)


def by_kernel(module: cuda.Module, way: Way) -> Multiply:
    """Return a function that binds a launch of the kernel to matrices."""

    def bind(a: cuda.DeviceArray, b: cuda.DeviceArray, c: cuda.DeviceArray) -> Callable[[], object]:
        (rows, inner), columns = a.shape, b.shape[1]
        down, across = blocks_for(rows, way.tile[0]), blocks_for(columns, way.tile[1])
        kernel = module[way.kernel][down * across if way.linear else (across, down), way.block, way.shared]
        return kernel.bind(a, b, c, rows, columns, inner, *way.more)

    return bind


def by_cublas(a: cuda.DeviceArray, b: cuda.DeviceArray, c: cuda.DeviceArray) -> Callable[[], object]:
    """Return a function that calls cuBLAS for matrices."""
    return lambda: libraries.gemm(a, b, c)


def random_pair(rows: int, columns: int, inner: int) -> tuple[Floats, Floats]:
    """Return two matrices to multiply, with elements in [-1, 1)."""
    random = np.random.default_rng()
    a, b = (2 * random.random(shape, np.float32) - 1 for shape in ((rows, inner), (inner, columns)))
    return a, b


def square_operands(size: int) -> Operands:
    """Return two square matrices of random elements on the device, and one for their product."""
    block = 2 * np.random.default_rng().random(min(size**2, INPUT_BLOCK), np.float32) - 1
    a, b = (repeated(part, size**2).reshape(size, size) for part in (block, block[::-1].copy()))
    return a, b, cuda.empty_like(a)


def columns_for(rows: int) -> int:
    """Return the number of columns of a checked product: a multiple of four, as the pipelined kernel requires."""
    return 4 * blocks_for(2 * rows, 4)


def variants(ways: dict[str, Multiply], size: int) -> list[Variant]:
    """Return the variants that multiply, checked on full and partial tiles in each direction."""
    rows = min(size, CHECKED)
    host_a, host_b = random_pair(rows, columns_for(rows), INNER)
    expected = reference(host_a, host_b)
    a, b, c = cuda.to_device(host_a), cuda.to_device(host_b), cuda.empty(expected.shape, np.float32)
    square = 4 * (size // 4)
    operands = square_operands(square) if timing.available() else (a, b, c)
    return [
        Variant(
            name=name,
            launch=way(a, b, c),
            output=c,
            expected=expected,
            tolerance=error_bound(host_a, host_b),
            timed=way(*operands),
            amount=2 * square**3,
        )
        for name, way in ways.items()
    ]


def by_hopper(a: cuda.DeviceArray, b: cuda.DeviceArray, c: cuda.DeviceArray) -> Callable[[], object]:
    """Return a launch of matmul_hopper, bound to matrices of float16 and one of float32 for their product."""
    (rows, inner), columns = a.shape, b.shape[1]
    blocks = blocks_for(rows, HOPPER_TILE[0]) * blocks_for(columns, HOPPER_TILE[1])
    maps = [cuda.tensor_maps.TensorMap(x, box, swizzle=128) for x, box in ((a, BOX_OF_A), (b, BOX_OF_B))]
    kernel = load("matmul", arch="sm_90a")["matmul_hopper"][blocks, HOPPER_THREADS, HOPPER_SHARED]
    return kernel.bind(*maps, c, rows, columns, inner)


# The kernel for half precision, and cuBLAS with the same types.
HALF_WAYS: dict[str, Multiply] = {"tensor cores, tensor maps": by_hopper, "cuBLAS, half precision": by_cublas}


def half_variants(size: int) -> list[Variant]:
    """Return the variants for half precision, checked like the others, and timed on twice as many rows and columns."""
    rows = min(size, CHECKED)
    columns = HALF_UNIT * blocks_for(2 * rows, HALF_UNIT)
    host_a, host_b = (x.astype(np.float16) for x in random_pair(rows, columns, HALF_INNER))
    wide_a, wide_b = host_a.astype(np.float32), host_b.astype(np.float32)
    c = cuda.empty((rows, columns), np.float32)
    operands = cuda.to_device(host_a), cuda.to_device(host_b), c
    square = HALF_UNIT * blocks_for(2 * size, HALF_UNIT)
    timed = square_halves(square) if timing.available() else operands
    return [
        Variant(
            name=name,
            launch=way(*operands),
            output=c,
            expected=reference(wide_a, wide_b),
            # Products of halves are exact, and tensor cores truncate sums.
            tolerance=2 * error_bound(wide_a, wide_b),
            timed=way(*timed),
            amount=2 * square**3,
        )
        for name, way in HALF_WAYS.items()
    ]


def square_halves(size: int) -> Operands:
    """Return two square matrices of random halves on the device, and one of float32 for their product."""
    block = (2 * np.random.default_rng().random(min(size**2, INPUT_BLOCK), np.float32) - 1).astype(np.float16)
    a, b = (repeated(part, size**2).reshape(size, size) for part in (block, block[::-1].copy()))
    return a, b, cuda.empty((size, size), np.float32)


def one_block_variants(module: cuda.Module, side: int) -> list[Variant]:
    """Return two variants with one thread per element: one block, and four blocks that compute the same elements."""
    host_a, host_b = random_pair(side, side, side)
    a, b, c = cuda.to_device(host_a), cuda.to_device(host_b), cuda.empty((side, side), np.float32)
    kernel = module["matmul_one_block"]
    return [
        Variant(
            name=name,
            launch=kernel[blocks, (side, side)].bind(a, b, c, side, side, side),
            output=c,
            expected=reference(host_a, host_b),
            tolerance=error_bound(host_a, host_b),
            amount=2 * side**3,
        )
        for name, blocks in {"one block": 1, "4 blocks, same elements": 4}.items()
    ]


def python_row(side: int, limit: Limit) -> Row:
    """Multiply with three loops in Python on the host, and check and time it."""
    a, b = random_pair(side, side, side)
    left, right = a.tolist(), b.tolist()
    start = time.perf_counter()
    product = [
        [sum(left[row][i] * right[i][column] for i in range(side)) for column in range(side)] for row in range(side)
    ]
    ms = 1e3 * (time.perf_counter() - start)
    # Python's floats are doubles.
    check = compare("Python's loops equal NumPy's result", np.array(product, np.float32), reference(a, b), 1e-6)
    timed = timing.available() and check.holds
    return Row("CPU, three loops", timing.rates(ms, 2 * side**3, limit) if timed else {}, check)


def rates(ways: dict[str, Multiply], size: int, device: cuda.Device, limit: Limit) -> Curve:
    """Measure the rate of every variant for sizes up to twice that of the table, and add the roofline."""
    sizes = [2 * size // 2**power for power in range(16) if 2 * size // 2**power >= CURVE_LEAST] or [2 * size]
    sizes = [4 * blocks_for(side, 4) for side in sizes[::-1]]
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for side in sizes:
        operands = square_operands(side)
        for name, way in ways.items():
            if lines[name] and 2 * side**3 / (1e9 * lines[name][-1][1]) > LONGEST_MS:
                continue  # larger products would take a slow variant as long as everything else
            ms = timing.median_ms(way(*operands), quick=True)
            lines[name].append((side, timing.per_second(2 * side**3, ms, limit.unit)))
    copy = copy_limit(device).rate or 0.0
    # Memory moves at least three matrices with 4 bytes per element, for 2 * side operations per element of c.
    roof = [(side, min(limit.rate or np.inf, 1e-3 * copy * 2 * side / (3 * 4))) for side in sizes]
    return Curve("rates", "rows and columns", limit.unit, {**lines, "roofline": roof}, logarithmic="xy")


def last_rate(curve: Curve, name: str) -> dict[str, float]:
    """Return a further column for a row: its rate at the largest size of the curve, if it was measured."""
    largest = curve.lines["roofline"][-1][0]
    return {f"{largest:.0f} {curve.y}": rate for side, rate in curve.lines[name] if side == largest}


def phases(side: int, tile: int) -> Film:
    """Draw the elements that the first block of a tiled product reads and computes, one phase after another.

    A frame has a at the lower left, b at the upper right and c at the lower right. The colour of an element shows
    its state: in device memory, in shared memory, or multiplied in the current step. For c, it shows whether the sum
    has begun or is done.
    """
    offset = side + 1
    frames, captions = [], []
    for first in range(0, side, tile):
        shared = slice(first, first + tile)
        loaded = np.zeros((2 * side + 1, 2 * side + 1))
        loaded[offset:, :side] = loaded[:side, offset:] = loaded[offset:, offset:] = ELEMENT
        loaded[offset : offset + tile, shared] = loaded[shared, offset : offset + tile] = SHARED
        for step in range(first - 1, first + tile):
            frame = loaded.copy()
            state = DONE if step + 1 == side else SUMMED if step >= 0 else ELEMENT
            frame[offset : offset + tile, offset : offset + tile] = state
            if step >= first:  # the first frame of a phase shows the tiles after the barrier
                frame[offset : offset + tile, step] = frame[step, offset : offset + tile] = MULTIPLIED
            frames += [frame] * HOLD
            moment = f"step {step - first + 1}" if step >= first else "load the tiles"
            added = f"{step + 1} of {side} products added to each sum"
            captions += [f"phase {first // tile + 1}: {moment}; {added}"] * HOLD
    levels = {
        "in memory": ELEMENT,
        "c, being summed": SUMMED,
        "in shared memory": SHARED,
        "multiplied now": MULTIPLIED,
        "c, done": DONE,
    }
    middle = (side - 1) / 2
    labels = {"a ↓": (middle, side - 1), "b →": (side - 1, middle), "c ↘": (side, side)}
    return Film("phases", frames, captions, levels=levels, labels=labels)

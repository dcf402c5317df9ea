"""The further exercises of `matmul`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, at_most
from ..stop import Check

TILE, BLOCK = 32, (32, 8)
WARPS = 8


def _product(
    answer: cuda.Module, size: int, grid: tuple[int, int], columns: list[str]
) -> tuple[Check, dict[str, float]]:
    """Multiply whole numbers, whose products are exact; return the check and the counters."""
    random = np.random.default_rng(size)
    a, b = (random.integers(-9, 10, (size, size)).astype(np.float32) for _ in range(2))
    c = poisoned((size, size), np.float32)
    launch = answer["multiply"][grid, BLOCK].bind(cuda.to_device(a), cuda.to_device(b), c, size)
    counted = {name: float(value) for name, value in counters.count(launch, columns).items()}
    return compare(f"the product of two matrices of {size} x {size}", c.to_host(), a @ b), counted


def check_mapping(answer: cuda.Module) -> Iterator[Check]:
    """Multiply matrices of whole blocks, for which the counts are exact, and others."""
    for size in (64, 45):
        grid = (blocks_for(size, BLOCK[0]), blocks_for(size, BLOCK[1]))
        check, counted = _product(answer, size, grid, ["sectors/load", "sectors/store"])
        yield check
        if size % TILE == 0:
            yield at_most("a load of a warp touches at most 2.5 sectors on average", counted["sectors/load"], 2.5)
            yield at_most("a store of a warp touches at most 4 sectors", counted["sectors/store"], 4)


def check_registers(answer: cuda.Module) -> Iterator[Check]:
    """Multiply matrices of whole tiles; count the loads from global memory and the wavefronts of shared memory."""
    for size in (32, 96):
        tiles = size // TILE
        check, counted = _product(answer, size, (tiles, tiles), ["loads", "wavefronts"])
        yield check
        # A tile has 32 rows, and a warp loads each row with one instruction.
        most = 2 * TILE * tiles**3
        yield at_most(
            f"the blocks load each of their tiles once: at most {most:,} loads of warps", counted["loads"], most
        )
        # For each k a warp reads one row of b's tile, and an element of a's tile for each of its four rows.
        most = tiles**3 * (2 * TILE + WARPS * TILE * 5)
        yield at_most(f"at most {most:,} wavefronts of shared memory", counted["wavefronts"], most)


FURTHER = [
    Exercise(
        name="easy",
        task="A kernel multiplies two square matrices, with one thread per element of the product. Adjacent lanes "
        "compute elements of the same column, so their loads from `a` and their stores are a row apart. Change the "
        "kernel so that a warp's load touches at most 2.5 sectors on average, and a store at most 4. A block has 32 x "
        "8 threads, and the size need not be a multiple of 32.",
        hints=[
            "Should `threadIdx.x` determine the row or the column?",
            "If `threadIdx.x` determines the column, all lanes of a warp read the same element of `a`: 1 sector. They "
            "read adjacent elements of `b`: 4 sectors.",
        ],
        answer="`threadIdx.x` determines the column, and `threadIdx.y` the row. A load from `a` reads one element for "
        "the whole warp, and a load from `b` reads 32 adjacent elements: 1 and 4 sectors, or 2.5 on average.",
        check=check_mapping,
    ),
    Exercise(
        name="hard",
        task="A block of 32 x 8 threads computes a tile of 32 x 32 elements of the product, with four elements of one "
        "column per thread. It loads tiles of both matrices into shared memory. Then each thread computes its four "
        "elements one after another, and reads its column of the tile of `b` four times. Change the kernel so that a "
        "thread reads each element of `b` once for all four, and a step takes five wavefronts per warp instead of "
        "eight. The size is a multiple of 32.",
        hints=[
            "What do the four elements of a thread have in common, for a given `k`?",
            "Swap the two inner loops: for each `k`, read the element of `b` into a register, and update four sums.",
            "Four sums need an array of four elements, which the compiler keeps in registers if the loop over it is "
            "unrolled.",
        ],
        answer="The loop over `k` is now the outer loop, and the loop over the four rows is the inner one. The "
        "element of `b` is read once per `k` and used four times from a register. The element of `a` is the same for "
        "all lanes: one wavefront. There are now five reads for four multiplications, instead of eight. Fast "
        "libraries take this further, with 8 x 8 elements per thread.",
        check=check_registers,
    ),
]

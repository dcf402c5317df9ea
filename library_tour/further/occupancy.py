"""The further exercises of `occupancy`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import cudart_py as cuda

from ..lesson import Exercise
from ..stop import Check

WARP, MOST_THREADS = 32, 1024
# Compute capability, and registers per thread.
KERNELS = (
    ((9, 0), 32),
    ((9, 0), 40),
    ((9, 0), 64),
    ((9, 0), 96),
    ((9, 0), 168),
    ((8, 6), 32),
    ((8, 6), 72),
    ((7, 5), 48),
)
# Compute capability, threads per block, registers per thread, and blocks that are to be resident.
TILES = (
    ((9, 0), 256, 32, 4), ((9, 0), 256, 32, 8), ((9, 0), 256, 32, 9), ((9, 0), 128, 64, 3), ((9, 0), 1024, 64, 1),
    ((9, 0), 1024, 64, 2), ((8, 6), 256, 40, 4), ((8, 0), 192, 80, 2), ((7, 5), 128, 32, 8),
)  # fmt: skip  # one case per line would be too long


def _warps(capability: tuple[int, int], threads: int, registers: int) -> int:
    return cuda.occupancy(capability, threads, registers).blocks * -(-threads // WARP)


def check_smallest_block(answer: ModuleType) -> Iterator[Check]:
    """Ask about several numbers of registers, for which the best block sizes differ."""
    for capability, registers in KERNELS:
        sizes = range(WARP, MOST_THREADS + 1, WARP)
        expected = max(sizes, key=lambda threads: (_warps(capability, threads, registers), -threads))
        found = answer.smallest_best_block(capability, registers)
        yield Check(
            f"capability {capability[0]}.{capability[1]}, {registers} registers: {expected} threads",
            found == expected,
            f"The answer is {found}.",
        )


def _largest(capability: tuple[int, int], threads: int, registers: int, blocks: int) -> int:
    # Find the smallest size that is too large by bisection: beyond it, no size fits.
    fits, too_large = -1, 2**20
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        if cuda.occupancy(capability, threads, registers, middle).blocks >= blocks:
            fits = middle
        else:
            too_large = middle
    return fits


def check_largest_tile(answer: ModuleType) -> Iterator[Check]:
    """Ask about blocks that fit with some shared memory, and about blocks that do not fit at all."""
    for capability, threads, registers, blocks in TILES:
        found = answer.largest_tile(capability, threads, registers, blocks)
        expected = _largest(capability, threads, registers, blocks)
        noun = "block" if blocks == 1 else "blocks"
        yield Check(
            f"capability {capability[0]}.{capability[1]}, {blocks} resident {noun} of {threads} threads with "
            f"{registers} registers each: {expected} bytes",
            found == expected,
            f"The answer is {found}.",
        )


FURTHER = [
    Exercise(
        name="easy",
        task="Write `smallest_best_block(capability, registers) -> int`. It returns the smallest block size with "
        "which the number of resident warps on a multiprocessor is largest. Block sizes are multiples of 32, up to "
        "1,024 threads. Each thread needs `registers` registers, and blocks use no shared memory.",
        hints=[
            "`cuda.occupancy(capability, threads, registers).blocks` is the number of resident blocks. How many warps "
            "is that?",
            "There are only 32 sizes. Try all of them, starting with the smallest, and keep the first one with the "
            "most warps.",
        ],
        answer="The function tries the 32 sizes, starting with the smallest, and keeps a size only if it yields more "
        "resident warps than the best one so far. With 32 registers per thread, blocks of 64 threads fill a "
        "multiprocessor of an H200; with 168 registers, no block size does. A larger block is not better in itself, "
        "and in a small block, fewer threads wait for one another at a barrier.",
        check=check_smallest_block,
    ),
    Exercise(
        name="hard",
        task="Write `largest_tile(capability, threads, registers, blocks) -> int`. It returns the largest number of "
        "bytes of shared memory that each block can use while at least `blocks` blocks remain resident on a "
        "multiprocessor. It returns -1 if fewer blocks are resident even without shared memory. For now, the function "
        "divides 228 KiB by the number of blocks.",
        hints=[
            "The hardware reserves some shared memory for each block, and rounds sizes up. `cuda.occupancy(capability, "
            "threads, registers, shared_bytes)` takes both into account.",
            "More shared memory per block never makes more blocks resident. What is the fastest way to find the "
            "largest size that still fits?",
            "Bisect an interval. Its lower end fits, or is -1, and its upper end, for example 2^20, does not fit.",
        ],
        answer="The number of resident blocks never increases with the size, so the function bisects the interval "
        "between a size that fits and one that does not. It finds any size up to 1 MiB in at most 21 steps. A formula "
        "would have to know the reserved part, the allocation unit and the limit per block for each compute "
        "capability.",
        check=check_largest_tile,
    ),
]

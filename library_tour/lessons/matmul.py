"""The lesson of `matmul`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

THREADS, WARP = 256, 32


def check(answer: cuda.Module) -> Iterator[Check]:
    """Find the nearest of whole tiles of places, and of others; count the loads of warps."""
    for points, places in ((2 * THREADS, 2 * THREADS), (300, 333), (40, 7)):
        random = np.random.default_rng(points)
        at, among = (random.integers(-500, 500, (count, 2)).astype(np.float32) for count in (points, places))
        out = poisoned(points, np.float32)
        grid = blocks_for(points, THREADS)
        launch = answer["nearest"][grid, THREADS].bind(cuda.to_device(at), cuda.to_device(among), out, points, places)
        counted = counters.count(launch, ["loads"])
        expected = np.square(at[:, None] - among).sum(axis=2).min(axis=1)
        yield compare(f"{points} points find the nearest of {places} places", out.to_host(), expected)
        if points % THREADS == places % THREADS == 0:
            # A load for each coordinate of a warp's points, and of a block's share of the places.
            most = 2 * points // WARP + 2 * grid * places // WARP
            yield at_most(f"at most {most} loads: a block reads each place once", counted["loads"], most)


LESSON = Lesson(
    learn=[
        "Why a matrix product is limited by where its numbers come from: each multiply-add needs two of them.",
        "How a tile in shared memory lets one load from global memory serve a whole row or column of threads.",
        "How a thread that computes several elements uses a number in a register several times.",
        "How copies in the background fill the next tile while the present one is multiplied.",
    ],
    steps=[
        Step(
            name="one block",
            shows=["matmul_one_block"],
            text="The thread's place in the block is the element's place in the matrix. A block has 1,024 threads at "
            "most, so that the matrix has 32 x 32 elements at most. More blocks compute the same elements again, "
            "because nothing in the kernel depends on `blockIdx`.",
        ),
        Step(
            name="a thread an element",
            shows=["matmul_elements"],
            text="With `blockIdx` in the index, blocks share out the matrix. An element still needs `k` numbers of `a` "
            "and `k` of `b` from global memory: two loads for each multiply-add.",
        ),
        Step(
            name="tiles of 16 x 16",
            shows=["element", "matmul_tile<16>"],
            text="The block loads a tile of `a` and one of `b`, one number of each for every thread. After the barrier "
            "16 threads use each number of the tiles, so there are 16 times fewer loads. The second barrier keeps the "
            "next tiles from being written while others still read these. `element` gives zeros beyond the matrices, "
            "which add nothing to the sums.",
        ),
        Step(
            name="8 x 8 a thread",
            shows=["read_four", "element", "matmul_registers<8>"],
            text="Now shared memory is the limit, since a multiply-add reads two numbers there. A thread therefore "
            "computes 8 x 8 elements: it reads 8 numbers of each tile into registers, four at a time, and uses each of "
            "these 16 numbers 8 times, for 64 multiply-adds.",
        ),
        Step(
            name="8 x 16, pipelined",
            shows=["copy_async", "wait_for_copies", "Copier", "matmul_pipelined"],
            text="A thread has 8 x 16 elements. There are two stages of tiles: while one is multiplied, `cp.async` "
            "copies the next from global to shared memory in the background, without registers. In the same way the "
            "numbers of the next step are read from shared memory before they are needed.",
        ),
    ],
    look_at=[
        "Without a GPU, the column 'loads' falls with the width of the tile: from one kind of tile to the next, a "
        "number that was loaded serves twice as many threads.",
        "The column 'wavefronts' counts passes through shared memory. It falls from tiles to several elements a "
        "thread, which is what the registers are for.",
        "Tiles of 8 x 8 were no faster on an H200 than no tiles at all, with 5.2 and 5.3 TFLOP/s, because its L1 cache "
        "serves the loads of a thread an element. Tiles of 32 x 32 reached 8.7, 8 x 8 elements a thread 28.5, and the "
        "pipelined kernel 49.6, beside 51.4 of cuBLAS, for 4,096 rows.",
        "The film shows the phases of a product by tiles of 2 x 2: the tiles in shared memory move along a row of `a` "
        "and down a column of `b`, and the sums in `c` are done after the last phase.",
    ],
    exercise=Exercise(
        task="For each of `n` points, find the squared distance to the nearest of `m` places. The kernel's threads go "
        "through all places, and each warp of a block loads them anew. Change it so that a block of 256 threads loads "
        "each place once. Neither `n` nor `m` needs to be a multiple of 256.",
        hints=[
            "The places play the part of a row of tiles: the block loads 256 of them, a thread one, and then all "
            "threads use all of them. Which threads have to take part in the loading, and where do barriers belong?",
        ],
        answer="A thread loads one place of a tile and computes with 256. One load of a warp fetches 32 places, where "
        "before it fetched one for all its lanes. Threads beyond the last point help to load and reach every barrier, "
        "so that none returns early. The last tile may be a part of one, hence `count`.",
        check=check,
    ),
    course="The courses give no times for this topic. They state that tiles cut the reads from global memory by the "
    "tile's width.",
)

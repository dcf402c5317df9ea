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
    """Find the nearest places with full and with partial tiles; count the loads of warps."""
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
            # One load per coordinate of the points of a warp, and of the places that a warp loads for its block.
            most = 2 * points // WARP + 2 * grid * places // WARP
            yield at_most(f"at most {most} loads: a block loads each place once", counted["loads"], most)


LESSON = Lesson(
    why="Multiplying two 4,096 x 4,096 matrices takes 137 billion operations. On an H200, the obvious kernel reaches "
    "5.3 TFLOP/s, and the last kernel of this lesson reaches 49.4 TFLOP/s. cuBLAS, NVIDIA's own library, reaches 51.4 "
    "TFLOP/s.\n\n"
    "All of them execute the same multiply-adds. They differ in where the operands come from. The same steps, from "
    "global memory to shared memory to registers, speed up every kernel that uses its data more than once.",
    learn=[
        "say how often a kernel loads each element, and how often it could reuse it.",
        "use tiles in shared memory to load each element once per block.",
        "let a thread compute several elements (register tiling), so that registers take over where shared memory is "
        "the limit.",
        "copy the next tile asynchronously while the current one is multiplied.",
    ],
    idea="Each multiply-add needs two operands. Global memory delivers far fewer operands than a multiprocessor can "
    "multiply. Shared memory delivers more, but only registers can keep up. So each element should be loaded once and "
    "used often.\n\n"
    "A **tile** is a square part of a matrix. A block loads a tile of `a` and a tile of `b` into shared memory, and "
    "each of its threads uses a whole row of one and a whole column of the other. With 16 x 16 tiles, every loaded "
    "element is used by 16 threads. The product is computed in phases, one pair of tiles after another, with a barrier "
    "before and after each multiplication.\n\n"
    "Then shared memory becomes the limit, with two reads per multiply-add. A thread that computes 8 x 8 elements "
    "reads 16 values into registers and performs 64 multiply-adds with them.\n\n"
    "The rule of thumb: count operations per element loaded, at each level of memory, and raise that number where it "
    "is lowest.",
    steps=[
        Step(
            name="one block",
            shows=["matmul_one_block"],
            text="A thread's index in its block is also the index of its element in the matrix. A block has at most "
            "1,024 threads, so the matrix has at most 32 x 32 elements. Additional blocks compute the same elements "
            "again, because nothing in the kernel depends on `blockIdx`.",
        ),
        Step(
            name="one thread per element",
            shows=["matmul_elements"],
            text="With `blockIdx` in the index, each block computes its own part of the matrix. Each element of the "
            "product still needs `k` elements of `a` and `k` of `b` from global memory: two loads per multiply-add.",
        ),
        Step(
            name="tiles of 16 x 16",
            shows=["element", "matmul_tile<16>"],
            text="The block loads a tile of `a` and one of `b`; each thread loads one element of each. After the first "
            "barrier, 16 threads use each element, so the number of loads falls by a factor of 16. The second barrier "
            "keeps a thread from overwriting a tile that others are still reading. Outside a matrix, `element` returns "
            "zero, which adds nothing to the sums.",
        ),
        Step(
            name="8 x 8 per thread",
            shows=["read_four", "element", "matmul_registers<8>"],
            text="Each thread computes 8 x 8 elements. It reads 8 elements of each tile into registers, four at a "
            "time, and uses each of these 16 values 8 times, for 64 multiply-adds.",
        ),
        Step(
            name="8 x 16, pipelined",
            shows=["copy_async", "wait_for_copies", "Copier", "matmul_pipelined"],
            text="Skip this step on a first reading: the exercises need only steps 1 to 4. Each thread computes 8 x 16 "
            "elements. There are two pairs of tiles (double buffering). While one pair is multiplied, `cp.async` "
            "copies the next one asynchronously from global to shared memory, bypassing the registers. Likewise, the "
            "values for the next step are read from shared memory before they are needed.",
        ),
        Step(
            name="tensor cores, tensor maps",
            shows=["copy_box", "descriptor", "multiply", "matmul_hopper"],
            text="Skip this step on a first reading. The elements are in half precision, and tensor cores multiply "
            "tiles directly from shared memory. One thread does nothing but start copies of tiles, up to four ahead. "
            "The Tensor Memory Accelerator (TMA) performs them, as described by tensor maps. One barrier per tile "
            "counts the bytes that have arrived, and another tells the thread when the tile may be overwritten. The "
            "TMA fills elements outside the matrices with zeros, so partial tiles need no code. This kernel needs "
            "compute capability 9.0.",
        ),
    ],
    look_at=[
        "Without a GPU, look at the 'loads' column. The number of loads falls by a factor equal to the tile's width, "
        "since that many threads use each loaded element.",
        "The 'wavefronts' column shows how many wavefronts the accesses to shared memory take. The number falls when a "
        "thread computes several elements, since these share the values that the thread keeps in registers.",
        "On the H200, 8 x 8 tiles are no faster than no tiles at all (5.2 and 5.3 TFLOP/s), because the L1 cache "
        "serves the loads of the simple kernel. The kernel with 32 x 32 tiles reaches 8.6 TFLOP/s, the one with 8 x 8 "
        "elements per thread 28.5 TFLOP/s, and the pipelined kernel 49.4 TFLOP/s. The '8192 TFLOP/s' column shows the "
        "rates for matrices with 8,192 rows.",
        "The film, on the page with pictures, shows the phases of a product with 2 x 2 tiles. The tiles in shared "
        "memory move along a row of `a` and down a column of `b`. The sums in `c` are complete after the last phase.",
        "The '4 x 4 per thread' row is the same kernel as the 8 x 8 one, with 16 elements per thread. In the second "
        "table, 'CPU, three loops' is Python code on the host.",
    ],
    exercise=Exercise(
        task="For each of `n` points, find the squared distance to the nearest of `m` places. In the given kernel, "
        "each thread goes through all places, and every warp of a block loads all of them. Change the kernel so that a "
        "block of 256 threads loads each place only once. Neither `n` nor `m` needs to be a multiple of 256.",
        hints=[
            "The places play the role of a row of tiles: load 256 of them into shared memory, use them, then load the "
            "next 256.",
            "Each thread loads one place of the tile. Which threads must take part in loading, even if they have no "
            "point?",
            "Two barriers per tile are needed, one after loading and one before the next tile overwrites it. The last "
            "tile may be partial, so count its places.",
        ],
        answer="Each thread loads one place of a tile and computes with all 256. One load of a warp now fetches 32 "
        "places; before, it fetched a single place for all its lanes. Threads beyond the last point still help with "
        "the loading and reach every barrier, so no thread returns early. The last tile may be partial, which is why "
        "the kernel needs `count`.",
        check=check,
    ),
    course="The lectures on which the tour is based give no times for this topic. They state that tiles reduce the "
    "number of reads from global memory by a factor equal to the tile's width.",
)

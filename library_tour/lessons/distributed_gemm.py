"""The lesson of `distributed_gemm`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py import libraries

from ..checks import compare
from ..lesson import Exercise, Lesson, Step
from ..stop import Check


class Worker:
    """Strips of A, B and C in the memory of one worker, and room for the strip of B of another worker."""

    def __init__(self, a: NDArray[np.float32], b: NDArray[np.float32], room: int) -> None:
        self.a, self.b = cuda.to_device(a), cuda.to_device(b)
        self.c = cuda.zeros((a.shape[0], b.shape[1]), np.float32)
        self.room = cuda.zeros((room, b.shape[1]), np.float32)
        self.own_memory = True

    def add_product(self, a: cuda.DeviceArray, b: cuda.DeviceArray) -> None:
        """Queue the product of two matrices in the memory of this worker, and add it to `c`."""
        self.own_memory &= self._has(a) and self._has(b)
        libraries.gemm(a, b, self.c, beta=1.0)

    def _has(self, array: cuda.DeviceArray) -> bool:
        starts = ((int(own.pointer), own.nbytes) for own in (self.a, self.b, self.room))
        return any(start <= int(array.pointer) < start + size for start, size in starts)


def check(answer: ModuleType) -> Iterator[Check]:
    """Multiply whole numbers, exactly, in strips of equal and of different heights."""
    for rows, inner, columns, count in ((32, 32, 32, 4), (25, 50, 21, 3)):
        random = np.random.default_rng(5)
        a = random.integers(-8, 9, (rows, inner)).astype(np.float32)
        b = random.integers(-8, 9, (inner, columns)).astype(np.float32)
        strips = [np.array_split(matrix, count) for matrix in (a, b)]
        workers = [Worker(of_a, of_b, -(-inner // count)) for of_a, of_b in zip(*strips, strict=True)]
        answer.multiply(workers)
        got = np.concatenate([worker.c.to_host() for worker in workers])
        yield compare(f"{count} workers: the strips of a product with an inner dimension of {inner}", got, a @ b)
        fact = f"{count} workers: each multiplies matrices in its own memory"
        yield Check(fact, all(worker.own_memory for worker in workers))


LESSON = Lesson(
    why="Some matrices do not fit on one GPU, and some products take too long there. Two H200s multiply matrices of "
    "16,384 rows at 84 TFLOP/s, where one reaches 53: an efficiency of 0.80. At 2,048 rows the same program on two "
    "devices reaches 4 TFLOP/s, twelve times *less* than one device alone.\n\n"
    "The difference is the ratio of work to communication. The work grows with the third power of the size, and the "
    "elements that must travel with the second. So the question is never just whether to distribute, but at what size "
    "it begins to pay.",
    learn=[
        "distribute matrices in blocks over a grid of devices, so that none needs a whole matrix.",
        "write a product as a sum of products of panels: some columns of A and the same number of rows of B.",
        "explain why a grid of blocks sends less than strips do.",
        "explain why larger matrices scale better.",
    ],
    idea="Arrange the workers in a grid and give each one block of C. A block needs a whole strip of rows of A "
    "and a whole strip of columns of B, but not all at once. A **panel** is a few columns of A and the rows of B "
    "with the same indices. Their product is one term of C. So the workers need only one panel at a time: each "
    "panel of A is sent along the rows of the grid and each panel of B along its columns, and every worker adds "
    "the product of what arrived to its block. This algorithm is called **SUMMA**.\n\n"
    "With P workers in a square grid, each element travels to about the square root of P workers. If B were in "
    "strips of rows and every worker needed all of it, each element would travel to all P.\n\n"
    "The rule of thumb: grids instead of strips, room for two panels, and the next panel on its way while one is "
    "multiplied.",
    steps=[
        Step(
            name="one device",
            shows=["reference", "alone_ms"],
            text="The baseline: one call to cuBLAS on one device.",
        ),
        Step(
            name="the plan",
            shows=["Plan"],
            text="The matrices are cut into blocks over the grid. With four workers the grid is 2 x 2, and each "
            "worker has a quarter of C. `width` is the width of a panel. The panels of A are dealt out to the columns "
            "of the grid one after another, and those of B to its rows. `bytes_sent` follows from the grid: with P_r "
            "rows and P_c columns of workers, each element of A goes to P_c - 1 others, and each element of B to P_r "
            "- 1.",
        ),
        Step(
            name="SUMMA",
            shows=["Worker", "Grid"],
            text="For each panel, its owners copy their part of A along their row of the grid, and their part of B "
            "along their column. Every worker then adds the product of the two parts to its block of C; `beta` is 0 "
            "for the first panel. A worker has room for two panels. So the next panel travels in the stream `copies` "
            "while one is multiplied in `compute`. The event `free` says when a slot may be overwritten.",
        ),
        Step(
            name="in ranks",
            shows=["RankGrid"],
            text="The same plan, where each worker is a process. `comm.Split` makes a communicator for each row and "
            "each column of the grid, and `Bcast` sends a panel to it, through pinned memory on the host. The next "
            "panel travels while the device multiplies, but the path through the host is much slower than NVLink.",
        ),
        Step(
            name="redistributed",
            shows=["checked_rows"],
            text="Data often arrives in strips of whole rows. Each worker finds, for each other worker, the "
            "elements that the old layout gives to one and the new layout to the other. It sends them and joins what "
            "it receives. Then the same happens in reverse.",
        ),
    ],
    look_at=[
        "On the simulator, see the column 'bytes sent': 4 workers in a grid of 2 x 2 send A once and B once, "
        "so 2 x 4 bytes x n^2. In strips each element of B would go to all 3 others.",
        "Two H200s with NVLink reach 71, 84 and 94 TFLOP/s with SUMMA in one process at 8,192, 16,384 and "
        "32,768 rows: an efficiency of 0.69, 0.80 and 0.88.",
        "The same two as ranks, with panels sent through the host by MPI, reach 11, 20 and 44 TFLOP/s. cuBLASMp with "
        "strips reaches 101, 106 and 108 TFLOP/s, an efficiency of 0.98 to 1.00.",
        "The products of whole numbers are compared exactly. With other elements the order of the additions, "
        "which the panels decide, changes the last bits.",
    ],
    exercise=Exercise(
        task="Each worker has a strip of rows of A, of B and of C, which is zero, and room for one more strip of B. "
        "Write `multiply(workers)`, which adds the product of A and B to C. `worker.add_product(a, b)` adds a product "
        "to `worker.c`. Both matrices must lie in the memory of this worker: `worker.a`, `worker.b`, `worker.room` or "
        "slices of them. `cuda.memcpy_peer(target, source)` copies from one worker to another. Strips may differ in "
        "height; the room is as tall as the tallest strip of B.",
        hints=[
            "The strip of B with the rows `begin` to `end` is a panel. Which columns of its strip of A does "
            "every worker need for it?",
            "All workers need every strip of B. Loop over the owners; in each pass, copy the owner's strip to "
            "the room of every worker and add the product.",
            "The product is `worker.a[:, begin:end]` times `worker.room[:end - begin]`.",
        ],
        answer="Every strip of B is copied to all workers, one strip after another. The rows `begin` to `end` of B "
        "belong to the columns `begin` to `end` of A, and the sum of these products over all strips is the whole "
        "product. No worker ever holds more of B than its own strip and one other. A worker need not copy its own "
        "strip. With room for two strips, the next one could travel while one is multiplied.",
        check=check,
    ),
    course="The lectures give no figures for this topic.",
)

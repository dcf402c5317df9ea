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
    """Strips of A, B and C in the memory of one worker, and room for another worker's strip of B."""

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
    """Multiply whole numbers, whose products are exact, in strips of equal and of different heights."""
    for rows, inner, columns, count in ((32, 32, 32, 4), (25, 50, 21, 3)):
        random = np.random.default_rng(5)
        a = random.integers(-8, 9, (rows, inner)).astype(np.float32)
        b = random.integers(-8, 9, (inner, columns)).astype(np.float32)
        strips = [np.array_split(matrix, count) for matrix in (a, b)]
        workers = [Worker(of_a, of_b, -(-inner // count)) for of_a, of_b in zip(*strips, strict=True)]
        answer.multiply(workers)
        got = np.concatenate([worker.c.to_host() for worker in workers])
        yield compare(f"{count} workers: the strips of the product, with an inner dimension of {inner}", got, a @ b)
        fact = f"{count} workers: each multiplies matrices in its own memory"
        yield Check(fact, all(worker.own_memory for worker in workers))


LESSON = Lesson(
    why="Some matrices do not fit on one GPU, and some products take too long on one. Two H200s multiply 16,384 x "
    "16,384 matrices at 84 TFLOP/s. One H200 reaches 53 TFLOP/s, so the efficiency is 0.80. With 2,048 x 2,048 "
    "matrices, the same program on two devices reaches only 4 TFLOP/s, a twelfth of the rate of one device alone.\n\n"
    "The reason is the ratio of work to communication. The work grows with the cube of the size, but the number of "
    "elements that must be sent grows only with its square. So the question is not just whether to distribute a "
    "product, but at what size that begins to pay off.",
    learn=[
        "distribute matrices in blocks over a grid of devices, so that no device needs a whole matrix.",
        "write a product as a sum of products of panels, where a panel is a few columns of A and the matching rows of "
        "B.",
        "explain why blocks on a grid need less communication than strips.",
        "explain why larger matrices scale better.",
    ],
    idea="Arrange the workers in a grid and give each worker one block of C. To compute its block, a worker needs a "
    "whole strip of rows of A and a whole strip of columns of B, but not all at once. A **panel** is a few columns of "
    "A and the rows of B with the same indices. C is the sum of the products of all panels, so the workers need only "
    "one panel at a time. The A part of a panel is sent along the rows of the grid, and the B part along its columns. "
    "Every worker multiplies the two parts that it receives and adds the product to its block. This algorithm is "
    "called **SUMMA**.\n\n"
    "If P workers form a square grid, each element is sent to about the square root of P workers. If B were "
    "distributed in strips of rows, every worker would need all of B, and each element would be sent to all P "
    "workers.\n\n"
    "The rule of thumb: use a grid instead of strips, give each worker room for two panels, and send the next panel "
    "while the workers multiply the current one.",
    steps=[
        Step(
            name="one device",
            shows=["reference", "alone_ms"],
            text="The baseline: one call to cuBLAS on one device.",
        ),
        Step(
            name="the plan",
            shows=["Plan"],
            text="The matrices are divided into blocks, which are distributed over the grid. With four workers, the "
            "grid is 2 x 2, and each worker has a quarter of C. `width` is the width of a panel. The columns of the "
            "grid take turns owning the A parts of the panels, and the rows of the grid take turns owning the B parts. "
            "`bytes_sent` follows from the grid: with P_r rows and P_c columns of workers, each element of A is sent "
            "to P_c - 1 other workers, and each element of B to P_r - 1.",
        ),
        Step(
            name="SUMMA",
            shows=["Worker", "Grid"],
            text="For each panel, the workers that own it copy their parts of A along their rows of the grid, and "
            "their parts of B along their columns. Every worker then adds the product of the two parts to its block of "
            "C; `beta` is 0 for the first panel. A worker has room for two panels, so the next panel is copied in the "
            "`copies` stream while the current one is multiplied in the `compute` stream. The events in `free` mark "
            "when the space for a panel may be overwritten.",
        ),
        Step(
            name="in ranks",
            shows=["RankGrid"],
            text="The plan is the same, but each worker is a process. `comm.Split` creates a communicator for each "
            "row and each column of the grid, and `Bcast` broadcasts a part of a panel within one of them, through "
            "pinned memory on the host. The next panel is sent while the device multiplies, but the path through the "
            "host is much slower than NVLink.",
        ),
        Step(
            name="redistributed",
            shows=["checked_rows"],
            text="Data often arrives in strips of whole rows. Each worker finds the elements that it owns in the old "
            "layout and that another worker owns in the new one. It sends them to that worker, and assembles its own "
            "block from the elements that it receives. The same steps in reverse restore the strips.",
        ),
    ],
    look_at=[
        "On the simulator, look at the 'bytes sent' column. Four workers in a 2 x 2 grid send A once and B once, "
        "or 2 x 4 bytes x n^2 in total. With strips, each element of B would be sent to all three other workers.",
        "Two H200s with NVLink, running SUMMA in one process, reach 71, 84 and 94 TFLOP/s for square matrices with "
        "8,192, 16,384 and 32,768 rows. The efficiencies are 0.69, 0.80 and 0.88.",
        "If each H200 has its own rank, and MPI sends the panels through the host, they reach 11, 20 and 44 TFLOP/s. "
        "cuBLASMp with strips reaches 101, 106 and 108 TFLOP/s. Its efficiency ranges from 0.98 to 1.00.",
        "The check multiplies whole numbers, so the products must match to the last bit. With other values, the last "
        "bits can differ, because the panels change the order of the additions.",
    ],
    exercise=Exercise(
        task="Each worker has a strip of rows of A, of B and of C, and room for one more strip of B. C is zero at the "
        "start. Write `multiply(workers)`, which adds the product of A and B to C. `worker.add_product(a, b)` adds "
        "the product of `a` and `b` to `worker.c`. Both must be in this worker's memory: `worker.a`, `worker.b`, "
        "`worker.room` or slices of these. `cuda.memcpy_peer(target, source)` copies from one worker's memory to "
        "another's. Strips may differ in height; `worker.room` is as tall as the tallest strip of B.",
        hints=[
            "The strip that contains rows `begin` to `end` of B is the B part of a panel. Which columns of its own "
            "strip of A does each worker multiply by it?",
            "All workers need every strip of B. Loop over the owners; in each iteration, copy the owner's strip to "
            "every worker's `room` and add the product.",
            "The product is `worker.a[:, begin:end]` times `worker.room[:end - begin]`.",
        ],
        answer="Every strip of B is copied to all workers, one strip after another. Columns `begin` to `end` of A are "
        "multiplied by rows `begin` to `end` of B, and the products for all strips add up to the whole product. No "
        "worker ever holds more of B than its own strip and one other. A worker could multiply its own strip without "
        "copying it. With room for two strips, the next strip could be copied while the current one is multiplied.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)

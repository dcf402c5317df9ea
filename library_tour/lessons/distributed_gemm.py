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
    """Strips of A, B and C in one worker's memory, and room for another worker's strip of B."""

    def __init__(self, a: NDArray[np.float32], b: NDArray[np.float32], room: int) -> None:
        self.a, self.b = cuda.to_device(a), cuda.to_device(b)
        self.c = cuda.zeros((a.shape[0], b.shape[1]), np.float32)
        self.room = cuda.zeros((room, b.shape[1]), np.float32)
        self.own_memory = True

    def add_product(self, a: cuda.DeviceArray, b: cuda.DeviceArray) -> None:
        """Queue the product of two matrices in the memory of this worker, and its addition to `c`."""
        self.own_memory &= self._has(a) and self._has(b)
        libraries.gemm(a, b, self.c, beta=1.0)

    def _has(self, array: cuda.DeviceArray) -> bool:
        starts = ((int(own.pointer), own.nbytes) for own in (self.a, self.b, self.room))
        return any(start <= int(array.pointer) < start + size for start, size in starts)


def check(answer: ModuleType) -> Iterator[Check]:
    """Multiply whole numbers, exactly, in strips that are and are not of the same height."""
    for rows, inner, columns, count in ((32, 32, 32, 4), (25, 50, 21, 3)):
        random = np.random.default_rng(5)
        a = random.integers(-8, 9, (rows, inner)).astype(np.float32)
        b = random.integers(-8, 9, (inner, columns)).astype(np.float32)
        strips = [np.array_split(matrix, count) for matrix in (a, b)]
        workers = [Worker(of_a, of_b, -(-inner // count)) for of_a, of_b in zip(*strips, strict=True)]
        answer.multiply(workers)
        got = np.concatenate([worker.c.to_host() for worker in workers])
        yield compare(f"{count} workers: the strips of the product of {inner} columns and rows", got, a @ b)
        fact = f"{count} workers: each multiplies what lies in its own memory"
        yield Check(fact, all(worker.own_memory for worker in workers))


LESSON = Lesson(
    learn=[
        "How matrices that no device could hold alone are divided into blocks over a grid of devices.",
        "How a product becomes a sum of products of panels: some columns of A with as many rows of B.",
        "Why a grid of blocks sends less than strips do: a panel goes to one row and one column of the grid only.",
        "Why larger matrices scale better: the work grows with the third power of the size, and the panels with the "
        "second.",
    ],
    steps=[
        Step(
            name="one device",
            shows=["reference", "alone_ms"],
            text="What all others are compared with: one call of cuBLAS on one device.",
        ),
        Step(
            name="the plan",
            shows=["Plan"],
            text="The matrices are cut into blocks over the grid: with four workers a grid of 2 x 2, and each has a "
            "quarter of C. `width` is the width of a panel. The panels of A are dealt out to the columns of the grid "
            "in turn, those of B to its rows. `bytes_sent` follows from the grid: with P_r rows and P_c columns of "
            "workers, each number of A goes to P_c - 1 others and each of B to P_r - 1.",
        ),
        Step(
            name="SUMMA",
            shows=["Worker", "Grid"],
            text="For each panel, its owners copy their part of A along their row of the grid, and their part of B "
            "along their column. Every worker then adds the product of the two parts to its block of C; `beta` is 0 "
            "for the first panel. A worker has room for two panels. So the next one travels in the stream `copies` "
            "while one is multiplied in `compute`. The event `free` says when a slot may be written again.",
        ),
        Step(
            name="in ranks",
            shows=["RankGrid"],
            text="The same plan where each worker is a process. `comm.Split` makes a communicator of each row and of "
            "each column of the grid, and `Bcast` brings a panel to it, through pinned memory of the host. The next "
            "panel travels while the device multiplies, but the way through the host is much slower than NVLink.",
        ),
        Step(
            name="redistributed",
            shows=["checked_rows"],
            text="Data often comes in strips of whole rows. Each worker finds for each other one the numbers that both "
            "layouts give to the two, sends them, and joins what it receives. Then it goes back the same way.",
        ),
    ],
    look_at=[
        "Without a GPU, the column 'bytes sent': 4 workers in a grid of 2 x 2 send A once and B once, so 2 x 4 bytes "
        "x n^2. In strips each number of B would go to all 3 others.",
        "Two H200s with NVLink: SUMMA in one process reaches 71, 84 and 94 TFLOP/s at 8,192, 16,384 and 32,768 rows, "
        "an efficiency of 0.69, 0.80 and 0.88.",
        "The same two in ranks, with panels through the host by MPI: 11, 20 and 44 TFLOP/s. cuBLASMp with strips: "
        "101, 106 and 108 TFLOP/s, an efficiency of 0.98 to 1.00.",
        "The products of whole numbers are compared exactly. With other numbers the order of the additions, which the "
        "panels decide, changes the last bits.",
    ],
    exercise=Exercise(
        task="Each worker has a strip of rows of A, of B and of C, which is zero, and room for one more strip of B. "
        "Write `multiply(workers)`, which adds the product of A and B to C. `worker.add_product(a, b)` adds a product "
        "to `worker.c`; both matrices must lie in the memory of this worker, as `worker.a`, `worker.b`, `worker.room` "
        "or slices of them. `cuda.memcpy_peer(target, source)` copies from one worker to another. Strips need not "
        "have the same height; the room is as high as the highest of B.",
        hints=[
            "The strip of B with the rows `begin` to `end` is a panel. Which columns of its strip of A does every "
            "worker need for it?",
        ],
        answer="Every strip of B is brought to all workers, one after the other. The rows `begin` to `end` of B "
        "belong to the columns `begin` to `end` of A, and the sum of these products over all strips is the whole "
        "product. No worker ever has more of B than its own strip and one other. A worker need not copy its own strip; "
        "with room for two strips, the next one could travel while one is multiplied.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)

"""The lesson of `sparse`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCK, LONG = 128, 64


def check(answer: cuda.Module) -> Iterator[Check]:
    """Multiply matrices with long rows, counting their loads, and with rows of any length, some of them empty."""
    generator = np.random.default_rng(5)
    for name, lengths in (
        (f"rows of {LONG}", np.full(40, LONG)),
        ("rows of 0 to 99", generator.integers(0, 100, 77)),
    ):
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        count, rows = int(offsets[-1]), len(lengths)
        # A band of adjacent columns in each row.
        columns = np.concatenate([np.arange(length) + 8 * (i % 5) for i, length in enumerate(lengths)]).astype(np.int32)
        values = generator.integers(-9, 10, count).astype(np.float32)
        x = generator.integers(-9, 10, 160).astype(np.float32)
        expected = np.array(
            [values[begin:end] @ x[columns[begin:end]] for begin, end in itertools.pairwise(offsets)],
            np.float32,
        )
        y = poisoned(rows, np.float32)
        operands = [cuda.to_device(each) for each in (offsets, columns, values, x)]
        launch = answer["multiply"][blocks_for(32 * rows, BLOCK), BLOCK].bind(*operands, y, rows)
        counted = counters.count(launch, ["sectors/load"])
        yield compare(f"the product of {name}", y.to_host(), expected)
        if "of 0" not in name:
            yield at_most(f"{name}: a load of a warp touches at most 4 sectors on average", counted["sectors/load"], 4)


LESSON = Lesson(
    why="Matrices from grids, networks and finite elements consist almost entirely of zeros. The Laplacian on a 2,048 "
    "x 2,048 grid has 4 million rows. As a dense matrix in double precision, it would need 141 TB. As a sparse matrix "
    "it needs 0.3 GB, and an H200 multiplies it by a vector in 0.093 ms.\n\n"
    "The choice of format matters. With rows stored one after another (CSR), the product runs at 57 % of the speed of "
    "a copy. With rows stored in slices that suit the lanes of a warp (SELL), it runs at 79 %.",
    learn=[
        "describe how a sparse matrix is stored: by rows (CSR), by coordinates (COO) or in slices (SELL).",
        "explain why memory limits a product with a vector, and why multiplying several vectors at once is cheaper.",
        "solve a system with conjugate gradients without making the host wait in any iteration.",
        "speed up an iterative solver with a preconditioner made of triangular solves.",
        "say what fraction of the elements must be zero before a sparse product is faster than a dense one.",
    ],
    idea="For each stored element, a sparse product reads the element and its column index, but performs only two "
    "operations, so memory is the limit. The three formats differ in how they record the position of an element. "
    "**COO** stores a row index and a column index per element. **CSR** stores the column indices row by row, and one "
    "offset per row. **SELL** stores slices of 32 rows column by column, so that the 32 lanes of a warp, one per row, "
    "read adjacent elements.\n\n"
    "An iterative solver such as **conjugate gradients** needs a few scalars in each iteration. If the host reads one "
    "of them, the device waits for the host every time. If they stay on the device, an iteration can be captured as a "
    "**graph**: a recorded sequence of operations that the host launches with a single call.\n\n"
    "The rule of thumb: count the bytes of the format, let adjacent lanes read adjacent elements, and keep scalars on "
    "the device.",
    steps=[
        Step(
            name="SpMV, CSR",
            shows=["laplacian", "format_row[host:got]"],
            text="The Laplacian on a grid has up to five nonzero elements per row. The same matrix is stored in each "
            "of the three formats, and `spmv` multiplies each version by a vector. `poisoned` allocates the result, "
            "filled with values that are wrong until they are overwritten.",
        ),
        Step(
            name="SpMM, 8 vectors",
            shows=["product_rows[dense:got]", "product_rows[square]", "product_rows[sampled:found]"],
            text="With several vectors, the matrix is read once for all of them. SpGEMM multiplies two sparse "
            "matrices, and the result has its own sparsity pattern. SDDMM computes a product of dense matrices, but "
            "only at the positions that a sparse matrix stores.",
        ),
        Step(
            name="SpSV, lower triangle",
            shows=["solve_rows[right]", "solve_rows[x]", "solve_rows[columns:back]"],
            text="`spsv` solves a system with one triangle of a matrix and ignores the elements of the other triangle. "
            "Each unknown depends on earlier ones, so the first call analyses which unknowns can be computed at the "
            "same time. Later calls use the result. `spsm` solves for several columns at once, and `sparse_convert` "
            "changes the format.",
        ),
        Step(
            name="sparse x dense vector",
            shows=["vector_rows[vector]", "vector_rows[inner]", "vector_rows[got]"],
            text="A vector may also be sparse. The product then reads only those elements of the other operand that "
            "correspond to stored elements of the sparse vector.",
        ),
        Step(
            name="conjugate gradients",
            shows=[
                "CapturedIteration.queue",
                "advance",
                "turn",
                "remember",
                "CapturedIteration.__init__[graph:_executable]",
                "CapturedIteration.launch",
            ],
            text="`queue` performs one iteration. It multiplies the search direction p by the matrix, q = a p, and "
            "`dot` stores the dot product of p and q on the device. `advance` reads it there, moves the solution x "
            "along p and updates the residual r. The second `dot` computes the squared norm of the new r. `turn` uses "
            "it to compute the next search direction, and `remember` appends it to the history. The host never waits, "
            "so the calls can be captured once as a graph. `launch` then performs an iteration with a single call.",
        ),
        Step(
            name="CG, preconditioned",
            shows=["PreconditionedIteration._precondition", "PreconditionedIteration.queue"],
            text="A **preconditioner** replaces the residual r by a better direction z. Symmetric Gauss-Seidel gets z "
            "from two triangular solves, whose triangles are those of the matrix itself. On the grid with 24 points "
            "per side, the residual falls to the level of rounding errors in 41 iterations instead of 109. The solves "
            "become part of the graph like the products.",
        ),
    ],
    look_at=[
        "On an H200, SELL runs at 79 % of the rate of a copy, COO at 76 %, and CSR at only 57 %, because rows of five "
        "elements keep few lanes busy. COO reads more bytes, so it is still slower than SELL: 0.123 ms against 0.093 "
        "ms.",
        "On an H200, an iteration costs the host 4 µs if it is launched as one graph, and 114 µs if it is made up of "
        "separate calls.",
        "A preconditioned iteration costs more than a plain one: the unknowns of a triangular solve wait for one "
        "another, so the solve keeps few lanes busy. It pays if it saves enough iterations.",
        "In the plot of the residuals, on the page with pictures, conjugate gradients converge faster than the bound "
        "from the condition number predicts.",
        "When the stop runs on a GPU, the page also has a plot of the times of the sparse and the dense product. On an "
        "H200, the sparse one is faster once 95 % of the elements are zero.",
        "The 'SpGEMM, its square' row multiplies the sparse matrix by itself. 'dense to sparse' finds the elements "
        "that are not zero.",
    ],
    exercise=Exercise(
        task="`multiply` computes y = a x for a matrix in CSR format: row i consists of the elements `offsets[i]` to "
        "`offsets[i + 1] - 1` of `columns` and `values`. In the given kernel, one thread computes a whole row, "
        "although the launch has 32 threads per row. The rows are long. Let the 32 lanes of a warp share a row, so "
        "that their loads are coalesced.",
        hints=[
            "Which row does a warp handle? Divide the index of the thread by 32.",
            "Lane k takes the elements k, k + 32, k + 64, ... of the row.",
            "Add up the sums of the lanes with `__shfl_down_sync`, in steps of 16, 8, 4, 2 and 1. All 32 lanes must "
            "reach it, even if the row is short.",
        ],
        answer="Adjacent lanes read adjacent elements, so a load of 32 elements touches four sectors. All lanes of the "
        "warp reach the shuffles, even for a short row, and lane 0 has the sum.",
        check=check,
    ),
    course="The lectures on which the tour is based cover these libraries, but give no figures for them.",
)

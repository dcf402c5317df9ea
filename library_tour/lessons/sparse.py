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
    """Multiply matrices with long rows, whose loads are counted, and with rows of any length, also empty ones."""
    generator = np.random.default_rng(5)
    for name, lengths in (
        (f"rows of {LONG}", np.full(40, LONG)),
        ("rows of 0 to 99", generator.integers(0, 100, 77)),
    ):
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        count, rows = int(offsets[-1]), len(lengths)
        # A band of neighbouring columns in each row.
        columns = np.concatenate([np.arange(length) + 8 * (i % 5) for i, length in enumerate(lengths)]).astype(np.int32)
        values = generator.integers(-9, 10, count).astype(np.float32)
        x = generator.integers(-9, 10, 160).astype(np.float32)
        expected = np.array(
            [values[begin:end] @ x[columns[begin:end]] for begin, end in itertools.pairwise(offsets)],
            np.float32,
        )
        y = poisoned(rows, np.float32)
        given = [cuda.to_device(each) for each in (offsets, columns, values, x)]
        launch = answer["multiply"][blocks_for(32 * rows, BLOCK), BLOCK].bind(*given, y, rows)
        counted = counters.count(launch, ["sectors/load"])
        yield compare(f"the product of {name}", y.to_host(), expected)
        if "of 0" not in name:
            yield at_most(f"{name}: a load of a warp touches 4 sectors on average", counted["sectors/load"], 4)


LESSON = Lesson(
    learn=[
        "How matrices that are mostly zeros are stored: by rows (CSR), by places (COO), in slices (SELL).",
        "Why a product with a vector reads every stored number once, so that memory limits it.",
        "How to solve a system by conjugate gradients without asking the device for a number in each iteration.",
        "From which share of zeros on a sparse product is faster than a dense one.",
    ],
    steps=[
        Step(
            name="SpMV, CSR",
            shows=["laplacian", "format_row"],
            text="The Laplacian of a grid has five numbers a row. The three formats hold the same matrix, and `spmv` "
            "multiplies each by a vector.",
        ),
        Step(
            name="SpMM, 8 vectors",
            shows=["product_rows"],
            text="Several vectors at once read the matrix once for all. SpGEMM multiplies two sparse matrices, whose "
            "result has a pattern of its own; SDDMM computes a dense product at the stored places alone.",
        ),
        Step(
            name="sparse x dense vector",
            shows=["vector_rows"],
            text="A vector may be sparse as well: only its places of the other operand are read.",
        ),
        Step(
            name="conjugate gradients",
            shows=["advance", "turn", "remember", "gradient_rows"],
            text="Each iteration multiplies once by the matrix. All scalars stay on the device, so the host never "
            "waits: an iteration is captured as a graph, and launched again and again.",
        ),
    ],
    look_at=[
        "The three formats on an H200: SELL is read at 79 % of the rate of a copy, COO at 76 %, and CSR, whose rows of "
        "five numbers keep few lanes busy, at 57 %.",
        "The rows of an iteration: as one graph it takes the host 4 us on an H200, and 114 us as calls.",
        "The picture of the residuals: conjugate gradients converge faster than the bound by the condition number.",
        "On a GPU, the picture of the sparse and the dense product: they cross at about 95 % of zeros.",
    ],
    exercise=Exercise(
        task="`multiply` computes y = a x for a matrix by rows (CSR): row i has the elements `offsets[i]` to "
        "`offsets[i + 1] - 1` of `columns` and `values`. So far each row is the work of one thread, although 32 "
        "threads are started for each. The rows are long: let the 32 lanes of a warp share one, so that their loads "
        "are coalesced.",
        hints=[
            "Lane k takes the elements k, k + 32, k + 64, ... of the row. `__shfl_down_sync` adds the lanes' sums.",
        ],
        answer="Neighbouring lanes read neighbouring elements, so a load of 32 numbers touches four sectors. All lanes "
        "of the warp come to the shuffles, also those of a short row; lane 0 has the sum.",
        check=check,
    ),
    course="The courses show these libraries without figures for them.",
)

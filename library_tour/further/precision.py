"""The further exercise of `precision`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, at_most, number_of
from ..stop import Check

THREADS = 64
# From here on, consecutive floats are 2 apart.
LARGE = 2**24


def check_sums(answer: cuda.Module) -> Iterator[Check]:
    """Sum columns of a large element followed by zeros and ones, which a plain sum loses; count the operations."""
    for rows, columns in ((2000, THREADS), (333, 45), (1, 1)):
        x = np.random.default_rng(rows).integers(0, 2, (rows, columns)).astype(np.float32)
        x[0] = LARGE
        sums = poisoned(columns, np.float32)
        launch = answer["sum_columns"][blocks_for(columns, THREADS), THREADS].bind(
            cuda.to_device(x), sums, rows, columns
        )
        metrics = counters.counted(launch)
        case = f"{number_of(rows, 'row')}, {number_of(columns, 'column')}"
        exact = x.astype(np.int64).sum(0).astype(np.float32)
        yield compare(f"{case}: the sums are accurate to one ulp", sums.to_host(), exact, 2)
        doubles = sum(count for name, count in metrics.items() if "_op_d" in name)
        yield at_most("no thread computes in double precision", doubles, 0)
        loads = counters.values(metrics, ["loads"])["loads"]
        yield at_most("each element is loaded once", loads, rows * blocks_for(columns, 32))


FURTHER = [
    Exercise(
        name="easy",
        task="One thread per column sums the elements of a matrix. Each addition rounds, so a long sum loses more and "
        "more digits: a float total of 2^24 stays the same however many ones are added to it. Change the kernel so "
        "that every sum is accurate to one ulp. Stay in single precision, in which most GPUs are faster than in "
        "double, and load each element once.",
        hints=[
            "Keep what each addition loses in a second variable, and make up for it in the next addition.",
            "After `next = total + x`, the total has grown by `next - total`. How much of `x` is missing from that? If "
            "`total` is the larger of the two, the differences are exact.",
            "Subtract the previous excess first: `term = x - excess`. After `next = total + term`, the new excess is "
            "`(next - total) - term`. The parentheses matter.",
        ],
        answer="This method is compensated summation, by Kahan. `(next - total) - term` is how much more was added "
        "than should have been, and the next term is reduced by it. The error of the sum no longer grows with the "
        "number of rows. A step takes four additions instead of one, but the sum is limited by memory anyway. In exact "
        "arithmetic, the excess would always be zero. CUDA's compiler does not simplify it away, not even with "
        "`--use_fast_math`. A host compiler with `-ffast-math` does.",
        check=check_sums,
    ),
]

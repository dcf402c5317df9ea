"""The lesson of `cooling`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCKS, THREADS = 4, 64


def check(answer: cuda.Module) -> Iterator[Check]:
    """Add differences whose sums are exact, of many elements and of two; count the stores."""
    for size in (16 * BLOCKS * THREADS + 1, 1003, 2):
        a = np.random.default_rng(size).integers(-99, 100, size).astype(np.float32)
        scratch, total = poisoned(size, np.float32), cuda.zeros(1, np.float32)
        launch = answer["variation"][BLOCKS, THREADS].bind(cuda.to_device(a), scratch, total, size)
        counted = counters.count(launch, ["stores"])
        expected = np.array([np.abs(np.diff(a)).sum()], np.float32)
        yield compare(f"the differences of {size:,} elements are added", total.to_host(), expected)
        yield at_most("no stores: only the total is written, by atomics", counted["stores"], 0)


LESSON = Lesson(
    why="How far apart are two arrays? The obvious program writes all differences to a temporary array and "
    "then looks for the largest. On an H200 that takes 2.5 ms. With an **iterator** that computes each difference "
    "while the algorithm reads it, the same search takes 0.97 ms, because the differences never go through "
    "memory.\n\n"
    "The code is not longer, and the algorithm does not change. It is written once, as a template, for anything that "
    "can be indexed.",
    learn=[
        "write an algorithm once, as a template over its input and its function.",
        "say what an iterator is: an object that is indexed like a pointer and computes what it returns.",
        "replace a temporary array with an iterator, and say how many bytes that saves.",
        "check that a generic algorithm costs no more than a kernel written by hand.",
    ],
    idea="A kernel that is limited by memory is as fast as the number of bytes it moves allows. A temporary array "
    "moves every element two more times: once to write it and once to read it back. If the algorithm only ever says "
    "`in[i]`, then `in` need not be a pointer. It can be an object whose `operator[]` reads two arrays and returns "
    "their difference. The compiler inlines the operator, so the loads of the arrays end up in the algorithm's own "
    "loop.\n\n"
    "CCCL, CUDA's C++ core libraries, has the usual ones. A `counting_iterator` returns its index, a "
    "`transform_iterator` applies a function to what another iterator returns, and a `zip_iterator` returns elements "
    "of several arrays together.\n\n"
    "The rule of thumb: never write an array that is read only once. Compute its elements where they are read.",
    steps=[
        Step(
            name="a kernel for the step",
            shows=["step_by_hand"],
            text="One step of Newton's law of cooling: each temperature moves toward the ambient one by a fraction of "
            "the difference. One thread per temperature, and a kernel that works only for this formula.",
        ),
        Step(
            name="transform(in, out, step)",
            shows=["transform", "Cooling", "step_transform"],
            text="The formula has become an object with an `operator()`, and `transform` is the algorithm, which "
            "knows nothing about temperatures. The constants of the step are members of the object. The compiler "
            "inlines the function into the algorithm, so no call remains.",
        ),
        Step(
            name="temporary array",
            shows=["fold_maximum", "difference_temporary", "maximum"],
            text="Another question: what is the largest difference between two arrays? The algorithm `fold_maximum` "
            "finds the largest element of its input. So a first kernel writes all differences to an array, and the "
            "second reads it again.",
        ),
        Step(
            name="counting and transform",
            shows=["DifferenceAt", "maximum_counted"],
            text="`fold_maximum` is the same, but its input is not an array. A `counting_iterator` returns its own "
            "index, and a `transform_iterator` applies a function to it: `in[i]` reads `a[i]` and `b[i]` and returns "
            "the difference.",
        ),
        Step(
            name="zip and transform",
            shows=["Difference", "maximum_zipped"],
            text="A `zip_iterator` returns the pair of `a[i]` and `b[i]`. The function no longer needs to know about "
            "the arrays or the index, and works for pairs from anywhere.",
        ),
        Step(
            name="by hand, four at a time",
            shows=["largest_of", "maximum_by_four"],
            text="For comparison, a kernel without iterators that loads 16 bytes, four elements, at a time. An "
            "iterator over single elements does not do that.",
            compared_with="temporary array",
        ),
    ],
    look_at=[
        "On the simulator, the column 'stores' is zero for every row but the one with the temporary array. That row "
        "also has 1.5 times as many loads, because it reads the differences too.",
        "With the temporary array, twice as many bytes move through memory: two arrays are read, and one is written "
        "and read again. On an H200, that takes 2.5 ms, compared with 0.97 ms with iterators.",
        "Loading four elements at a time takes a quarter of the load instructions and touches the same bytes. "
        "On an H200 it takes 0.96 ms, hardly less than an iterator, because memory is the limit.",
        "In the second table, the step written by hand and the one with `transform` have the same loads and stores, "
        "and both take 1.7 ms on an H200. `span` and `mdspan` take 2.0 ms because of the loops around them.",
        "The third table gives each iterator a few elements and shows what it returns.",
    ],
    exercise=Exercise(
        task="Add up how much each element differs from the next: the sum of `|a[i + 1] - a[i]|` over an array of "
        "`n` elements. The given kernel writes the differences to `scratch` and passes this array to the algorithm "
        "`add`. Do it without the temporary array, and leave `add` as it is. The kernel keeps its parameters, but no "
        "longer uses `scratch`.",
        hints=[
            "`add` uses its input in one place only, `in[i]`. What other than a pointer can stand there?",
            "A structure with an `operator[]` can be indexed like a pointer. Which member does it need to "
            "compute a difference?",
            "`struct Differences { const float* a; __device__ float operator[](int i) const { ... } };`, and "
            "`add` gets an object of it.",
        ],
        answer="The algorithm asks for nothing but an `operator[]`. The structure is an iterator of your own: its "
        "member is the pointer, and it computes a difference when it is indexed. A `transform_iterator` over a "
        "`counting_iterator` would do the same.",
        check=check,
    ),
    course="The lectures give no figures for this topic.",
)

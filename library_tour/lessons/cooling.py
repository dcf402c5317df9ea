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
    """Add up the differences of many elements and of two, whose sums are exact; count the stores."""
    for size in (16 * BLOCKS * THREADS + 1, 1003, 2):
        a = np.random.default_rng(size).integers(-99, 100, size).astype(np.float32)
        scratch, total = poisoned(size, np.float32), cuda.zeros(1, np.float32)
        launch = answer["variation"][BLOCKS, THREADS].bind(cuda.to_device(a), scratch, total, size)
        counted = counters.count(launch, ["stores"])
        expected = np.array([np.abs(np.diff(a)).sum()], np.float32)
        yield compare(f"the differences of {size:,} elements are added", total.to_host(), expected)
        yield at_most("no stores: only the total is written, by atomics", counted["stores"], 0)


LESSON = Lesson(
    why="How far apart are two arrays? The obvious program writes all the differences to a temporary array and then "
    "searches it for the largest. On an H200 that takes 2.5 ms. With an **iterator** that computes each difference "
    "when the algorithm reads it, the same search takes 0.97 ms, because the differences never go through memory.\n\n"
    "The code does not get longer, and the algorithm does not change. It is written once, as a template, for anything "
    "that can be indexed.",
    learn=[
        "write an algorithm once, as a template over its input and its function.",
        "say what an iterator is: an object that is indexed like a pointer and computes the elements that it returns.",
        "replace a temporary array with an iterator, and say how many bytes that saves.",
        "check that a generic algorithm costs no more than a kernel written by hand.",
    ],
    idea="The time of a memory-bound kernel is determined by the number of bytes that it moves. With a temporary "
    "array, every element moves two more times: once when it is written and once when it is read back. If the "
    "algorithm uses its input only as `in[i]`, then `in` need not be a pointer. It can be an object whose `operator[]` "
    "reads one element from each of two arrays and returns the difference. The compiler inlines the operator, so the "
    "loads from the arrays end up in the algorithm's own loop.\n\n"
    "CCCL, the CUDA Core Compute Libraries, provides such iterators, which are also called fancy iterators. A "
    "`counting_iterator` returns the index itself, a `transform_iterator` applies a function to what another iterator "
    "returns, and a `zip_iterator` returns elements of several arrays together.\n\n"
    "The rule of thumb: never write an array that is read only once. Compute its elements where they are read.",
    steps=[
        Step(
            name="a kernel for the step",
            shows=["step_by_hand"],
            text="This kernel takes one step of Newton's law of cooling: each temperature moves towards the ambient "
            "temperature by a fraction of the difference. It uses one thread per temperature, and it works only for "
            "this formula.",
        ),
        Step(
            name="transform(in, out, step)",
            shows=["transform", "Cooling", "step_transform"],
            text="The formula has become a function object: a struct that has an `operator()`, and the constants of "
            "the step as members. The algorithm, `transform`, knows nothing about temperatures. The compiler inlines "
            "the function into the algorithm, so no call remains.",
        ),
        Step(
            name="temporary array",
            shows=["keep_largest", "fold_maximum", "difference_temporary", "maximum"],
            text="Now for another question: what is the largest difference between two arrays? The `fold_maximum` "
            "algorithm finds the largest element of its input; at its end, `keep_largest` updates the total with at "
            "most one atomic per warp. So one kernel first writes all the differences to an array, and a second kernel "
            "reads them back.",
        ),
        Step(
            name="counting and transform",
            shows=["DifferenceAt", "maximum_counted"],
            text="`fold_maximum` is unchanged, but its input is no longer an array. A `counting_iterator` returns the "
            "index itself, and a `transform_iterator` applies a function to it: `in[i]` reads `a[i]` and `b[i]` and "
            "returns the difference.",
        ),
        Step(
            name="zip and transform",
            shows=["Difference", "maximum_zipped"],
            text="A `zip_iterator` returns the pair of `a[i]` and `b[i]`. The function no longer needs to know about "
            "the arrays or the index. It works for pairs from any source.",
        ),
        Step(
            name="by hand, four at a time",
            shows=["largest_of", "maximum_by_four"],
            text="For comparison, this kernel uses no iterators and loads four elements, or 16 bytes, at a time. An "
            "iterator over single elements does not do that.",
            compared_with="temporary array",
        ),
    ],
    look_at=[
        "On the simulator, the 'stores' column shows zero in every row except the one for the temporary array. The "
        "temporary array also takes 1.5 times as many loads, because the differences are read as well. Each warp that "
        "has elements performs one atomic. With four elements per load, only 512 of the 528 warps have any.",
        "With the temporary array, twice as many bytes move through memory: two arrays are read, and a third is "
        "written and read back. On an H200, that takes 2.5 ms, compared with 0.97 ms with iterators.",
        "Loading four elements at a time takes a quarter of the load instructions and reads the same bytes. On an "
        "H200, that takes 0.96 ms, hardly less than with an iterator, because memory bandwidth is the limit.",
        "In the second table, the step written by hand and the one with `transform` perform the same loads and stores, "
        "and both take 1.7 ms on an H200. The kernels with `span` and `mdspan` take 2.0 ms because of their loops.",
        "The third table shows what each iterator returns for a few elements.",
    ],
    exercise=Exercise(
        task="Add up the differences between adjacent elements: the sum of `|a[i + 1] - a[i]|` over an array of `n` "
        "elements. The given kernel writes the differences to `scratch` and passes this array to the `add` algorithm. "
        "Eliminate the temporary array. With an iterator, `add` can stay as it is. The kernel keeps its parameters but "
        "no longer uses `scratch`.",
        hints=[
            "`add` uses its input only in the expression `in[i]`. What can `in` be, other than a pointer?",
            "A struct with an `operator[]` can be indexed like a pointer. What member does it need in order to compute "
            "a difference?",
            "Define `struct Differences { const float* a; __device__ float operator[](int i) const { ... } };`, and "
            "pass an object of this type to `add`.",
        ],
        answer="The algorithm needs nothing but an `operator[]`. The struct is an iterator that you have written "
        "yourself: it keeps the pointer as a member, and computes a difference when it is indexed. A "
        "`transform_iterator` over a `counting_iterator` would do the same.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)

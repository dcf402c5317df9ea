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
    """Add differences that add exactly, of many numbers and of two; count the stores."""
    for size in (16 * BLOCKS * THREADS + 1, 1003, 2):
        a = np.random.default_rng(size).integers(-99, 100, size).astype(np.float32)
        scratch, total = poisoned(size, np.float32), cuda.zeros(1, np.float32)
        launch = answer["variation"][BLOCKS, THREADS].bind(cuda.to_device(a), scratch, total, size)
        counted = counters.count(launch, ["stores"])
        expected = np.array([np.abs(np.diff(a)).sum()], np.float32)
        yield compare(f"the differences of {size:,} numbers are added", total.to_host(), expected)
        yield at_most("nothing is stored but the total, by atomics", counted["stores"], 0)


LESSON = Lesson(
    learn=[
        "How an algorithm is written once, as a template for any input that can be indexed and for any function.",
        "What an iterator is: an object that is indexed like a pointer, and computes what it returns.",
        "Why an iterator in place of a temporary array makes an algorithm faster: fewer bytes are moved.",
        "That the compiler makes the same loads and stores for a generic algorithm as for a kernel that is written by "
        "hand.",
    ],
    steps=[
        Step(
            name="a kernel for the step",
            shows=["step_by_hand"],
            text="A step of Newton's law of cooling: each temperature comes closer to the ambient one by a part of the "
            "difference. A thread has one temperature, and its kernel is good for this formula only.",
        ),
        Step(
            name="transform(in, out, step)",
            shows=["transform", "Cooling", "step_transform"],
            text="The formula has become an object with an operator `()`, and `transform` is the algorithm, which "
            "knows nothing of temperatures. The constants of the step are members of the object. The compiler puts the "
            "function into the algorithm, so that no call is left.",
        ),
        Step(
            name="temporary array",
            shows=["fold_maximum", "difference_temporary", "maximum"],
            text="Another question: what is the largest difference of two arrays? The algorithm `fold_maximum` takes "
            "the largest of numbers, so a first kernel writes all differences to an array, which the second one reads "
            "again.",
        ),
        Step(
            name="counting and transform",
            shows=["DifferenceAt", "maximum_counted"],
            text="`fold_maximum` is the same, but its input is no array. A `counting_iterator` returns its own index, "
            "and a `transform_iterator` applies a function to it: `in[i]` reads `a[i]` and `b[i]` and returns the "
            "difference.",
        ),
        Step(
            name="zip and transform",
            shows=["Difference", "maximum_zipped"],
            text="A `zip_iterator` returns the pair of `a[i]` and `b[i]`. The function then needs to know neither the "
            "arrays nor the index, and serves for pairs from anywhere.",
        ),
        Step(
            name="by hand, four at a time",
            shows=["largest_of", "maximum_by_four"],
            text="For comparison a kernel without iterators, which loads 16 bytes at a time. An iterator over single "
            "numbers does not do that.",
            compared_with="temporary array",
        ),
    ],
    look_at=[
        "Without a GPU, the column 'stores' is zero in each way but the one with the temporary array, which also makes "
        "1.5 times as many loads, since it reads the differences too.",
        "With the temporary array, the device's memory moves twice as many bytes: two arrays are read, one is written "
        "and read again. An H200 took 2.5 ms for it and 0.97 ms with iterators.",
        "Loads by four make a quarter of the instructions and touch the same bytes. On an H200 they took 0.96 ms, "
        "which is nearly the same, because memory is the limit.",
        "In the second table, the step by hand and by `transform` have the same loads and stores, and took 1.7 ms on "
        "an H200. `span` and `mdspan` took 2.0 ms, for the loops around them.",
        "The third table gives each iterator a few numbers and shows what it returns.",
    ],
    exercise=Exercise(
        task="Add up how much each number differs from the next, the sum of `|a[i + 1] - a[i]|` over `n` numbers. The "
        "kernel writes the differences to `scratch` and gives this array to the algorithm `add`. Do without the "
        "temporary array, and leave `add` as it is. The kernel keeps its parameters, and `scratch` is not used any "
        "more.",
        hints=[
            "`add` uses its input in one place only, `in[i]`. Which type can you pass, other than a pointer, for "
            "which this expression has a value?",
        ],
        answer="A structure with an operator `[]` is all that the algorithm asks for: an iterator of your own, which "
        "has the pointer as its member and computes a difference when it is indexed. A `transform_iterator` over a "
        "`counting_iterator` would do the same.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)

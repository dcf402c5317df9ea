"""The further exercises of `reduction`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare
from ..lesson import Exercise, at_most, number_of
from ..stop import Check

BLOCKS, THREADS, WARP = 4, 256, 32


def check_largest(answer: cuda.Module) -> Iterator[Check]:
    """Find the largest element of arrays with more and with fewer elements than threads; count the atomics."""
    warps = BLOCKS * THREADS // WARP
    for size in (4 * BLOCKS * THREADS, 1999, 1):
        x = np.random.default_rng(5).integers(-1000, -1, size).astype(np.int32)
        largest = cuda.full(1, np.iinfo(np.int32).min, np.int32)
        counted = counters.count(answer["largest"][BLOCKS, THREADS].bind(cuda.to_device(x), largest, size), ["atomics"])
        yield compare(f"the largest of {number_of(size, 'element')}", largest.to_host(), np.array([x.max()], np.int32))
        yield at_most(f"{warps} warps execute at most {warps} atomics", counted["atomics"], warps)


def check_first_largest(answer: cuda.Module) -> Iterator[Check]:
    """Find the first of the largest elements, of which there are many; count the atomics."""
    for size in (4 * BLOCKS * THREADS, 1999, 1):
        x = np.random.default_rng(5).integers(0, 50, size).astype(np.uint32)
        key = cuda.zeros(1, np.uint64)
        counted = counters.count(
            answer["first_largest"][BLOCKS, THREADS].bind(cuda.to_device(x), key, size), ["atomics"]
        )
        expected = np.array([int(x.max()) << 32 | 2**32 - 1 - int(x.argmax())], np.uint64)
        yield compare(f"the first largest of {number_of(size, 'element')}", key.to_host(), expected)
        yield at_most(f"{BLOCKS} blocks execute at most {BLOCKS} atomics", counted["atomics"], BLOCKS)


FURTHER = [
    Exercise(
        name="easy",
        task="Find the largest of `n` integers. The threads go through the array in a grid-stride loop, and perform "
        "one atomic operation per element. Let each warp execute only one atomic in total. `largest` starts as the "
        "smallest integer.",
        hints=[
            "A thread sees several elements. Where can it keep the largest of them?",
            "A local variable is kept in a register and costs nothing. The atomic belongs after the loop.",
        ],
        answer="Each thread keeps the largest element that it has seen in a register, and performs one atomic "
        "operation after the loop. A warp executes that operation once for all its lanes. This is the first thing to "
        "try in any reduction: combine in registers before anything is shared.",
        check=check_largest,
    ),
    Exercise(
        name="hard",
        task="Find the largest of `n` elements, and the index of its first occurrence. The kernel packs both into a "
        "64-bit key: the value in the upper half, and `0xffffffff - index` in the lower half, so that the largest key "
        "is the answer. It performs one atomic operation per element. Let each block execute at most one. A block has "
        "256 threads, and `key` starts at zero.",
        hints=[
            "The maximum of two keys is an associative operation, so everything that the lesson does with sums works "
            "with maxima too.",
            "`__shfl_down_sync` also moves 64-bit values. Combine in three stages: a thread's elements, the lanes of a "
            "warp, the warps of a block.",
            "After the lanes are combined, lane 0 of each warp stores its key in an array in shared memory that has "
            "one element per warp. After a barrier, the first warp combines those.",
        ],
        answer="Each thread keeps its largest key in a register, the lanes combine their keys with shuffles, and the "
        "warps combine theirs through shared memory. The order of these operations does not matter: if two values are "
        "equal, the one with the smaller index has the larger key, so the result does not depend on which block "
        "finishes first.",
        check=check_first_largest,
    ),
]

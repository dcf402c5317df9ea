"""The further exercises of `monte_carlo`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare
from ..lesson import Exercise, at_most
from ..lessons.monte_carlo import mixed
from ..stop import Check

BLOCKS, THREADS, WARP = 4, 128, 32
WARPS = BLOCKS * THREADS // WARP
# The generator of the hard exercise: state = A state + C. Each thread takes EACH of its numbers.
A, C, EACH = 1664525, 1013904223, 16
# Instructions of a warp: a loop of 13 rounds, for 2^13 numbers, and one of 16.
MOST_INSTRUCTIONS = 300


def check_squares(answer: cuda.Module) -> Iterator[Check]:
    """Throw dice; compare the sums, and count the atomics."""
    for size in (4096, 1999):
        throws = 1 + mixed(np.arange(size, dtype=np.uint32)) % np.uint32(6)
        totals = cuda.zeros(2, np.uint32)
        counted = counters.count(answer["throw_dice"][BLOCKS, THREADS].bind(totals, size), ["atomics"])
        sums = totals.to_host()
        yield compare(f"the sum of {size:,} throws", sums[:1], np.array([throws.sum()], np.uint32))
        expected = np.array([np.square(throws).sum()], np.uint32)
        yield compare(f"the sum of the squares of {size:,} throws", sums[1:], expected)
        yield at_most(f"{WARPS} warps execute at most 2 atomics each", counted["atomics"], 2 * WARPS)


def check_skip(answer: cuda.Module) -> Iterator[Check]:
    """Count the numbers of a sequence that are below a limit; count the instructions."""
    for seed in (1, 987654321):
        state, below = seed, 0
        for _ in range(BLOCKS * THREADS * EACH):
            below += state < 2**31
            state = (A * state + C) % 2**32
        total = cuda.zeros(1, np.uint32)
        counted = counters.count(answer["count_small"][BLOCKS, THREADS].bind(seed, total), ["instructions"])
        fact = f"{BLOCKS * THREADS * EACH:,} numbers of the sequence from {seed}"
        yield compare(fact, total.to_host(), np.array([below], np.uint32))
        fact = f"a warp executes at most {MOST_INSTRUCTIONS} instructions"
        yield at_most(fact, float(counted["instructions"]) / WARPS, MOST_INSTRUCTIONS)


FURTHER = [
    Exercise(
        name="easy",
        task="A kernel simulates `n` throws of a die and sums the points in `totals[0]`. The sum alone does not tell "
        "how far off the mean may be. Store the sum of their squares in `totals[1]`, so that the host can compute the "
        "standard error. Each warp may execute at most two atomics. Both totals are initially zero.",
        hints=[
            "Sum the squares just like the points: in a register, then over the warp, then with an atomic.",
            "`__reduce_add_sync(0xffffffff, value)` returns the sum over the warp to all its lanes. All lanes must "
            "call it.",
        ],
        answer="A second register accumulates the squares in the same loop, so no number is generated twice. The host "
        "computes the variance as the mean of the squares minus the square of the mean, and the standard error as the "
        "square root of the variance divided by `n`. An estimate without its error is worth little.",
        check=check_squares,
    ),
    Exercise(
        name="hard",
        task="The numbers of a sequence are computed as `state = A * state + C`, modulo 2^32, starting from a seed. "
        "Thread `t` needs numbers `16 t` to `16 t + 15`. The kernel also generates all the numbers before these, so "
        "the last thread performs 8,176 steps for nothing. Skip them in a few steps, so that a warp executes at most "
        "300 instructions.",
        hints=[
            "A step is a map `x -> a x + c`. What is the map for two steps? It has the same form.",
            "Two maps in a row, first `a1, c1` and then `a2, c2`, are one map with `a = a2 a1` and `c = a2 c1 + c2`. "
            "So you can double the number of steps that a map takes: 1, 2, 4, 8, ...",
            "Go through the bits of the number of steps, starting with the lowest. Double the map for each bit, and "
            "apply it to the state where the bit is set.",
        ],
        answer="One doubling turns the map for `2^(k-1)` steps into the map for `2^k` steps. For each bit that is set "
        "in the number of steps, one of these maps is applied to the state. 13 doublings replace up to 8,176 steps. "
        "Libraries call this skipping ahead. Counter-based generators such as Philox do not need it, since they "
        "compute any number from its index.",
        check=check_skip,
    ),
]

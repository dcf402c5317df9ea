"""The lesson of `monte_carlo_ranks`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import counters
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCKS, THREADS = 2, 64
SEED = 12345
# How much more than its share of one device's instructions a worker may take: for its last, shorter pass.
SLACK = 1.3


def random_bits(draws: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the random numbers of the exercise."""
    x = draws * np.uint32(0x9E3779B9) ^ np.uint32(SEED)
    x = (x ^ x >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    x = (x ^ x >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return np.asarray(x ^ x >> np.uint32(16))


def reference(points: int) -> int:
    """Return how many of the points are in the circle."""
    draws = np.arange(2 * points, dtype=np.uint32).reshape(points, 2)
    x, y = ((random_bits(draws) >> np.uint32(8)).astype(np.float32) * np.float32(2**-24)).T
    return int(np.count_nonzero(x * x + y * y < 1))


def check(answer: cuda.Module) -> Iterator[Check]:
    """Count with one worker, then with several whose number does and does not divide the points."""
    instructions = {}
    for points, workers in ((8192, 1), (8192, 4), (8192, 8), (8191, 3), (5, 2)):
        hits = cuda.zeros(1, np.uint32)
        most = 0.0
        for worker in range(workers):
            launch = answer["count_hits"][BLOCKS, THREADS].bind(SEED, worker, workers, points, hits)
            most = max(most, float(counters.count(launch, ["instructions"])["instructions"]))
        found, expected = int(hits.to_host()[0]), reference(points)
        detail = "" if found == expected else f"They find {found:,}, not {expected:,}."
        fact = f"{points:,} points: the hits of {workers} together" if workers > 1 else f"{points:,} points: all hits"
        yield Check(fact, found == expected, detail)
        instructions[workers] = most
        if points == 8192 and workers > 1:
            fact = f"each of {workers} workers does its share: at most {SLACK}/{workers} of one's instructions"
            yield at_most(fact, most, SLACK * instructions[1] / workers)


LESSON = Lesson(
    learn=[
        "How paths are divided among devices that need nothing of one another until the end.",
        "Why each device needs random numbers of its own, and how a counter and a key give them without any state.",
        "What strong and weak scaling are, and why the second one is easier.",
        "How the efficiency tells what several devices cost beside the work itself.",
    ],
    steps=[
        Step(
            name="one device",
            shows=["SCHEME", "measured"],
            text="The kernel is that of the stop `monte_carlo`. A thread simulates every so many paths. The random "
            "numbers of a path follow from its index, which is Philox' counter, and from the seed, which is its key. "
            "A block stores its sum of payoffs and the sum of their squares.",
        ),
        Step(
            name="a seed each",
            shows=["Team"],
            text="Every worker launches the same kernel for its own paths, with `seed + number` as its key. With the "
            "same seed all devices would simulate the same paths: N times the work, and the error of one device. All "
            "launches are queued before the first result is read, since reading waits. The workers' pairs of sums are "
            "added at the end, among ranks by MPI.",
        ),
        Step(
            name="strong and weak scaling",
            shows=["run"],
            text="Strong scaling divides the paths of one device by the number of devices: how much sooner is the same "
            "result there? Weak scaling gives each device as many paths as the one had: is a larger problem solved in "
            "the same time? The efficiency is 1 where N devices do N times as much in a second.",
        ),
    ],
    look_at=[
        "Without a GPU the column 'instructions' stands for the time. It is divided by the number of workers, and the "
        "efficiency is 1: the work can be divided completely.",
        "Where several workers share one GPU, they take turns: two have an efficiency of about 0.5 and four of about "
        "0.25, while the rate of all together stays the same.",
        "On two H200s strong scaling has an efficiency of 0.94 to 0.96, and weak scaling one of 0.97 to 1.01. The "
        "launch and the sums at the end cost the same for fewer paths.",
        "The error of a Monte Carlo price falls with the square root of the number of paths: four times as many "
        "devices, with as many paths each, halve it.",
    ],
    exercise=Exercise(
        task="A kernel counts random points that lie in a circle. It is launched on each of `workers` devices, with "
        "the number `worker` of the device, and `points` is the number of points of all devices together. Let all "
        "devices together try the points 0 to `points - 1`, each point once, whatever the number of devices, so that "
        "their counts add up to exactly what one device counts. Each device does only its share.",
        hints=[
            "A point's random numbers depend on the point's number alone, so it does not matter which device tries "
            "it. In a grid-stride loop a thread's first index is its number in the grid, and its stride the number of "
            "the grid's threads. What are these two where `workers` grids count as one?",
        ],
        answer="The threads of all devices are numbered together, and the stride is the number of all of them. Because "
        "the random numbers have no state, the result is the same to the last point on any number of devices. The stop "
        "gives each device a seed instead: that is as random, but another number of devices gives another estimate.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)

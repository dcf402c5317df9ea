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
# A worker may take this many times its share of the instructions, because its last pass is shorter.
SLACK = 1.3


def random_bits(draws: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the random numbers of the exercise."""
    x = draws * np.uint32(0x9E3779B9) ^ np.uint32(SEED)
    x = (x ^ x >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    x = (x ^ x >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return np.asarray(x ^ x >> np.uint32(16))


def reference(points: int) -> int:
    """Return how many of the points lie in the circle."""
    draws = np.arange(2 * points, dtype=np.uint32).reshape(points, 2)
    x, y = ((random_bits(draws) >> np.uint32(8)).astype(np.float32) * np.float32(2**-24)).T
    return int(np.count_nonzero(x * x + y * y < 1))


def check(answer: cuda.Module) -> Iterator[Check]:
    """Count with one worker, then with several, whose number does and does not divide the points."""
    instructions = {}
    for points, workers in ((8192, 1), (8192, 4), (8192, 8), (8191, 3), (5, 2)):
        hits = cuda.zeros(1, np.uint32)
        most = 0.0
        for worker in range(workers):
            launch = answer["count_hits"][BLOCKS, THREADS].bind(SEED, worker, workers, points, hits)
            most = max(most, float(counters.count(launch, ["instructions"])["instructions"]))
        found, expected = int(hits.to_host()[0]), reference(points)
        detail = "" if found == expected else f"They find {found:,}, not {expected:,}."
        fact = (
            f"{points:,} points: the hits of {workers} workers together"
            if workers > 1
            else f"{points:,} points: all hits"
        )
        yield Check(fact, found == expected, detail)
        instructions[workers] = most
        if points == 8192 and workers > 1:
            fact = f"each of {workers} workers does its share: at most {SLACK}/{workers} of the instructions of one"
            yield at_most(fact, most, SLACK * instructions[1] / workers)


LESSON = Lesson(
    why="Monte Carlo is the best case for several devices: the paths are independent, and each device sends two "
    "numbers at the end. Two H200s simulate 2^26 paths in 3.2 ms instead of 6.0 ms, an efficiency of 0.94. With 2^26 "
    "paths *each*, they need 6.1 ms, an efficiency of 0.97.\n\n"
    "If even this program does not reach an efficiency of 1, no other will. And one mistake makes it look perfect: "
    "with the same seed on both devices, the second one repeats the work of the first, and the result is no more "
    "accurate than with one device.",
    learn=[
        "divide paths among devices that work independently until the end.",
        "give each device its own random numbers, with a counter and a key instead of a state.",
        "tell strong scaling from weak scaling, and say why weak scaling is easier.",
        "tell from the efficiency how much overhead the use of several devices adds.",
    ],
    idea="**Strong scaling** measures how much sooner N devices finish the same work. **Weak scaling** measures how "
    "much more work they do in the same time. The **efficiency** is the speed of N devices divided by N times the "
    "speed of one. Costs that do not shrink with the work, such as the launches and the final sum, limit strong "
    "scaling first.\n\n"
    "Random numbers must differ between devices. A counter-based generator makes that easy: the index of a path is the "
    "counter, and the seed is the key. A different key gives a different sequence, and no device needs to know what "
    "another has drawn.\n\n"
    "The rule of thumb: give each device its own key, and a share of the work that takes much longer than the launch.",
    steps=[
        Step(
            name="one device",
            shows=["SCHEME", "measured"],
            text="The kernel is the one from the lesson `monte_carlo`, a grid-stride loop over paths. The random "
            "numbers of a path are computed from its index, which is Philox's counter, and from the seed, which is "
            "Philox's key. Each block stores the sum of its payoffs and the sum of their squares.",
        ),
        Step(
            name="one seed per worker",
            shows=["Team"],
            text="Every worker launches the same kernel for its own paths, with `seed + number` as its key, where "
            "`number` is the worker's number. With the same seed, all devices would simulate the same paths: N times "
            "the work for the accuracy of one device. All launches are queued before the first result is read, because "
            "reading a result makes the host wait for the device. The pairs of sums are added at the end, with MPI if "
            "the workers are ranks.",
        ),
        Step(
            name="strong and weak scaling",
            shows=["run"],
            text="Strong scaling divides the paths of one device among the devices: how much sooner is the same result "
            "ready? Weak scaling gives each device as many paths as the single device had: is a larger problem solved "
            "in the same time? The efficiency is 1 if N devices do N times as much per second.",
        ),
    ],
    look_at=[
        "On the simulator, the number of instructions per worker stands in for the time. Strong scaling divides it by "
        "the number of workers, so the efficiency is 1: all of the work can be divided.",
        "Workers that share one GPU take turns. The efficiency is about 0.5 with two workers and about 0.25 with four, "
        "while their combined rate stays the same.",
        "On two H200s, the efficiency is 0.94 to 0.96 for strong scaling, and 0.97 to 1.01 for weak scaling. The "
        "launch and the final sums take just as long for fewer paths.",
        "The error of a Monte Carlo price falls as one over the square root of the number of paths. Four times as many "
        "devices, with the same number of paths each, halve it.",
    ],
    exercise=Exercise(
        task="A kernel counts random points that lie in a circle. It is launched on each of `workers` devices, where "
        "`worker` is the number of the device, and `points` is the total number of points. Change the kernel so that "
        "the devices together test the points 0 to `points - 1`, each point once, for any number of devices. Their "
        "counts must add up to exactly what one device counts, and each device must do only its share.",
        hints=[
            "The random numbers of a point depend only on its index, so it does not matter which device tests it.",
            "In a grid-stride loop, a thread starts at its index in the grid, and the stride is the number of threads "
            "in the grid. What are these two values if all `workers` grids are treated as one?",
            "The threads of device `worker` come after those of all devices before it. The stride is the total number "
            "of threads on all devices.",
        ],
        answer="The threads of all devices are numbered consecutively, and the stride is the total number of threads. "
        "Because the random numbers need no state, any number of devices gives exactly the same count. The stop gives "
        "each device its own seed instead. That is just as random, but a different number of devices gives a different "
        "estimate.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)

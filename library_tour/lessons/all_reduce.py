"""The lesson of `all_reduce`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare, poisoned
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check


class Links:
    """Workers with an array each, and the times at which their links would carry what is sent.

    A worker sends to one other at a time and receives from one at a time. The unit of time is that of a whole array.
    """

    def __init__(self, workers: int, size: int) -> None:
        self.source = np.random.default_rng(5).random(size, np.float32)
        first = cuda.to_device(self.source)
        self.arrays = [first, *(poisoned(size, np.float32) for _ in range(1, workers))]
        # When a worker's link out and its link in are free, and when each of its numbers is there.
        self.sends, self.receives = np.zeros(workers), np.zeros(workers)
        self.there = np.full((workers, size), np.inf)
        self.there[0] = 0

    def send(self, source: int, target: int, begin: int, end: int) -> None:
        """Copy numbers from one worker to another, as soon as they are there and both links are free."""
        if begin == end:
            return
        cuda.memcpy(self.arrays[target][begin:end], self.arrays[source][begin:end])
        start = max(self.sends[source], self.receives[target], self.there[source, begin:end].max())
        done = start + (end - begin) / self.source.size
        self.sends[source] = self.receives[target] = done
        self.there[target, begin:end] = np.minimum(self.there[target, begin:end], done)


def check(answer: ModuleType) -> Iterator[Check]:
    """Broadcast arrays whose sizes are and are not multiples of the number of workers; add up the links' times."""
    for workers, size in ((8, 1024), (5, 1003), (2, 64)):
        links = Links(workers, size)
        answer.broadcast(links.send, workers, size)
        got = np.array([array.to_host() for array in links.arrays])
        yield compare(f"{workers} workers have all {size:,} numbers", got, np.tile(links.source, (workers, 1)))
        fact = f"{workers} workers: it takes the time of two arrays over a link at most"
        yield at_most(fact, float(links.there.max()), 2)


LESSON = Lesson(
    learn=[
        "What an all-reduce is: each worker has an array, and afterwards each has the sums of all arrays.",
        "Why a worker that adds for all others is the bottleneck: its links carry N - 1 arrays each way.",
        "How parts that go round a ring keep all links busy, so that no worker sends more than two arrays, however "
        "many workers there are.",
        "Why large arrays are limited by bandwidth and small ones by the number of steps.",
    ],
    steps=[
        Step(
            name="through one",
            shows=["Team", "add_into", "through_one"],
            text="The first worker receives each of the other arrays, adds it to its own, and sends the sums back. "
            "Only its links are busy, one copy after the other. `Team.meet` lets each stream wait for all others, "
            "on the devices and not on the host.",
        ),
        Step(
            name="round a ring",
            shows=["add_into", "ring"],
            text="Arrays are cut into as many parts as there are workers. In each step of the first round, a worker "
            "sends one part to the next worker, which adds its own numbers: after N - 1 steps each worker has the "
            "sums of one part. In the second round these parts are passed on and kept. In every step all links carry "
            "a part, and each worker sends 2 (N - 1) / N arrays in all.",
        ),
        Step(
            name="kernels on peers",
            shows=["reduce_peers", "on_peers"],
            text="With peer access a kernel reads and writes the memory of other devices. Each device adds one part "
            "of all arrays and writes the sums to all of them. The same bytes are moved, without room for copies and "
            "in one launch instead of 2 (N - 1) steps. The arrays are added in the same order everywhere.",
        ),
        Step(
            name="MPI, through the host",
            shows=["by_mpi"],
            text="For ranks, which are processes that cannot see each other's memory. The array is copied to pinned "
            "memory of the host, MPI adds, and the sums are copied back. `by_mpi_on_device` is for an MPI library that "
            "takes addresses of device memory.",
        ),
        Step(
            name="NCCL",
            shows=["join_nccl", "by_nccl"],
            text="NVIDIA's library knows the links between the GPUs and chooses its algorithm by the number of bytes. "
            "The call is queued in a stream of each worker. Calls of several workers of one process are a group, so "
            "that no call waits for one that has not been made yet.",
        ),
        Step(
            name="NCCL, as a graph",
            shows=["as_graph", "launch_graph"],
            text="The work of all streams is captured once. A launch of the graph spares the host the calls, which "
            "matters where the arrays are small.",
        ),
    ],
    look_at=[
        "The column 'arrays sent' is what the busiest worker sends: with four workers, 3 arrays through one and 1.5 "
        "round a ring or by kernels. With more workers the first number grows, and the second one stays below 2. With "
        "two workers both are 1, but through one the sums return only when all numbers have come, while a ring sends "
        "both ways at once.",
        "GB/s is the bus bandwidth: the least number of bytes that a worker has to send, over the time. So it can be "
        "compared with the link's bandwidth, for any number of workers.",
        "Two H200s with NVLink, 1 GiB each: about 170 GB/s through one, 340 round a ring, by kernels on peers and by "
        "NCCL nearly the same, and 1.9 GB/s by MPI through the host. The link carries 396 GB/s in one direction.",
        "The same two with 64 KiB each: 0.5 GB/s through one, 0.1 round a ring, 0.6 by kernels on peers, 0.3 by NCCL, "
        "and 3.3 by NCCL as a graph. Here the calls and the steps cost more than the bytes.",
    ],
    exercise=Exercise(
        task="Write `broadcast(send, workers, size)`, which brings the array of worker 0 to all other workers. "
        "`send(source, target, begin, end)` copies these numbers of one worker's array to the same place of another "
        "one's. It begins when the numbers are there, the source sends nothing else and the target receives nothing "
        "else; its time is that of the numbers over one link. The last copy must end before two whole arrays could "
        "have been sent over a link, for any number of workers.",
        hints=[
            "Worker 0 can send no more than two arrays in this time. Let it first send each worker one part, as if "
            "they had added these parts in the first round of the ring. What does the second round do then?",
        ],
        answer="Worker 0 deals out the parts, which takes (N - 1) / N of an array's time. Then the parts go round the "
        "ring, which takes as long again, since all workers send at once. A tree, in which all that have the array "
        "send it on, takes log2(N) arrays' time. Another good answer cuts the array into many pieces that follow "
        "one another from worker to worker.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)

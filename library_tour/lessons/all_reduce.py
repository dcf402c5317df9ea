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
    """Workers with one array each, and the times at which their links would carry what is sent.

    A worker sends to one other at a time and receives from one at a time. The unit of time is that of a whole array.
    """

    def __init__(self, workers: int, size: int) -> None:
        self.source = np.random.default_rng(5).random(size, np.float32)
        first = cuda.to_device(self.source)
        self.arrays = [first, *(poisoned(size, np.float32) for _ in range(1, workers))]
        # When a worker's link out and its link in are free, and when each of its elements has arrived.
        self.sends, self.receives = np.zeros(workers), np.zeros(workers)
        self.there = np.full((workers, size), np.inf)
        self.there[0] = 0

    def send(self, source: int, target: int, begin: int, end: int) -> None:
        """Copy elements from one worker to another, as soon as they have arrived and both links are free."""
        if begin == end:
            return
        cuda.memcpy(self.arrays[target][begin:end], self.arrays[source][begin:end])
        start = max(self.sends[source], self.receives[target], self.there[source, begin:end].max())
        done = start + (end - begin) / self.source.size
        self.sends[source] = self.receives[target] = done
        self.there[target, begin:end] = np.minimum(self.there[target, begin:end], done)


def check(answer: ModuleType) -> Iterator[Check]:
    """Broadcast arrays whose sizes are and are not multiples of the number of workers; add up the link times."""
    for workers, size in ((8, 1024), (5, 1003), (2, 64)):
        links = Links(workers, size)
        answer.broadcast(links.send, workers, size)
        got = np.array([array.to_host() for array in links.arrays])
        yield compare(f"{workers} workers have all {size:,} elements", got, np.tile(links.source, (workers, 1)))
        fact = f"{workers} workers: it takes at most the time of two arrays over a link"
        yield at_most(fact, float(links.there.max()), 2)


LESSON = Lesson(
    why="When several GPUs train one model, each computes a gradient, and all need the sum. For 1 GiB per "
    "device, two H200s need 6.2 ms if one of them adds for both, and 3.2 ms if each adds half. Both versions send "
    "one array per device. With eight devices, the first would send seven arrays over the links of a single "
    "worker, and the second only 1.75 over the links of each.\n\n"
    "This operation is called an **all-reduce**. It decides how well most programs on many GPUs scale.",
    learn=[
        "say what an all-reduce does: each worker has an array, and afterwards each has the sums of all arrays.",
        "find the bottleneck when one worker adds for all others: its links carry N - 1 arrays each way.",
        "keep all links busy with a ring, in which no worker sends more than two arrays, however many workers "
        "there are.",
        "explain why large arrays are limited by bandwidth, and small ones by the number of steps.",
    ],
    idea="Each worker has a link in and a link out, and all links can work at the same time. The time is "
    "therefore at least the number of bytes that the *busiest* worker sends, divided by the bandwidth of its "
    "link. The least possible number is 2 (N - 1) / N arrays.\n\n"
    "A **ring** reaches it. Cut each array into N parts. In every step each worker sends one part to the next "
    "worker. In a first round the receiver adds its own elements, so that after N - 1 steps each worker has the "
    "sums of one part. In a second round these sums are passed on.\n\n"
    "The rule of thumb: for large arrays, count the bytes of the busiest link; for small ones, count the steps and "
    "the calls.",
    steps=[
        Step(
            name="through one",
            shows=["Team", "add_into", "through_one"],
            text="The first worker receives each of the other arrays, adds it to its own, and sends the sums back. "
            "Only its links are busy, one copy after another. `Team.meet` makes each stream wait for all others, on "
            "the devices and not on the host.",
        ),
        Step(
            name="round a ring",
            shows=["add_into", "ring"],
            text="Arrays are cut into as many parts as there are workers. In each step of the first round, a worker "
            "sends one part to the next worker, which adds its own elements. After N - 1 steps each worker has the "
            "sums of one part. In the second round these parts are passed on and kept. In every step all links carry "
            "a part, and each worker sends 2 (N - 1) / N arrays in all.",
        ),
        Step(
            name="kernels on peers",
            shows=["reduce_peers", "on_peers"],
            text="With **peer access** a kernel reads and writes the memory of other devices. Each device adds one "
            "part of all arrays and writes the sums to all of them. That moves the same bytes, without space for "
            "copies and in one launch per device instead of 2 (N - 1) steps. The arrays are added in the same order "
            "everywhere.",
        ),
        Step(
            name="MPI, through the host",
            shows=["by_mpi"],
            text="For ranks: processes that cannot see each other's memory. The array is copied to pinned memory on "
            "the host, MPI adds, and the sums are copied back. `by_mpi_on_device` is for an MPI library that accepts "
            "addresses of device memory.",
        ),
        Step(
            name="NCCL",
            shows=["join_nccl", "by_nccl"],
            text="NVIDIA's library knows the links between the GPUs and chooses its algorithm by the number of "
            "bytes. The call is queued in a stream of each worker. Calls for several workers of one process form a "
            "group, so that no call waits for one that has not been made yet.",
        ),
        Step(
            name="NCCL, as a graph",
            shows=["as_graph", "launch_graph"],
            text="The work of all streams is captured once. Launching the graph saves the host the calls, which "
            "matters when the arrays are small.",
        ),
    ],
    look_at=[
        "The column 'arrays sent' counts what the busiest worker sends. With four workers it is 3 arrays "
        "through one, and 1.5 around a ring or by kernels. With more workers the first number grows, and the second "
        "stays below 2. With two workers both are 1, but through one the sums return only when all elements have "
        "arrived, while a ring sends both ways at once.",
        "On GPUs, GB/s is the bus bandwidth: the least number of bytes that a worker must send, divided by the "
        "time. So it can be compared with the bandwidth of the link, for any number of workers.",
        "Two H200s with NVLink and 1 GiB each reach about 170 GB/s through one, 340 GB/s around a ring, nearly "
        "the same by kernels on peers and by NCCL, and 1.9 GB/s by MPI through the host. The link carries 396 GB/s in "
        "one direction.",
        "The same two with 64 KiB each reach 0.5 GB/s through one, 0.1 around a ring, 0.6 by kernels on peers, "
        "0.3 by NCCL and 3.3 by NCCL as a graph. Here the calls and the steps cost more than the bytes.",
    ],
    exercise=Exercise(
        task="Write `broadcast(send, workers, size)`, which brings the array of worker 0 to all other workers. "
        "`send(source, target, begin, end)` copies the elements `begin` to `end` of one worker's array to the same "
        "place in another's. It starts when these elements have arrived at the source, the source is not sending "
        "anything else and the target is not receiving anything else. It takes the time of these elements over one "
        "link. The last copy must end within the time of two whole arrays over one link, for any number of workers.",
        hints=[
            "Worker 0 cannot send more than two arrays in this time. So it cannot send the whole array to "
            "everyone; the others must pass it on.",
            "Let worker 0 first send each worker one part, as if they had added these parts in the first round "
            "of a ring. What does the second round do then?",
            "In step *s* of the second round, worker *w* passes part *w* - *s* (modulo the number of workers) "
            "to worker *w* + 1.",
        ],
        answer="Worker 0 deals out the parts, which takes (N - 1) / N of the time of an array. Then the parts go "
        "around the ring, which takes as long again, because all workers send at once. A tree, in which every worker "
        "that has the array sends it on, takes the time of log2(N) arrays. Another good answer cuts the array into "
        "many pieces that follow one another from worker to worker.",
        check=check,
    ),
    course="The lectures give no figures for this topic.",
)

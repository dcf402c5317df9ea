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
    """Workers with one array each, and the times at which their links would carry the copies.

    A worker sends to one other at a time and receives from one at a time. The unit of time is one transfer of an array.
    """

    def __init__(self, workers: int, size: int) -> None:
        self.source = np.random.default_rng(5).random(size, np.float32)
        first = cuda.to_device(self.source)
        self.arrays = [first, *(poisoned(size, np.float32) for _ in range(1, workers))]
        # The times at which each worker's outgoing and incoming links are free, and at which its elements have arrived.
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
    """Broadcast arrays that split evenly among the workers and others that do not; add up the link times."""
    for workers, size in ((8, 1024), (5, 1003), (2, 64)):
        links = Links(workers, size)
        answer.broadcast(links.send, workers, size)
        got = np.array([array.to_host() for array in links.arrays])
        yield compare(f"{workers} workers have all {size:,} elements", got, np.tile(links.source, (workers, 1)))
        fact = f"{workers} workers: the broadcast takes at most as long as sending two arrays over one link"
        yield at_most(fact, float(links.there.max()), 2)


LESSON = Lesson(
    why="When several GPUs train one model, each computes a gradient, and all of them need the sum. With 1 GiB per "
    "device, two H200s take 6.2 ms if one of them does all the additions, and 3.2 ms if each does half of them. Both "
    "versions send one array per device. With eight devices, the first version would send seven arrays over the links "
    "of a single device. The second would send only 1.75 over the links of each device.\n\n"
    "This operation is called an **all-reduce**. It determines how well most multi-GPU programs scale.",
    learn=[
        "say what an all-reduce does: each worker starts with one array and ends up with the sum of all arrays.",
        "identify the bottleneck when one worker does all the additions: its links carry N - 1 arrays in each "
        "direction.",
        "keep all links busy with a ring, in which no worker sends more than two arrays, however many workers "
        "there are.",
        "explain why large arrays are limited by bandwidth, and small ones by the number of steps.",
    ],
    idea="Each worker has an incoming and an outgoing link, and all links can be in use at the same time. The time is "
    "therefore at least the number of bytes that the *busiest* worker sends, divided by the bandwidth of its link. The "
    "minimum is 2 (N - 1) / N arrays per worker.\n\n"
    "A **ring** reaches this minimum. Each array is cut into N parts, and in every step each worker sends one part to "
    "the next worker. In the first round, the **reduce-scatter**, the receiver adds its own elements to the part. "
    "After N - 1 steps, each worker has the complete sums for one part. In the second round, the **all-gather**, these "
    "sums are passed around the ring.\n\n"
    "The rule of thumb: for large arrays, count the bytes on the busiest link; for small ones, count the steps and the "
    "calls.",
    steps=[
        Step(
            name="through one",
            shows=["Team", "add_into", "through_one"],
            text="The first worker receives each of the other arrays, adds it to its own, and sends the sums back. "
            "Only its links are busy, and the copies run one after another. `Team.meet` makes each stream wait for all "
            "the others. The devices do the waiting, not the host.",
        ),
        Step(
            name="round a ring",
            shows=["add_into", "ring"],
            text="Each array is cut into as many parts as there are workers. In each step of the first round, every "
            "worker sends one part to the next worker, which adds its own elements. After N - 1 steps, each worker has "
            "the sums for one part. In the second round, each worker keeps the parts that it receives and passes them "
            "on. All links carry a part in every step, and each worker sends 2 (N - 1) / N arrays in total.",
        ),
        Step(
            name="kernels on peers",
            shows=["reduce_peers", "on_peers"],
            text="With **peer access**, a kernel can read and write the memory of other devices. Each device sums one "
            "part over all arrays and writes the result to every array. That moves the same number of bytes, but needs "
            "no buffers, and takes one launch per device instead of 2 (N - 1) steps. The arrays are added in the same "
            "order everywhere.",
        ),
        Step(
            name="MPI, through the host",
            shows=["by_mpi"],
            text="This version is for ranks, which are processes that cannot access each other's memory. The array is "
            "copied to pinned memory on the host, MPI does the additions, and the sums are copied back. "
            "`by_mpi_on_device` is for MPI libraries that accept device addresses.",
        ),
        Step(
            name="NCCL",
            shows=["join_nccl", "by_nccl"],
            text="NCCL, NVIDIA's communication library, knows the links between the GPUs and chooses an algorithm that "
            "suits the number of bytes. The call for each worker is queued in that worker's stream. The calls for "
            "several workers in one process form a group. Otherwise, the first call might wait for one that has not "
            "been issued yet.",
        ),
        Step(
            name="NCCL, as a graph",
            shows=["as_graph", "launch_graph"],
            text="The work of all streams is captured once. A single launch of the graph then replaces all the calls "
            "on the host. That pays off for small arrays, where the host overhead dominates.",
        ),
    ],
    look_at=[
        "The 'arrays sent' column shows how many arrays the busiest worker sends. With four workers, that is 3 arrays "
        "through one worker, and 1.5 in a ring or with kernels. As workers are added, the first number grows, but the "
        "second stays below 2. With two workers, both are 1. The ring is still faster, because it sends both ways at "
        "the same time, while a single worker can return the sums only after all elements have arrived.",
        "On GPUs, the 'GB/s' column shows the bus bandwidth: the minimum number of bytes that a worker must send, "
        "divided by the time. It can be compared with the bandwidth of the link, however many workers there are.",
        "With 1 GiB per device, two H200s connected by NVLink reach about 170 GB/s through one of them and 340 GB/s in "
        "a ring. Kernels on peers and NCCL reach nearly the same rate as the ring, and MPI through the host reaches "
        "1.9 GB/s. The link carries 396 GB/s in one direction.",
        "With 64 KiB per device, the calls and the steps take more time than the transfers. The same two devices reach "
        "0.5 GB/s through one of them, 0.1 GB/s in a ring, 0.6 GB/s with kernels on peers and 0.3 GB/s with NCCL. As a "
        "graph, NCCL reaches 3.3 GB/s.",
    ],
    exercise=Exercise(
        task="Write `broadcast(send, workers, size)`, which copies the array of worker 0 to all other workers. "
        "`send(source, target, begin, end)` copies elements of one worker's array, from index `begin` up to but not "
        "including `end`, to the same indices of another worker's array. A copy starts as soon as these elements have "
        "arrived at the source, the source is not sending anything else, and the target is not receiving anything "
        "else. It takes as long as one link needs to carry these elements. For any number of workers, the last copy "
        "must finish within the time that one link needs to carry two whole arrays.",
        hints=[
            "Worker 0 cannot send more than two arrays in this time, so it cannot send the whole array to everyone. "
            "The others must pass it on.",
            "Let worker 0 first send one part to each worker, as if that worker had summed it in the first round of a "
            "ring. What remains for the second round to do?",
            "In step *s* of the second round, worker *w* passes part *w* - *s* (modulo the number of workers) "
            "to worker *w* + 1.",
        ],
        answer="Worker 0 distributes the parts, which takes (N - 1) / N of the time for a whole array. Then the parts "
        "travel around the ring. That takes just as long, because all workers send at the same time. A tree, in which "
        "every worker that has the array sends it on, takes as long as sending log2(N) arrays one after another. "
        "Another good answer cuts the array into many pieces and passes them from worker to worker in a pipeline.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)

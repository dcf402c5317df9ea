"""The lesson of `streams`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare
from ..device_code import load
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

PIECES, STAGES = 8, 3
# The generator of the exercise: x = A x + C, STEPS times.
A, C, STEPS = 1664525, 1013904223, 4


def longest_chain(graph: cuda.graphs.Graph) -> int:
    """Return the number of nodes on the longest path through a graph, whose nodes come after those they wait for."""
    reached: list[int] = []
    nodes = graph.nodes
    for node in nodes:
        before = [reached[nodes.index(other)] for other in node.dependencies]
        reached.append(1 + max(before, default=0))
    return max(reached, default=0)


def check(answer: ModuleType) -> Iterator[Check]:
    """Transform arrays in pieces between other work of the first stream; then capture that, and check its order."""
    kernel = load("streams")["generate"]
    for count, size in ((2, 4096), (4, 4099)):
        numbers = np.random.default_rng(5).integers(0, 2**32, size, np.uint32)
        expected = numbers.copy()
        for _ in range(STEPS):
            expected = np.uint32(A) * expected + np.uint32(C)
        source, target = (cuda.pinned_empty(size, np.uint32) for _ in range(2))
        source.fill(0)
        target.fill(0)
        on_device = cuda.zeros(size, np.uint32)
        streams = [cuda.Stream(non_blocking=True) for _ in range(count)]
        cuda.legacy_default.synchronize()
        begun: list[bool] = []
        found = np.zeros_like(numbers)

        streams[0].launch_host_function(partial(begun.append, True))
        streams[0].launch_host_function(partial(np.copyto, source, numbers))
        answer.transform(kernel, source, target, on_device, streams)
        yield Check(f"{count} streams: the host waits for nothing", not begun)
        streams[0].launch_host_function(partial(np.copyto, found, target))
        streams[0].synchronize()
        fact = f"{count} streams: the pieces run between the earlier and the later work of the first stream"
        yield compare(fact, found, expected)

        with streams[0].capture() as graph:
            answer.transform(kernel, source, target, on_device, streams)
        operations = STAGES * PIECES
        fact = f"{count} streams: {operations} operations, all of them after the earlier work of the first stream"
        yield Check(fact, graph.node_count == operations, f"There are {graph.node_count}.")
        most = operations // count
        fact = f"{count} streams: at most {most} operations wait for one another in a row"
        yield at_most(fact, longest_chain(graph), most)


LESSON = Lesson(
    why="An H200 copies 55 GB/s in each direction over its link, and can compute at the same time. A program that "
    "copies in, computes and copies out in one stream uses one of the three at a time: it takes 66.9 ms for the array "
    "of this stop. The same copies and the same kernels in four streams take 27.2 ms, 98.9 % of the speed of the "
    "slowest stage alone. No kernel was made faster. The work was only queued so that independent parts can overlap.",
    learn=[
        "say which work runs in order and which may overlap: work within one stream, and work in different streams.",
        "overlap copies in, kernels and copies out by cutting an array into pieces.",
        "say which streams wait for one another without being told to: the two default streams, ordinary "
        "streams and non-blocking ones.",
        "say when kernels run side by side, and what the priority of a stream changes.",
    ],
    idea="Work in one stream runs in order. Work in different streams may run at the same time, if the device has "
    "room. A GPU has separate **copy engines**, so that a copy to the device, a copy from the device and kernels can "
    "all run at once. To use them, cut the array into pieces and let each piece travel through the three stages in a "
    "stream, like cars on an assembly line.\n\n"
    "The rule of thumb: three stages need at least three streams, pinned memory and no waiting on the host in "
    "between. If one stream reads data that another one writes, an event must put the two in order. Without one, the "
    "program has a race.",
    steps=[
        Step(
            name="1 stream",
            shows=["generate", "Pieces.queue"],
            text="The array is copied in, computed and copied out in pieces. `queue` puts one operation of a piece "
            "into a stream: a copy takes it as `stream=`, a launch as its fourth value. In one stream each operation "
            "waits for the one before, and the pieces gain nothing. The host's arrays are pinned, because a copy of "
            "pageable memory would not overlap.",
        ),
        Step(
            name="2 streams, depth-first",
            shows=["WAYS", "overlapping"],
            text="Now the pieces alternate between two streams. Depth-first queues all three operations of a piece "
            "and then the next piece. Breadth-first queues the same operation for each stream, and then the next "
            "operation. The order within each stream is the same in both.",
        ),
        Step(
            name="a model of the device",
            shows=["model_rows", "whole"],
            text="An engine takes its operations in the order in which they were queued. An operation that must "
            "wait for its stream therefore holds up those queued after it. With a single engine for copies in both "
            "directions, depth-first overlaps nothing.",
        ),
        Step(
            name="non-blocking, then legacy",
            shows=["Chain", "ordered_rows"],
            text="WRONG on purpose: a long kernel writes an array, a short one reads it in another stream, and "
            "nothing makes the reader wait, so it reads old elements. The legacy default stream waits for ordinary "
            "streams, and they wait for it. A non-blocking stream waits for no other. `reader.wait(writer)` is right "
            "for all streams.",
        ),
        Step(
            name="8 kernels, 8 streams",
            shows=["spin", "side_by_side"],
            text="Kernels with few blocks leave most of the device free. In one stream they still run one after "
            "another; in eight streams they run side by side.",
        ),
        Step(
            name="highest priority",
            shows=["priority_rows"],
            text="A kernel fills the device, and a short one is queued after it in another stream. When blocks of the "
            "long kernel end, blocks from the stream with the higher priority start first. A running block is never "
            "interrupted.",
        ),
    ],
    look_at=[
        "The table of the model needs no GPU. Eight pieces take 24 units in one stream, and 10 units in four "
        "streams with two engines. With two streams they take 13, because three stages need at least three streams.",
        "On an H200 one stream takes 66.9 ms, two streams take 35.2 ms and four streams 27.2 ms. Depth-first "
        "and breadth-first are equal there, because the H200 has a copy engine for each direction.",
        "On an H200 eight kernels of 4 blocks take 9.05 ms in one stream and 1.14 ms in eight.",
        "On an H200 the short kernel is done after 26.7 ms at the lowest priority, just when the long one is, "
        "and after 0.2 ms at the highest.",
    ],
    exercise=Exercise(
        task="The function `transform` copies a pinned array to the device in eight pieces, computes them and copies "
        "them back, all in `streams[0]`. Spread the pieces over all streams. They must begin after the work that is "
        "already in `streams[0]`, and work queued in `streams[0]` later must begin after all pieces are done. The "
        "host must not wait, and the streams are non-blocking.",
        hints=[
            "Piece *i* can use stream *i* modulo the number of streams. What does nothing put in order then?",
            "`stream.wait(other)` makes work that is queued in `stream` later wait until everything in `other` so far "
            "is done.",
            "Which streams have to wait before the first piece, and which after the last one?",
        ],
        answer="Before the first piece, each of the other streams waits for the first one. After the last piece, the "
        "first stream waits for each of the others. In between no stream waits for another, so the copies and kernels "
        "of different pieces can overlap. To the caller it looks as if all the work had been done in `streams[0]`.",
        check=check,
    ),
    course="The lectures give no figures for this topic.",
)

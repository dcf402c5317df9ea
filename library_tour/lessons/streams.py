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
# The generator of the exercise: x = A x + C, so many times.
A, C, STEPS = 1664525, 1013904223, 4


def longest_chain(graph: cuda.graphs.Graph) -> int:
    """Return the number of nodes on the longest way through a graph, whose nodes stand behind those they wait for."""
    reached: list[int] = []
    nodes = graph.nodes
    for node in nodes:
        before = [reached[nodes.index(other)] for other in node.dependencies]
        reached.append(1 + max(before, default=0))
    return max(reached, default=0)


def check(answer: ModuleType) -> Iterator[Check]:
    """Transform arrays in pieces between other work of the first stream; then capture that, and look at its order."""
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
        fact = f"{count} streams: the pieces come after the first stream's earlier work and before its later work"
        yield compare(fact, found, expected)

        with streams[0].capture() as graph:
            answer.transform(kernel, source, target, on_device, streams)
        operations = STAGES * PIECES
        fact = f"{count} streams: {operations} operations, all of them behind the first stream's earlier work"
        yield Check(fact, graph.node_count == operations, f"There are {graph.node_count}.")
        most = operations // count
        fact = f"{count} streams: no more than {most} operations wait for each other in a row"
        yield at_most(fact, longest_chain(graph), most)


LESSON = Lesson(
    learn=[
        "Work in one stream runs in its order. Work in different streams may run at the same time.",
        "How an array that is cut into pieces lets copies in, kernels and copies out overlap.",
        "Which streams wait for other streams without being told to: the two default streams, ordinary streams, and "
        "non-blocking ones.",
        "When kernels run side by side, and what a stream's priority changes.",
    ],
    steps=[
        Step(
            name="1 stream",
            shows=["generate", "Pieces.queue"],
            text="The array is copied in, computed and copied out in pieces. `queue` puts one operation of a piece "
            "into a stream: the copies name it as `stream=`, the launch as its fourth value. With one stream each "
            "operation waits for the one before, and the pieces gain nothing. The host's arrays are pinned, since a "
            "copy of pageable memory would not overlap.",
        ),
        Step(
            name="2 streams, depth-first",
            shows=["WAYS", "overlapping"],
            text="Now the pieces take turns in two streams. Depth-first queues all three operations of a piece and "
            "then the next piece; breadth-first queues the same operation for each stream, and then the next "
            "operation. The order within a stream is the same in both.",
        ),
        Step(
            name="a model of the device",
            shows=["model_rows", "whole"],
            text="An engine takes its operations in the order in which they were queued, so that one which must wait "
            "for its stream holds up those behind it. With a single engine for copies in both directions, "
            "depth-first overlaps nothing.",
        ),
        Step(
            name="non-blocking, then legacy",
            shows=["Chain", "ordered_rows"],
            text="A long kernel writes numbers, and a short one reads them in another stream. The legacy default "
            "stream waits for ordinary streams and they for it; a non-blocking stream waits for none. Where nothing "
            "makes the reader wait, it reads old numbers, which is shown on purpose. `reader.wait(writer)` is right "
            "for all streams.",
        ),
        Step(
            name="8 kernels, 8 streams",
            shows=["spin", "side_by_side"],
            text="Kernels of few blocks leave most of the device free. In one stream they run one after the other "
            "all the same; in eight streams they run side by side.",
        ),
        Step(
            name="highest priority",
            shows=["priority_rows"],
            text="A kernel fills the device, and a short one is queued behind it in another stream. When blocks of the "
            "long kernel end, those of the stream with the higher priority are next. A block that runs is never "
            "interrupted.",
        ),
    ],
    look_at=[
        "The table of the model needs no GPU: 8 pieces take 24 units in one stream, and 10 units in four streams with "
        "two engines. With two streams it is 13, since three stages need three streams at least.",
        "On an H200 one stream takes 66.9 ms, two streams 35.2 ms, and four streams 27.2 ms, which is 98.9 % of the "
        "rate of the longest stage alone. Depth-first and breadth-first are equal there: it has an engine for each "
        "direction.",
        "On an H200 eight kernels of 4 blocks take 9.05 ms in one stream and 1.14 ms in eight.",
        "On an H200 the short kernel is done after 26.7 ms at the lowest priority, when the long one is, and after "
        "0.2 ms at the highest.",
    ],
    exercise=Exercise(
        task="The function `transform` copies a pinned array to the device in eight pieces, computes them and copies "
        "them back, all in `streams[0]`. Let the pieces take turns in all streams. They must begin after the "
        "work that `streams[0]` has been given before, and what `streams[0]` is given afterwards must find all pieces "
        "done. The host must not wait, and the streams are non-blocking.",
        hints=[
            "`stream.wait(other)` lets what is queued in `stream` from now on begin after what is in `other` by now. "
            "Which streams have to wait before the first piece, and which after the last one?",
        ],
        answer="Before the first piece each of the other streams waits for the first one, and after the last piece the "
        "first one waits for each of the others. In between no stream waits for another one, so the copies and "
        "kernels of different pieces can overlap. To the caller it looks as if all work was done in `streams[0]`.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)

"""The lesson of `streams`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
    """Return the number of nodes on the longest path through a graph whose nodes are in topological order."""
    reached: list[int] = []
    nodes = graph.nodes
    for node in nodes:
        before = [reached[nodes.index(other)] for other in node.dependencies]
        reached.append(1 + max(before, default=0))
    return max(reached, default=0)


def check_waits(
    work: Callable[[], object], streams: Sequence[cuda.Stream], operations: int, unit: str = "piece"
) -> Iterator[Check]:
    """Capture work; check that every stream waits for `streams[0]` at the start, and `streams[0]` for it at the end.

    The work should consist of `operations` operations, and `unit` is the word for its parts. Raises CaptureError for
    work that cannot be captured for another reason.
    """
    first, *others = streams
    joined: list[int] = []
    failed: cuda.errors.CaptureError | None = None
    ends: Sequence[cuda.graphs.GraphNode] = ()
    captured = 0
    try:
        with first.capture() as graph:
            try:
                work()
            finally:
                joined = [number for number, other in enumerate(others, 1) if _captured(other)]
            # A mark at the end of each stream, whose dependencies are the stream's last operations.
            for number in (*joined, 0):
                streams[number].launch_host_function(_mark)
            for number in joined:
                first.wait(streams[number])
        ends = graph.nodes[-1 - len(joined) :]
        captured = graph.node_count - len(ends)
    except cuda.errors.CaptureError as error:
        failed = error
    apart = [number for number in range(1, len(streams)) if number not in joined] if captured < operations else []
    if failed and (not apart or failed.call != "cuStreamWaitEvent"):
        raise failed
    detail = " ".join(f"streams[{number}] does not wait for streams[0] before its first {unit}." for number in apart)
    yield Check("all work comes after the earlier work of streams[0]", not apart, detail)
    if ends and not apart:
        done = _ancestors(ends[-1])
        running = [number for number, end in zip(joined, ends, strict=False) if not done.issuperset(end.dependencies)]
        detail = " ".join(f"streams[0] does not wait for streams[{number}] at the end." for number in running)
        yield Check("all work comes before the later work of streams[0]", not running, detail)


def _captured(stream: cuda.Stream) -> bool:
    try:
        return stream.is_capturing
    except cuda.errors.CaptureError:  # the capture was invalidated
        return True


def _mark() -> None:
    """Do nothing, as a node of a graph."""


def _ancestors(node: cuda.graphs.GraphNode) -> set[cuda.graphs.GraphNode]:
    """Return all nodes that a node depends on."""
    found: set[cuda.graphs.GraphNode] = set()
    ahead = [*node.dependencies]
    while ahead:
        if (other := ahead.pop()) not in found:
            found.add(other)
            ahead += other.dependencies
    return found


def check(answer: ModuleType) -> Iterator[Check]:
    """Transform arrays in pieces between other work of the first stream; then capture the work and check its order."""
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
        host_waits = bool(begun)
        yield Check(f"{count} streams: the host does not wait", not host_waits)
        streams[0].launch_host_function(partial(np.copyto, found, target))
        cuda.current_device().synchronize()
        work = partial(answer.transform, kernel, source, target, on_device, streams)
        operations = STAGES * PIECES
        if not host_waits:
            # First, since without a wait the elements are right only by chance.
            waits = [
                Check(f"{count} streams: {check.fact}", check.holds, check.detail)
                for check in check_waits(work, streams, operations)
            ]
            cuda.current_device().synchronize()
            yield from waits
            if not all(check.holds for check in waits):
                return
        yield compare(f"{count} streams: all elements are transformed", found, expected)
        if host_waits:
            return

        with streams[0].capture() as graph:
            work()
        fact = f"{count} streams: there are {operations} operations"
        yield Check(fact, graph.node_count == operations, f"There are {graph.node_count}.")
        most = operations // count
        fact = f"{count} streams: at most {most} operations depend on one another in a chain"
        yield at_most(fact, longest_chain(graph), most)


LESSON = Lesson(
    why="An H200 can copy at 55 GB/s in each direction over its link to the host, and compute at the same time. A "
    "program that copies in, computes and copies out in a single stream does only one of the three at a time. For the "
    "array in this stop, that takes 67.2 ms. In four streams, the same copies and kernels take 27.6 ms. That is 98.4 % "
    "of the speed that the slowest stage reaches alone. No kernel got faster. The work was merely queued so that "
    "independent parts can overlap.",
    learn=[
        "say which work runs in order and which may overlap, within one stream and across streams.",
        "overlap copies to the device, kernels and copies back by cutting an array into pieces.",
        "say which of these wait for one another implicitly: the two default streams, ordinary streams and "
        "non-blocking streams.",
        "say when kernels run concurrently, and what effect a stream's priority has.",
    ],
    idea="Work in one stream runs in order. Work in different streams may run at the same time, if the device has free "
    "resources. A GPU has separate **copy engines**, so a copy to the device, a copy from the device and kernels can "
    "all run at the same time. To keep all of them busy, cut the array into pieces, and send the pieces through the "
    "three stages in several streams, like cars on an assembly line.\n\n"
    "The rule of thumb: to overlap three stages, use at least three streams and pinned (page-locked) memory, and do "
    "not make the host wait between operations. If one stream reads data that another stream writes, use an event to "
    "order the two. Without it, the program has a race.",
    steps=[
        Step(
            name="1 stream",
            shows=["generate", "Pieces.queue"],
            text="The array is copied in, processed and copied out in pieces. `queue` adds one operation for one piece "
            "to a stream: a copy takes the stream as `stream=`, and a launch takes it as the fourth value in the "
            "brackets. In one stream, each operation waits for the one before it, so cutting the array into pieces "
            "gains nothing. The host arrays are pinned, because copies to and from pageable memory would not overlap.",
        ),
        Step(
            name="2 streams, depth-first",
            shows=["issued", "WAYS", "overlapping"],
            text="Now the pieces alternate between two streams. Depth-first order queues all three operations on a "
            "piece before it moves on to the next piece. Breadth-first order queues the same operation for each stream "
            "before it moves on to the next operation. `issued` returns the operations in either order, and `DEPTH` "
            "selects depth-first order. The order within each stream is the same in both.",
        ),
        Step(
            name="a model of the device",
            shows=["modelled", "model_rows", "whole"],
            text="An engine executes its operations in the order in which they were queued. An operation that must "
            "wait for its stream therefore blocks all operations queued after it on the same engine. With a single "
            "engine for copies in both directions, nothing overlaps in depth-first order.",
        ),
        Step(
            name="non-blocking, then legacy",
            shows=["Chain", "ordered_rows"],
            text="Wrong on purpose. A long kernel writes an array, and a short kernel in another stream reads it. "
            "Nothing makes the reader wait, so it reads stale values. The legacy default stream and ordinary streams "
            "wait for each other, but a non-blocking stream waits for neither. `reader.wait(writer)` works for all "
            "streams.",
        ),
        Step(
            name="8 kernels, 8 streams",
            shows=["spin", "side_by_side"],
            text="Kernels with few blocks leave most of the device free. In one stream they still run one after "
            "another, but in eight streams they run concurrently.",
        ),
        Step(
            name="highest priority",
            shows=["priority_rows"],
            text="A long kernel fills the device, and a short one is queued after it in another stream. As blocks of "
            "the long kernel finish, blocks from the stream with the higher priority start first. A running block is "
            "never interrupted.",
        ),
    ],
    look_at=[
        "The model's table can be computed without a GPU. With two copy engines, eight pieces take 24 units in one "
        "stream and 10 units in four streams. In two streams they take 13, because three stages need at least three "
        "streams.",
        "On an H200, one stream takes 67.2 ms, two streams take 35.2 ms, and four streams take 27.6 ms. Depth-first "
        "and breadth-first order are equally fast there, because the H200 has a copy engine for each direction.",
        "On an H200, eight kernels of 4 blocks each take 9.04 ms in one stream and 1.14 ms in eight streams.",
        "On an H200, the short kernel finishes after 26.8 ms at the lowest priority, at the same time as the long "
        "one. At the highest priority, it finishes after 0.1 ms.",
    ],
    exercise=Exercise(
        task="The `transform` function copies a pinned array to the device in eight pieces, runs a kernel on each "
        "piece and copies it back, all in `streams[0]`. Distribute the pieces over all streams. No piece may start "
        "before the work that is already in `streams[0]` is done, and work queued later in `streams[0]` must not start "
        "before all pieces are done. The host must not wait. All streams are non-blocking.",
        hints=[
            "Piece *i* can use stream *i* modulo the number of streams. Which operations are then no longer ordered?",
            "`stream.wait(other)` makes all later work in `stream` wait until everything queued in `other` so far is "
            "done.",
            "Which streams have to wait before the first piece, and which have to wait after the last one?",
        ],
        answer="Before the first piece, each of the other streams waits for the first one. After the last piece, the "
        "first stream waits for each of the others. In between, no stream waits for another, so the copies and "
        "kernels of different pieces can overlap. To the caller, it looks as if all the work had been done in "
        "`streams[0]`.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)

"""The further exercises of `streams`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare
from ..device_code import load
from ..lesson import Exercise, at_most
from ..lessons.streams import longest_chain
from ..stop import Check

# The generator of the stop's kernel: x = A x + C, so many times.
A, C, STEPS = 1664525, 1013904223, 4
PIECES, LENGTH = 8, 512
# Adds what the pieces before have left to a piece, and leaves something to the next one. One block is launched.
ADD_CARRY = """
extern "C" __global__ void add_carry(unsigned* piece, unsigned* carry, int n)
{
    unsigned before = *carry;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        piece[i] += before;
    if (threadIdx.x == 0)
        *carry = 3 * before + piece[0];
}
"""


def check_both(answer: ModuleType) -> Iterator[Check]:
    """Transform two arrays between other work of the first stream; then capture that, and look at its order."""
    kernel = load("streams")["generate"]
    numbers = np.random.default_rng(5).integers(0, 2**32, (2, LENGTH), np.uint32)
    expected = numbers.copy()
    for _ in range(STEPS):
        expected = np.uint32(A) * expected + np.uint32(C)
    host = cuda.pinned_empty(numbers.shape, np.uint32)
    arrays = [cuda.zeros(LENGTH, np.uint32) for _ in range(2)]
    first, second = streams = [cuda.Stream(non_blocking=True) for _ in range(2)]
    cuda.legacy_default.synchronize()
    begun: list[bool] = []
    first.launch_host_function(partial(begun.append, True))
    first.launch_host_function(partial(np.copyto, host, numbers))
    for array, row in zip(arrays, host, strict=True):
        cuda.memcpy(array, row, stream=first)
    answer.both(kernel, *arrays, streams)
    yield Check("the host waits for nothing", not begun)
    for array, row in zip(arrays, host, strict=True):
        cuda.memcpy(row, array, stream=first)
    first.synchronize()
    fact = "both arrays are computed after the first stream's earlier work and before its later work"
    yield compare(fact, np.array(host), expected)
    second.synchronize()
    with first.capture() as graph:
        answer.both(kernel, *arrays, streams)
    yield Check("there are 2 kernels", graph.node_count == 2, f"There are {graph.node_count}.")
    yield at_most("neither of them waits for the other", longest_chain(graph), 1)


def check_carry(answer: ModuleType) -> Iterator[Check]:
    """Work on pieces of which each needs the one before; then capture that, and look at its order."""
    kernel = cuda.compile(ADD_CARRY)["add_carry"]
    numbers = np.random.default_rng(5).integers(0, 1000, PIECES * LENGTH).astype(np.uint32)
    expected, before = numbers.copy(), np.uint32(1)
    for piece in expected.reshape(PIECES, LENGTH):
        piece += before
        before = np.uint32(int(3 * int(before) + int(piece[0])) % 2**32)
    source, target = (cuda.pinned_empty(numbers.size, np.uint32) for _ in range(2))
    np.copyto(source, numbers)
    on_device, carry = cuda.zeros(numbers.size, np.uint32), cuda.full(1, 1, np.uint32)
    streams = [cuda.Stream(non_blocking=True) for _ in range(3)]
    cuda.legacy_default.synchronize()
    answer.transform(kernel, source, target, on_device, carry, streams)
    streams[0].synchronize()
    yield compare("each piece gets what the pieces before have left", np.array(target), expected)
    with streams[0].capture() as graph:
        answer.transform(kernel, source, target, on_device, carry, streams)
    operations, row = 3 * PIECES, PIECES + 2
    yield Check(f"there are {operations} operations", graph.node_count == operations, f"There are {graph.node_count}.")
    longest = longest_chain(graph)
    yield at_most(f"no more than {row} operations wait for each other in a row", longest, row)
    yield Check("the kernels run one after another", longest >= row, f"Only {longest} operations are in a row.")


FURTHER = [
    Exercise(
        name="easy",
        task="The function `both` computes two arrays, each in its own stream. The host waits for one kernel before "
        "it launches the next. Let both kernels run side by side, and let the host wait for nothing. Both must begin "
        "after the work that is already in `streams[0]`, and work queued in `streams[0]` afterwards must begin after "
        "both. The streams are non-blocking.",
        hints=[
            "`stream.synchronize()` lets the host wait. `stream.wait(other)` lets a stream wait, and returns at once.",
            "The second stream has to wait for the first one before its kernel. Which one waits after the kernels?",
        ],
        answer="`streams[1]` waits for `streams[0]` before the kernels, and `streams[0]` waits for `streams[1]` after "
        "them. Waits of streams are queued like any other work, so the host is free.",
        check=check_both,
    ),
    Exercise(
        name="hard",
        task="The function `transform` works on an array in eight pieces. The kernel of each piece needs the result "
        "that the previous kernel has stored in `carry`, so the kernels must run in order. The copies need not wait "
        "for that: while a kernel runs, later pieces can be copied in and earlier ones out. Use the three "
        "non-blocking streams so that at most ten operations wait for each other in a row. All of it must begin after "
        "the work that is already in `streams[0]`, and work queued in `streams[0]` afterwards must begin after all of "
        "it.",
        hints=[
            "Draw the dependencies: a kernel waits for the copy of its piece and for the previous kernel. A copy out "
            "waits for its kernel. Nothing else has to wait.",
            "Give each kind of work a stream of its own: one for the copies in, one for the kernels, one for the "
            "copies out.",
            "`stream.wait(other)` waits for the work that is in `other` at that moment. Call it right after you have "
            "queued the operation to wait for.",
        ],
        answer="The copies in are in one stream, the kernels in a second and the copies out in a third. After a copy "
        "in is queued, the kernels' stream waits for it, and after a kernel the third stream waits. The longest chain "
        "is the first copy in, the eight kernels and the last copy out. With one stream per piece it would be equally "
        "short, but each kernel would need one more wait, for the kernel before.",
        check=check_carry,
    ),
]

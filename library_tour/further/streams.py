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
from ..lessons.streams import check_waits, longest_chain
from ..stop import Check

# The stop's kernel computes x = A x + C, STEPS times.
A, C, STEPS = 1664525, 1013904223, 4
PIECES, LENGTH = 8, 512
# Adds the carry of the previous pieces to a piece, and updates it for the next one. It runs in a single block.
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
    """Transform two arrays between other work of the first stream; then capture the work and check its order."""
    kernel = load("streams")["generate"]
    numbers = np.random.default_rng(5).integers(0, 2**32, (2, LENGTH), np.uint32)
    expected = numbers.copy()
    for _ in range(STEPS):
        expected = np.uint32(A) * expected + np.uint32(C)
    host = cuda.pinned_empty(numbers.shape, np.uint32)
    arrays = [cuda.zeros(LENGTH, np.uint32) for _ in range(2)]
    first, _ = streams = [cuda.Stream(non_blocking=True) for _ in range(2)]
    cuda.legacy_default.synchronize()
    begun: list[bool] = []
    first.launch_host_function(partial(begun.append, True))
    first.launch_host_function(partial(np.copyto, host, numbers))
    for array, row in zip(arrays, host, strict=True):
        cuda.memcpy(array, row, stream=first)
    answer.both(kernel, *arrays, streams)
    host_waits = bool(begun)
    yield Check("the host does not wait", not host_waits)
    for array, row in zip(arrays, host, strict=True):
        cuda.memcpy(row, array, stream=first)
    cuda.current_device().synchronize()
    found, work = np.array(host), partial(answer.both, kernel, *arrays, streams)
    if not host_waits:
        waits = list(check_waits(work, streams, 2, "kernel"))
        cuda.current_device().synchronize()
        yield from waits
        if not all(check.holds for check in waits):
            return
    yield compare("both arrays are processed", found, expected)
    if host_waits:
        return
    with first.capture() as graph:
        work()
    yield Check("there are 2 kernels", graph.node_count == 2, f"There are {graph.node_count}.")
    yield at_most("neither of them waits for the other", longest_chain(graph), 1)


def check_carry(answer: ModuleType) -> Iterator[Check]:
    """Process pieces, each of which needs the previous one; then capture the work and check its order."""
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
    found = np.array(target)
    cuda.current_device().synchronize()
    operations, row = 3 * PIECES, PIECES + 2
    work = partial(answer.transform, kernel, source, target, on_device, carry, streams)
    waits = list(check_waits(work, streams, operations))
    cuda.current_device().synchronize()
    yield from waits
    if not all(check.holds for check in waits):
        return
    yield compare("each piece gets the carry of the pieces before it", found, expected)
    with streams[0].capture() as graph:
        work()
    yield Check(f"there are {operations} operations", graph.node_count == operations, f"There are {graph.node_count}.")
    longest = longest_chain(graph)
    yield at_most(f"at most {row} operations depend on one another in a chain", longest, row)
    yield Check("the kernels run one after another", longest >= row, f"The longest chain has {longest} operations.")


FURTHER = [
    Exercise(
        name="easy",
        task="The function `both` runs a kernel on each of two arrays, each in its own stream. The host waits for one "
        "kernel before it launches the next. Let the two kernels run concurrently, without making the host wait. Both "
        "must start after the work that is already in `streams[0]`, and work queued in `streams[0]` afterwards must "
        "start after both. The streams are non-blocking.",
        hints=[
            "`stream.synchronize()` makes the host wait. `stream.wait(other)` makes a stream wait, and returns "
            "immediately.",
            "The second stream has to wait for the first one before its kernel. Which stream has to wait after the "
            "kernels?",
        ],
        answer="`streams[1]` waits for `streams[0]` before the kernels, and `streams[0]` waits for `streams[1]` after "
        "them. These waits are queued like any other work, so the host does not wait.",
        check=check_both,
    ),
    Exercise(
        name="hard",
        task="The function `transform` processes an array in eight pieces. The kernel for each piece needs the result "
        "that the previous kernel stored in `carry`, so the kernels must run in order. The copies do not need to wait "
        "for that: while a kernel runs, later pieces can be copied in and earlier ones copied out. Use the three "
        "non-blocking streams so that no chain of dependent operations is longer than ten. All of the work must start "
        "after the work that is already in `streams[0]`, and work queued in `streams[0]` afterwards must start after "
        "all of it.",
        hints=[
            "Draw the dependencies. A kernel waits for the copy of its piece and for the previous kernel. The copy of "
            "a result waits for the kernel that computes it. Nothing else has to wait.",
            "Give each kind of work its own stream: one for the copies to the device, one for the kernels, and one "
            "for the copies back.",
            "`stream.wait(other)` waits for the work that is in `other` at the time of the call. Call it right after "
            "you queue the operation to wait for.",
        ],
        answer="The copies to the device go to one stream, the kernels to a second and the copies back to a third. "
        "The second stream waits for each copy to the device, and the third waits for each kernel. The longest chain "
        "consists of the first copy to the device, the eight kernels and the last copy back. With one stream per "
        "piece, it would be equally short, but each kernel would also need an explicit wait for the previous kernel.",
        check=check_carry,
    ),
]

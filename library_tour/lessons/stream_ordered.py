"""The lesson of `stream_ordered`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

FACTORS = (3, 5, 7, 11, 13)


def check(answer: ModuleType) -> Iterator[Check]:
    """Add a product whose factors are applied one by one; then look at the streams and the pool."""
    for size in (1024, 1000):
        x = np.random.default_rng(5).integers(0, 2**32, size, np.uint32)
        on_device, total = cuda.to_device(x), cuda.full(size, 7, np.uint32)
        cuda.legacy_default.synchronize()
        begun: list[bool] = []
        with (
            cuda.Stream(non_blocking=True) as working,
            cuda.Stream(non_blocking=True) as reading,
            cuda.MemoryPool() as pool,
        ):
            working.launch_host_function(partial(begun.append, True))
            answer.add_product(total, on_device, FACTORS, working, reading, pool)
            yield Check(f"{size:,} elements: the host does not wait", not begun, "The work has begun.")
            most = pool.used_high // x.nbytes
            # Memory that the answer frees in this stream may be reused by this array.
            with cuda.empty(size, np.uint32, stream=working, pool=pool) as next_array:
                cuda.memset(next_array, 0, stream=working)
                reading.synchronize()
            working.synchronize()
            expected = np.uint32(7) + np.uint32(np.prod(FACTORS)) * x
            yield compare(f"{size:,} elements times {len(FACTORS)} factors are added", total.to_host(), expected)
            fact = f"{size:,} elements: at most two temporary arrays exist at a time"
            yield at_most(fact, most, 2)
            yield at_most(f"{size:,} elements: all temporary arrays are freed", pool.used, 0)


LESSON = Lesson(
    why="Many loops need a temporary array in each step. On an H200, allocating and freeing 256 MiB takes 165 "
    "microseconds with ordinary calls, and 6 microseconds with a memory pool. Eight steps of such a loop take 5.8 ms "
    "with ordinary calls and 3.5 ms with a pool, which is as fast as using one array for all steps.\n\n"
    "Two costs disappear. The pool keeps the memory that it has obtained from the device, so the next step need not "
    "ask for it again. And the host no longer waits: `cudaFree` must be sure that no kernel uses the memory any more, "
    "so it waits until the device has finished, and no new work is queued in the meantime.",
    learn=[
        "allocate and free memory as work in a stream, without waiting.",
        "explain why an array may be freed before the kernel that uses it has run.",
        "say what a memory pool keeps, what it returns to the device, and what that costs.",
        "share an array between two streams, and free it in the right one.",
    ],
    idea="Work in a **stream** runs in the order in which it was queued. If allocations and frees are queued too, that "
    "order determines when the memory is in use:\n\n"
    "```\n"
    "host      queues everything at once, waits for nothing\n"
    "stream    alloc | write | read | free | alloc | write | read | free | ...\n"
    "          \\___ the same memory ____/   \\___ the same memory ____/\n"
    "```\n\n"
    "A free takes effect once the kernels queued before it have finished. The next allocation may reuse the memory, "
    "because the kernels that use the new array are queued even later. In C, these calls are `cudaMallocAsync` and "
    "`cudaFreeAsync`.\n\n"
    "The memory comes from a **pool**. Freed memory goes back to the pool, not to the device, and the next allocation "
    "takes it from there. When the host synchronises, the pool returns unused memory above its **release threshold** "
    "to the device.\n\n"
    "The rule of thumb: let a pool keep its memory, and free each array in the stream that uses it last.",
    steps=[
        Step(
            name="synchronous calls",
            shows=["store_multiple", "add_to", "make_variants"],
            text="Each step needs a temporary array, `term`: one kernel writes it, another reads it, and then it is "
            "freed. The first variant uses synchronous calls. Its `close` must wait until the device has finished, so "
            "the host waits once per step.",
        ),
        Step(
            name="pool, kept, no waits",
            shows=["make_variants"],
            text="The same loop, but `allocate` takes the array from a pool. Allocations and frees are now work in the "
            "stream, ordered with the kernels. The host queues all steps without waiting, and each step gets the same "
            "memory as the one before.",
        ),
        Step(
            name="memory of a pool",
            shows=["pool_rows"],
            text="Freeing an array lowers the pool's 'used' memory, but not its 'reserved' memory. When the host waits "
            "for the device, the pool returns unused memory above its release threshold. `trim` returns it "
            "immediately, and `max_size` limits what the pool may take.",
        ),
        Step(
            name="two streams with an event",
            shows=["two_streams"],
            text="The first stream allocates and writes the array. The second stream waits for the first; the host "
            "does not wait. The second stream uses the array last, so it frees it: `term.close(stream=second)`.",
        ),
        Step(
            name="used without a wait",
            shows=["second_reads", "used_without_wait"],
            text="Wrong on purpose. Without `second.wait(first)`, nothing orders the read after the write. The result "
            "may be right by chance; the simulator reports the race.",
            compared_with="two streams with an event",
        ),
        Step(
            name="freed too early",
            shows=["second_reads", "given_away"],
            text="Also wrong on purpose. The second stream waits before it reads, but the first stream frees the array "
            "without waiting for the read. The first stream's next array gets the same memory, and filling that array "
            "overwrites the elements that are still to be read.",
        ),
    ],
    look_at=[
        "Look at the 'waits' column: the host waits either 8 times in 8 steps or not at all.",
        "On an H200, eight steps take 5.8 ms with synchronous calls. A pool that keeps its memory lowers that to 3.7 "
        "ms. Without the waits, it is 3.5 ms, as with one array for all steps.",
        "A pool that returns its memory at every wait takes 8.9 ms on an H200, longer than synchronous calls. It "
        "allocates and maps the memory anew in each step.",
        "In the 'Pool memory' table, 'used' memory falls when arrays are freed. 'reserved' memory falls only when "
        "the pool is trimmed, or at a wait if it exceeds the threshold.",
    ],
    exercise=Exercise(
        task="Write `add_product(total, x, factors, working, reading, pool)`. In the `working` stream, the function "
        "multiplies `x` by one factor after another, and stores each product in a new array from the pool. In the "
        "`reading` stream, it adds the last array to `total`. The host must not wait, at most two temporary arrays may "
        "exist at a time, and none may be left at the end.",
        hints=[
            "Which kernel is the last to read the array of the previous step? Its free may be queued right after that "
            "kernel.",
            "The last array is read in another stream. That stream must wait for `working` first.",
            "The stream that uses an array last should free it: `array.close(stream=reading)`.",
        ],
        answer="The previous step's array is freed in `working` as soon as the kernel that reads it is queued; stream "
        "order does the rest. Then `reading` waits for `working`, reads the last array, and frees it. If `working` "
        "freed that array, its memory could go to the next array while `reading` is still reading it.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)

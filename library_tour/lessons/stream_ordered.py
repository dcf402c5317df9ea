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
    """Add up a product whose factors are applied one by one; look at the streams and at the pool afterwards."""
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
            yield Check(f"{size:,} numbers: the host waits for nothing", not begun, "The work has begun.")
            most = pool.used_high // x.nbytes
            # What the answer frees in this stream is free for this array.
            with cuda.empty(size, np.uint32, stream=working, pool=pool) as next_array:
                cuda.memset(next_array, 0, stream=working)
                reading.synchronize()
            working.synchronize()
            expected = np.uint32(7) + np.uint32(np.prod(FACTORS)) * x
            yield compare(f"{size:,} numbers times {len(FACTORS)} factors are added", total.to_host(), expected)
            fact = f"{size:,} numbers: two temporary arrays at a time are enough"
            yield at_most(fact, most, 2)
            yield at_most(f"{size:,} numbers: all temporary arrays are freed", pool.used, 0)


LESSON = Lesson(
    learn=[
        "How memory is allocated and freed as work of a stream, so that the host waits for neither.",
        "Why a temporary array may be freed right behind the launch of its last kernel, before that kernel has run.",
        "What a pool keeps, what it returns to the device, and what that costs.",
        "What a second stream must wait for before it uses an array of the first one, and in which of the two the "
        "array is freed then.",
    ],
    steps=[
        Step(
            name="calls of the host",
            shows=["store_multiple", "add_to", "make_variants"],
            text="Each step needs a temporary array, `term`: one kernel writes it, another one reads it, and then it "
            "is freed. The first variant allocates and frees by calls of the host. Its `close` must wait until the "
            "device has finished, so the host waits once a step.",
        ),
        Step(
            name="pool, kept, no waits",
            shows=["make_variants"],
            text="The same loop, but `allocate` takes the array from a pool. Allocation and free are now work of the "
            "stream: they take their turn between the kernels. The host queues all steps without waiting, and each "
            "step gets the same memory as the one before.",
        ),
        Step(
            name="what a pool holds",
            shows=["pool_rows"],
            text="Freed memory goes back to the pool: 'used' falls, and 'reserved' stays. When the host waits for the "
            "device, the pool returns what is unused above its release threshold. `trim` returns it at once, and "
            "`max_size` limits what the pool may take.",
        ),
        Step(
            name="two streams, an event",
            shows=["two_streams"],
            text="The first stream allocates and writes the array. The second stream waits for the first one, which "
            "is an order between the streams and no wait of the host. It uses the array last, so it frees the array: "
            "`term.close(stream=second)`.",
        ),
        Step(
            name="used without a wait",
            shows=["second_reads", "used_without_wait"],
            text="Without `second.wait(first)` nothing puts the read behind the write. The numbers may be right by "
            "chance, and the simulator reports the race. This step is wrong on purpose, and so is the next one.",
            compared_with="two streams, an event",
        ),
        Step(
            name="freed too early",
            shows=["second_reads", "given_away"],
            text="The second stream waits before it reads, but the array is freed in the first stream, which knows "
            "nothing of the read. The next array of the first stream gets the memory and overwrites it.",
        ),
    ],
    look_at=[
        "The column 'waits': the host waits 8 times for 8 steps, or never.",
        "On an H200 eight steps take 5.8 ms with calls of the host, 3.7 ms with a pool that keeps its memory, and 3.5 "
        "ms without any waits, which is as long as with one array for all steps: the allocations cost next to nothing.",
        "A pool that returns its memory at each wait is slower on an H200 than calls of the host, 8.9 ms: it takes and "
        "maps the memory anew in each step.",
        "The table 'What a pool holds' is the same with and without a GPU: 'used' falls by the bytes of the arrays "
        "that are freed, and 'reserved' falls only with the threshold or by trimming.",
    ],
    exercise=Exercise(
        task="Write `add_product(total, x, factors, working, reading, pool)`: it multiplies `x` by one factor after "
        "the other in the stream `working`, each time into a new array from the pool, and adds the last array to "
        "`total` in the stream `reading`. The host must not wait for anything, not more than two temporary arrays may "
        "exist at a time, and none may be left.",
        hints=[
            "When is the array of the step before read for the last time? Its free may be queued right behind that. "
            "The last array is read by another stream: what must that stream do before and afterwards?",
        ],
        answer="The array of the step before is freed in `working` as soon as the kernel that reads it is queued; the "
        "order in the stream does the rest. Then `reading` waits for `working`, reads the last array, and frees it. If "
        "`working` freed it, its memory could go to the next array while `reading` still reads.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)

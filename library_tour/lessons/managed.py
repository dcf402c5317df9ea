"""The lesson of `managed`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare
from ..course.managed import managed_copy, reference
from ..lesson import Exercise, Lesson, Step
from ..stop import Check

STEPS = 3


def check(answer: ModuleType) -> Iterator[Check]:
    """Advance arrays twice, the second time with input that the host has changed; ask the driver where pages went."""
    device = cuda.current_device()
    for size in (4096, 1001):
        numbers = np.random.default_rng(5).integers(0, 2**32, size, np.uint32)
        x, y = managed_copy(numbers), managed_copy(np.zeros(size, np.uint32))
        for launch in ("first", "second"):
            answer.advanced(x, y, STEPS)
            # Copies of what they hold now, before anything else waits for the device.
            got = y.copy()
            fact = f"{size:,} numbers, {launch} call: the host finds the results when the function returns"
            yield compare(fact, got, reference(numbers, STEPS))
            for name, array, wanted in (("input", x, device), ("output", y, "host")):
                went = cuda.managed_attributes(array).last_prefetch_location
                where = "host" if wanted == "host" else "device"
                fact = f"{size:,} numbers, {launch} call: the {name} was prefetched last to the {where}"
                yield Check(fact, went == wanted, f"It was {went}.")
            numbers = numbers[::-1].copy()
            x[:] = numbers


LESSON = Lesson(
    learn=[
        "What managed memory is: arrays with one address for the host and all devices, whose pages move.",
        "What a page fault costs, and how a prefetch avoids it.",
        "Which advice keeps pages in one place, and which gives host and device a copy each.",
        "Why the host must wait for the device before it reads or writes managed memory that a kernel uses.",
    ],
    steps=[
        Step(
            name="managed, page faults",
            shows=["managed_copy", "advance", "kernel_over"],
            text="The host writes an array, and a kernel gets the same array as an argument; nobody copies it. The "
            "pages are on the host at first, so each first access to one is a page fault: the warp waits until the "
            "driver has moved the page.",
        ),
        Step(
            name="managed, prefetched",
            shows=["kernel_over"],
            text="The launch stays as it is, and there is one call before it:\n\n"
            "```python\n"
            "cuda.prefetch(x)\n"
            "launch()\n"
            "```\n\n"
            "The prefetch moves all pages to the device in the order of the stream, many at a time. The kernel "
            "executes the same loads as before and finds the pages there.",
        ),
        Step(
            name="managed, stays on the host",
            shows=["advice", "place"],
            text="The driver is told what the array is for:\n\n"
            "```python\n"
            'cuda.advise(far, "set_preferred_location", "host")\n'
            'cuda.advise(far, "set_accessed_by", device)\n'
            "```\n\n"
            "The pages stay on the host, and each load crosses the link. Nothing is moved, so this suits numbers that "
            "are read once. `advice` asks the driver what it was told.",
        ),
        Step(
            name="prefetch beside long kernel",
            shows=["Pieces"],
            text="The array is cut in pieces. While the kernel works on one piece in a stream, the next one is "
            "prefetched in another stream; an event lets the kernel wait for its own piece.",
        ),
        Step(
            name="the host reads",
            shows=["read_by_host"],
            text="The other direction: pages on the device are read by the host, by page faults, after a prefetch to "
            "the host, or as copies of pages that are mostly read.",
        ),
        Step(
            name="host reads too early",
            shows=["read_early"],
            text="One address does not mean that the host and the device take turns by themselves. A launch is only "
            "queued, so the host finds the old numbers. This step is wrong on purpose, and so is the next one.",
        ),
        Step(
            name="host writes too early",
            shows=["write_early"],
            text="No copy of the input has been made, as there would be of pageable memory. What the host writes after "
            "the launch is what the kernel reads.",
        ),
    ],
    look_at=[
        "Without a GPU all rows over one step have the same counters: no instruction shows where a page is. Only times "
        "differ.",
        "On an H200 page faults bring the array at 8 GB/s, and a prefetch with its kernel at 48 GB/s. A copy of "
        "pinned memory with its kernel reaches 53 GB/s.",
        "An array that is on the device already takes 0.2 ms on an H200, instead of 33 ms with page faults: whether "
        "pages must move decides everything else.",
        "The prefetch in pieces beside the long kernel takes 6.9 ms on an H200, against 9.5 ms one after the other.",
        "On an H200 the host reads pages that are on the device at about 4 GB/s by page faults, at 5 GB/s after a "
        "prefetch, and at 10 GB/s if they are mostly read, because the host then has a copy.",
    ],
    exercise=Exercise(
        task="Write `advanced(x, y, steps)`: it lets the kernel of the stop advance the numbers of `x` into `y`. Both "
        "are managed arrays whose pages are on the host, and the host reads `y` as soon as the function returns. "
        "Page faults should move no page, neither when the kernel runs nor when the host reads. "
        "`kernel_over(x, y, steps)` of the stop returns the launch.",
        hints=[
            '`cuda.prefetch(array)` moves an array to the device, and `cuda.prefetch(array, "host")` to the host, '
            "both in the order of the stream. All of them return at once.",
        ],
        answer="The input is prefetched to the device and, behind the kernel, the output to the host. All of this is "
        "queued, so that one wait in the end is enough; it is needed although nothing is copied. The output is "
        "prefetched to the device as well, because the kernel's first store to a page on the host is a fault, too. "
        "That prefetch is the one thing that the check cannot see: the driver only tells the last one.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)

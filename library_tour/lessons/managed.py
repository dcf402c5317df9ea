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
    """Advance arrays twice, the second time with input that the host has changed; ask the driver for prefetches."""
    device = cuda.current_device()
    for size in (4096, 1001):
        elements = np.random.default_rng(5).integers(0, 2**32, size, np.uint32)
        x, y = managed_copy(elements), managed_copy(np.zeros(size, np.uint32))
        for launch in ("first", "second"):
            answer.advanced(x, y, STEPS)
            # A copy of its present contents, before anything else waits for the device.
            got = y.copy()
            fact = f"{size:,} elements, {launch} call: the results are ready when the function returns"
            yield compare(fact, got, reference(elements, STEPS))
            for name, array, expected in (("input", x, device), ("output", y, "host")):
                went = cuda.managed_attributes(array).last_prefetch_location
                where = "host" if expected == "host" else "device"
                fact = f"{size:,} elements, {launch} call: the {name} was last prefetched to the {where}"
                yield Check(fact, went == expected, f"It was {went}.")
            elements = elements[::-1].copy()
            x[:] = elements


LESSON = Lesson(
    why="With managed memory you need no copies at all. The host writes an array, a kernel reads it, and the driver "
    "moves the data. The cost depends on one line of code: on an H200, a kernel that reads 268 MB takes 39 ms if the "
    "pages move when they are touched, and 5.7 ms with a prefetch before the launch. An explicit copy plus the kernel "
    "takes 5.1 ms.\n\n"
    "If the array is already on the device, the kernel takes 0.2 ms. Whether pages must move matters more than "
    "anything else.",
    learn=[
        "use managed memory on the host and on the device.",
        "say what a page fault costs, and avoid it with a prefetch.",
        "choose the advice that keeps pages in one place, or lets the host and the device each have a copy.",
        "synchronise before the host reads or writes managed memory that a kernel uses.",
    ],
    idea="A **managed** array has one address, which is valid on the host and on all devices. CUDA also calls this "
    "unified memory. The array is divided into **pages**, and each page is in one place at a time. When a warp loads "
    "from a page that is on the host, a **page fault** occurs: the warp waits, and the driver moves the page to the "
    "device. The host's accesses work the same way in the other direction.\n\n"
    "```\n"
    "page faults   load, fault, page moves, load | load, fault, page moves, ...\n"
    "prefetch      all pages move | load, load, load, ...\n"
    "```\n\n"
    "**Advice** tells the driver how an array will be used. A *preferred location* keeps pages in one place. The "
    "*accessed by* advice lets a device read them across the link without a fault, and the *read mostly* advice lets "
    "the host and each device keep their own copies.\n\n"
    "A shared address does not order any work. A launch still only queues the kernel, so the host must wait for the "
    "kernel before it touches the array.\n\n"
    "The rule of thumb: use managed memory to get a program running, then prefetch each array before the kernel that "
    "needs it.",
    steps=[
        Step(
            name="managed, page faults",
            shows=["managed_copy", "advance", "kernel_over"],
            text="The host writes an array and passes it to a kernel. No copy is made. The pages are on the host at "
            "first, so the first access to each page causes a page fault.",
        ),
        Step(
            name="managed, prefetched",
            shows=["kernel_over"],
            text="The launch is the same, with one call before it:\n\n"
            "```python\n"
            "cuda.prefetch(x)\n"
            "launch()\n"
            "```\n\n"
            "The prefetch is queued in the stream and moves all pages to the device, many at a time. The kernel "
            "executes the same loads as before and finds the pages there.",
        ),
        Step(
            name="managed, kept on the host",
            shows=["advice", "place"],
            text="Two calls tell the driver how the array will be used:\n\n"
            "```python\n"
            'cuda.advise(far, "set_preferred_location", "host")\n'
            'cuda.advise(far, "set_accessed_by", device)\n'
            "```\n\n"
            "The pages stay on the host, and each load crosses the link. No page moves, so this suits data that is "
            "read only once. The function `advice` asks the driver which advice it was given.",
        ),
        Step(
            name="prefetch during long kernel",
            shows=["Pieces"],
            text="The array is cut into pieces. While the kernel works on one piece, the next one is prefetched in "
            "another stream. An event makes each kernel wait for its own piece.",
        ),
        Step(
            name="the host reads",
            shows=["read_by_host"],
            text="In the other direction, the host reads pages that are on the device: through page faults, after a "
            "prefetch to the host, or from its own copy of read-mostly pages.",
        ),
        Step(
            name="host reads too early",
            shows=["read_early"],
            text="Wrong on purpose. The launch is only queued, so the host still sees the old values.",
        ),
        Step(
            name="host writes too early",
            shows=["write_early"],
            text="Also wrong on purpose. No copy of the input has been made, so the kernel reads whatever the host "
            "writes after the launch.",
        ),
    ],
    look_at=[
        "Without a GPU, the counters are the same in all rows with one step, because the kernel executes the same "
        "instructions wherever the pages are. Only the times differ.",
        "On an H200, page faults bring the array to the kernel at 7 GB/s, and a prefetch does so at 47 GB/s. A copy "
        "from pinned memory, followed by the kernel, reaches 53 GB/s.",
        "Prefetching in pieces during the long kernel takes 7.1 ms on an H200. Prefetching first and computing "
        "afterwards takes 9.7 ms.",
        "On an H200, the host reads pages on the device at 4.0 GB/s through page faults, and at 5.2 GB/s after a "
        "prefetch. With the 'read mostly' advice, it reads its own copy, at 10.6 GB/s.",
    ],
    exercise=Exercise(
        task="Write `advanced(x, y, steps)`. The function uses the stop's kernel to advance the elements of `x` and "
        "store the results in `y`. Both are managed arrays with their pages on the host, and the host reads `y` as "
        "soon as the function returns. No page should move because of a page fault, either when the kernel runs or "
        "when the host reads. `kernel_over(x, y, steps)` returns the launch.",
        hints=[
            "Where must the pages of `x` be when the kernel runs? Where must those of `y` be then, and where "
            "afterwards?",
            '`cuda.prefetch(array)` moves an array to the device, and `cuda.prefetch(array, "host")` to the host. '
            "Both are queued in the stream, like the launch.",
            "Everything is queued. What must the function do before it returns?",
        ],
        answer="Before the launch, the input is prefetched to the device. After the launch, the output is prefetched "
        "to the host. All of this is queued, so a single wait at the end is enough. That wait is needed even though "
        "nothing is copied. The output is also prefetched to the device before the launch, because the kernel's first "
        "store to a page on the host also causes a fault. The check cannot see that prefetch, because the driver "
        "reports only the last one.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)

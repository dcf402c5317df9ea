"""The lesson of `pinned_and_mapped`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

FACTOR = 3


def check(answer: ModuleType) -> Iterator[Check]:
    """Scale mapped and registered arrays of the host; look at the device's memory afterwards."""
    rng = np.random.default_rng(5)
    mapped = cuda.pinned_empty(4096, np.uint32, mapped=True)
    mapped[:] = rng.integers(0, 2**32, mapped.size, np.uint32)
    registered = rng.integers(0, 2**32, 1001, np.uint32)
    with cuda.register_host(registered):
        for kind, numbers in (("mapped", mapped), ("registered", registered)):
            pool = cuda.MemoryPool.current()
            cuda.legacy_default.synchronize()
            pool.reset_high()
            used = pool.used
            result = answer.scaled(numbers, FACTOR)
            yield Check(f"{kind}: the result is an array of the host", isinstance(result, np.ndarray))
            # A copy of what it holds now, before anything else waits for the kernel.
            expected = numbers * np.uint32(FACTOR)
            yield compare(f"{kind}: the numbers are scaled when the function returns", np.array(result), expected)
            yield at_most(f"{kind}: bytes allocated on the device", pool.used_high - used, 0)


LESSON = Lesson(
    learn=[
        "What pageable, pinned and mapped memory of the host are, and which of them a kernel can read in place.",
        "Why mapped memory suits numbers that are read once, and why numbers that are read often should be copied.",
        "What the host must do before it reads what a kernel has written into mapped memory.",
    ],
    steps=[
        Step(
            name="three kinds",
            shows=["Kinds"],
            text="The same numbers lie in three kinds of memory. The system may move pageable memory. Pinned memory "
            "stays in place, so that the device can copy it by itself. Mapped memory is pinned too, and has a place "
            "among the device's addresses.",
        ),
        Step(
            name="mapped, in place",
            shows=["first", "stride", "add_up"],
            text="The kernel reads `x` and adds its numbers up. It does not know what kind of memory `x` is. For the "
            "rows with a copy, `x` is an array of the device. In the row 'mapped, in place', each load crosses the "
            "link to the host.",
        ),
        Step(
            name="mapped, 16 bytes a load",
            shows=["first", "stride", "add_up_wide"],
            text="The same with wider loads, so that each thread asks for four times as many bytes at once. It changes "
            "nothing, because the link is the limit.",
        ),
        Step(
            name="read, and written back",
            shows=["first", "stride", "scale", "finished"],
            text="This kernel writes its results to mapped memory, too. Nothing needs to be copied back, but the host "
            "must wait for the kernel before it reads the results. `finished` does that.",
        ),
        Step(
            name="mapped, read too early",
            shows=["read_too_early"],
            text="Without that wait the host finds what was there before the launch. This step is wrong on purpose.",
        ),
    ],
    look_at=[
        "The column 'link MB' is what crosses the link. Numbers that are read 8 times in place cross it 8 times, and "
        "those that are copied cross it once.",
        "Read once, on an H200, mapped memory in place takes 2.6 ms and a copy of pinned memory with its kernel 2.5 "
        "ms: nearly the same, and mapped memory needs no space on the device. Read 8 times, it is 21 ms and 2.8 ms.",
        "Read and written back, mapped memory is the fastest on an H200, with 3.2 ms against 5.0 ms: loads and stores "
        "use both directions of the link at the same time, while the copies in and out follow one another.",
        "A registered array is an ordinary NumPy array whose pages are locked for a while. It need not begin at a "
        "multiple of 128 bytes; where it does not, 'sectors/load' is 5 instead of 4.",
    ],
    exercise=Exercise(
        task="Write `scaled(numbers, factor)`: it multiplies the numbers of a mapped or registered array by a factor "
        "on the device, and returns an array of the host with the results, which the caller reads at once. Each number "
        "is used only once, so nothing is to be allocated or copied on the device: the kernel `scale` of the stop "
        "reads and writes memory of the host.",
        hints=[
            "A kernel takes a mapped array as an argument like one of the device. Which kind of memory must the "
            "output have, and what has to happen before the function returns?",
        ],
        answer="The output is a new mapped array, so that loads and stores of the kernel both cross the link, and no "
        "copy is left to be made. A copy of the results would have waited for the kernel; without one, the host has "
        "to wait before it returns the array.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)

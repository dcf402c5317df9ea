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
    """Scale mapped and registered host arrays; then look at the memory allocated on the device."""
    rng = np.random.default_rng(5)
    mapped = cuda.pinned_empty(4096, np.uint32, mapped=True)
    mapped[:] = rng.integers(0, 2**32, mapped.size, np.uint32)
    registered = rng.integers(0, 2**32, 1001, np.uint32)
    with cuda.register_host(registered):
        for kind, elements in (("mapped", mapped), ("registered", registered)):
            pool = cuda.MemoryPool.current()
            cuda.legacy_default.synchronize()
            pool.reset_high()
            used = pool.used
            result = answer.scaled(elements, FACTOR)
            yield Check(f"{kind}: the result is a host array", isinstance(result, np.ndarray))
            # A copy of its present contents, before anything else waits for the kernel.
            expected = elements * np.uint32(FACTOR)
            yield compare(f"{kind}: the elements are scaled when the function returns", np.array(result), expected)
            yield at_most(f"{kind}: bytes allocated on the device", pool.used_high - used, 0)


LESSON = Lesson(
    why="Must data be copied to the device before a kernel can use it? No. A kernel can read host memory in place, "
    "across the link. On an H200, summing 134 MB this way takes 2.6 ms, and a copy followed by the kernel takes 2.5 "
    "ms. The two are nearly equal, and the first needs no device memory.\n\n"
    "Read the same data eight times, and the picture changes: 21 ms in place, against 2.7 ms with one copy. Write "
    "results back, and it changes again: 3.2 ms in place, against 5.0 ms with copies. This stop shows when to "
    "read data in place and when to copy it.",
    learn=[
        "tell pageable, pinned and mapped host memory apart, and say which of them a kernel can read.",
        "decide whether to copy data or read it in place.",
        "say what the host must do before it reads results in mapped memory.",
    ],
    idea="Pinned memory stays in place (see `copies`). It can also be **mapped**, which gives its pages addresses that "
    "kernels can use. A load from such an address crosses the link every time it is executed. This is also called "
    "*zero-copy* access.\n\n"
    "```\n"
    "copied   host ====link====> device memory ----> kernel, any number of reads\n"
    "mapped   host ====link========================> kernel, once per read\n"
    "```\n\n"
    "On an H200, the link carries 55 GB/s in each direction, and device memory delivers about 4,300 GB/s. Whether to "
    "copy data therefore depends on the number of reads. A single read costs the same either way, because the data "
    "crosses the link once in both cases. Data that is read several times belongs in device memory.\n\n"
    "Results cross the link in the opposite direction. A kernel that reads and writes mapped memory uses both "
    "directions at the same time. With copies, the copy to the device, the kernel and the copy back run one after "
    "another.\n\n"
    "The rule of thumb: map data that is read or written once, and copy data that is used more often.",
    steps=[
        Step(
            name="three kinds of memory",
            shows=["Kinds"],
            text="The same data in three kinds of memory: pageable, pinned, and pinned and mapped.",
        ),
        Step(
            name="mapped, in place",
            shows=["first", "stride", "add_up"],
            text="The kernel sums the elements of `x`, and does not know what kind of memory holds them. In the "
            "'copied' rows of the tables, `x` is a device array. Here, every load crosses the link to the host.",
        ),
        Step(
            name="mapped, 16-byte loads",
            shows=["first", "stride", "add_up_wide"],
            text="The same kernel with wider loads, so each thread has four times as many bytes in flight. That makes "
            "no difference, because the link is the limit.",
        ),
        Step(
            name="read and written back",
            shows=["first", "stride", "scale", "finished"],
            text="This kernel also writes its results to mapped memory. Nothing is copied back, but the host must wait "
            "for the kernel before it reads the results. `finished` does that.",
        ),
        Step(
            name="mapped, read too early",
            shows=["read_too_early"],
            text="Wrong on purpose. Without that wait, the host reads the old contents, from before the launch.",
        ),
    ],
    look_at=[
        "The 'link MB' column shows how much data crosses the link. Mapped data that is read 8 times crosses it 8 "
        "times, and copied data crosses it once.",
        "Compare the 'pinned, copied' and 'mapped, in place' rows in the three tables. On an H200, the two take "
        "nearly the same time for one read. Eight reads take 2.7 ms with a copy and 21 ms in place. Reading once and "
        "writing results back takes 5.0 ms with copies and 3.2 ms in place.",
        "The 'registered, in place' row reads an ordinary NumPy array whose pages are pinned temporarily. Such an "
        "array need not start at a 32-byte boundary. If it does not, the 'sectors/load' column, which is available "
        "only without a GPU, shows 5 instead of 4.",
        "The 'pinned, copy alone' row only copies the array and runs no kernel, so it shows what the link can do.",
    ],
    exercise=Exercise(
        task="Write `scaled(elements, factor)`. On the device, it multiplies the elements of a mapped or registered "
        "array by a factor. It returns a host array with the results, which the caller reads immediately. Each element "
        "is used only once, so do not allocate device memory and do not copy anything: let the stop's `scale` kernel "
        "read and write host memory.",
        hints=[
            "A kernel takes a mapped array as an argument, like a device array. What kind of memory must hold the "
            "output?",
            "`cuda.pinned_empty(shape, dtype, mapped=True)` allocates it.",
            "A launch returns before its kernel has run. What must happen before the function returns the array?",
        ],
        answer="The output is a new mapped array. The kernel's loads and stores cross the link, so nothing needs to be "
        "copied. A copy of the results would have waited for the kernel; without one, the host must wait explicitly.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)

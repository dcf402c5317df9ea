"""The lesson of `vector_add`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np

from ..checks import compare
from ..device_code import load
from ..lesson import Exercise, Lesson, Step
from ..stop import Check


def check(answer: ModuleType) -> Iterator[Check]:
    """Add vectors of whole blocks, of blocks and a part of one, and of less than a block."""
    kernel = load("vector_add")["vector_add"]
    for size in (1024, 1000, 77):
        a, b = np.random.default_rng(5).random((2, size), np.float32)
        yield compare(f"the sum of two vectors of {size:,} numbers", answer.add(kernel, a, b), a + b)


LESSON = Lesson(
    learn=[
        "The phases of every computation on a GPU: allocate, copy in, launch, copy out, free.",
        "How the number of blocks follows from the number of elements, and why the kernel tests its index.",
        "Why the copies between host and device, and not the kernel, take most of the time if a kernel runs only once.",
    ],
    steps=[
        Step(
            name="launch",
            shows=["vector_add"],
            text="The kernel is the work of one thread: it finds its index from the numbers of its block and of itself "
            "within the block, and adds one pair of numbers.",
        ),
        Step(
            name="all phases",
            shows=["BLOCK", "add"],
            text="The host allocates three arrays on the device, copies two of them in, launches the kernel, copies "
            "the sum out and frees the arrays. `kernel[blocks, threads](...)` is the launch, which C++ writes as "
            "`kernel<<<blocks, threads>>>(...)`. It returns at once; the copy out waits for it.",
        ),
    ],
    look_at=[
        "The column 'MB' says what each phase allocates or moves. The launch moves the most, since it reads two "
        "vectors and writes one.",
        "On the H200 the launch has the highest rate by far: it works in the device's own memory, while the copies "
        "pass through the link to the host, here from and to pageable memory. The stop `copies` is about their rates.",
        "On the H200, the copies together took some 90 times as long as the kernel: about 30 ms, and a third of a "
        "millisecond. So a GPU pays where many kernels work on data that stays in its memory.",
        "The computation runs twice, and the second time counts: the first one also pays for what CUDA sets up once.",
    ],
    exercise=Exercise(
        task="The function `add` copies two vectors to the device, launches the kernel of the stop, and returns the "
        "sum. It is right for 1,024 numbers, and wrong for 1,000. Mend it without a change of the kernel.",
        hints=[
            "How many threads does a grid of `a.size // THREADS` blocks have, and how many numbers are there?",
        ],
        answer="The number of blocks is rounded up, so that the last block covers the rest. Its threads beyond the end "
        "do nothing, because the kernel tests its index. `-(-a // b)` is a division that rounds up; the tour has it as "
        "`blocks_for`.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)

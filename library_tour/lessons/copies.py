"""The lesson of `copies`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

PIECE = 1000


class CountedStream(cuda.Stream):
    """A stream that counts how often the host waits for all of its work."""

    waits = 0

    def synchronize(self) -> None:
        """Count the wait, and do it."""
        self.waits += 1
        super().synchronize()


def check(answer: ModuleType) -> Iterator[Check]:
    """Upload pieces of which the last is whole or short; look at the buffers, at the stream and at what arrives."""
    for size in (6 * PIECE, 4 * PIECE + 77, 2 * PIECE):
        source = np.random.default_rng(5).random(size, np.float32)
        target = cuda.zeros(size, np.float32)
        buffers = [cuda.pinned_empty(PIECE, np.float32) for _ in range(2)]
        for buffer in buffers:
            buffer.fill(-1)
        cuda.legacy_default.synchronize()
        begun: list[bool] = []
        with CountedStream(non_blocking=True) as stream:
            stream.launch_host_function(partial(begun.append, True))
            answer.upload(target, source, buffers, stream)
            if size == 2 * PIECE:
                yield Check("two pieces are queued without any wait", not begun)
            yield Check(f"{size:,} numbers: the last copy is only queued when the function returns", not stream.done)
            yield at_most(f"{size:,} numbers: the host waits for events, never for the whole stream", stream.waits, 0)
            stream.synchronize()
            yield compare(f"{size:,} numbers arrive", target.to_host(), source)
        starts = range(0, size, PIECE)[-2:]
        kept = {float(buffer[0]) for buffer in buffers}
        yield Check(
            f"{size:,} numbers: the buffers hold the last pieces",
            {float(source[start]) for start in starts} <= kept,
            f"They begin with {', '.join(f'{first:.6f}' for first in sorted(kept))}.",
        )


LESSON = Lesson(
    learn=[
        "Why the device can copy pinned memory by itself, while pageable memory goes through pinned memory in pieces.",
        "When a copy is done at the return of its call, and when it is only queued.",
        "Why the source of a queued copy must stay as it is until the copy has run.",
    ],
    steps=[
        Step(
            name="every kind of memory",
            shows=["make_ways"],
            text="The same bytes lie in four kinds of memory: a NumPy array is pageable, `pinned_empty` returns memory "
            "whose pages stay in place, its write-combined form bypasses the host's caches, and `to_device` returns "
            "an array of the device. `memcpy(target, source)` finds the direction from its two arrays.",
        ),
        Step(
            name="done or queued",
            shows=["returned"],
            text="Each copy is made without a stream and in a stream. `stream.done` right after the call tells whether "
            "the copy has run. Without a stream the call waits, except between two arrays of the device. In a stream "
            "it waits only where the target is pageable memory.",
        ),
        Step(
            name="pageable, changed at once",
            shows=["changed_at_once"],
            text="The copy of a pageable source takes the bytes before its call returns. What the host writes into the "
            "source afterwards does not arrive, so the source can be used again at once.",
        ),
        Step(
            name="pinned, changed at once",
            shows=["changed_too_early"],
            text="Only the source's memory has changed: it is pinned. Now no bytes are taken at the call, and the copy "
            "reads the source when it runs. It finds what the host has written meanwhile. This step is wrong on "
            "purpose.",
        ),
        Step(
            name="the wrong direction",
            shows=["wrong_direction"],
            text="An address of the host is declared to be the device's, which in C is a wrong `kind` argument. The "
            "driver knows where every address belongs and refuses the copy.",
        ),
    ],
    look_at=[
        "The table 'When the call returns, the copy is' is the same with and without a GPU. Its two columns differ "
        "where pinned memory is copied, and for a pageable source.",
        "On an H200, pinned memory reaches the rate of the link, 55 GB/s. Pageable memory reaches 31 GB/s to the "
        "device and 44 GB/s from it, since each byte is copied within the host, too.",
        "The column 'call ms', which a GPU fills, is the time until the call of a copy in a stream returns. On an H200 "
        "it is 0.2 ms of 4.8 ms for a pinned source, and nearly the whole time for pageable memory.",
        "A copy within the device of an H200 reads and writes about 4,100 GB/s, against 55 GB/s over the link: what a "
        "kernel needs again should stay on the device.",
    ],
    exercise=Exercise(
        task="Write `upload(target, source, buffers, stream)`: it copies the pageable array `source` to the device, "
        "piece by piece through two pinned buffers of the same size. The host fills one buffer while the device copies "
        "the other one. Wait for no more than the one copy that still needs the buffer, and return while the last "
        "copies are queued. The last piece may be shorter than a buffer.",
        hints=[
            "`stream.record()` returns an event that is done when all work has run that was queued before it. Keep "
            "one for each buffer, and call its `synchronize()` before you fill the buffer again.",
        ],
        answer="An event behind each copy says when its buffer may be filled again. The host waits for the copy "
        "before the last one, while the last one is still running. Waiting for the whole stream would be right too, "
        "but then the host and the device would take turns, and the second buffer would be of no use.",
        check=check,
    ),
    course="The bandwidths of the last table are those that the courses name for PCIe 5, DDR5 and two graphics cards, "
    "RTX 2070S and RTX 5090. They are figures of the products, not measurements of the courses.",
)

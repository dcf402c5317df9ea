"""The lesson of `copies`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

PIECE = 1000
READ_LATER = (
    "A queued copy reads its buffer when it runs. If the buffer is refilled before then, the elements of a later piece "
    "arrive."
)


class CountedStream(cuda.Stream):
    """A stream that counts how often the host waits for all of its work."""

    waits = 0

    def synchronize(self) -> None:
        """Count the wait, then wait."""
        self.waits += 1
        super().synchronize()


def check(answer: ModuleType) -> Iterator[Check]:
    """Upload with a whole and a short last piece; look at the buffers, the stream and the result."""
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
                yield Check("two pieces are queued without waiting", not begun)
            yield Check(f"{size:,} elements: the last copy is still queued when the function returns", not stream.done)
            yield at_most(f"{size:,} elements: the host waits for events, never for the whole stream", stream.waits, 0)
            stream.synchronize()
            arrived = compare(f"{size:,} elements arrive", target.to_host(), source)
            yield arrived if arrived.holds else replace(arrived, detail=f"{arrived.detail}. {READ_LATER}")
        starts = range(0, size, PIECE)[-2:]
        kept = {float(buffer[0]) for buffer in buffers}
        yield Check(
            f"{size:,} elements: the buffers hold the last two pieces",
            {float(source[start]) for start in starts} <= kept,
            f"They begin with {', '.join(f'{first:.6f}' for first in sorted(kept))}.",
        )

    for pieces in (3, 4, 6):
        yield Check(
            f"{pieces} pieces: the last two copies are still queued when the function returns",
            both_queued(answer, pieces),
            "The last copy but one has run. Before refilling a buffer, wait for the copy that reads it, not for the "
            "one that was queued last.",
        )


def both_queued(answer: ModuleType, pieces: int) -> bool:
    """Return whether the last two copies run only after `upload` has returned: they read what is in the buffers then.

    The host waits for the copies of all earlier pieces, because their buffers are refilled.
    """
    target = cuda.zeros(pieces * PIECE, np.float32)
    buffers = [cuda.pinned_empty(PIECE, np.float32) for _ in range(2)]
    cuda.legacy_default.synchronize()
    with cuda.Stream(non_blocking=True) as stream:
        answer.upload(target, np.ones(pieces * PIECE, np.float32), buffers, stream)
        for buffer in buffers:
            buffer.fill(2)
        stream.synchronize()
    return bool((target.to_host()[-2 * PIECE :] == 2).all())


LESSON = Lesson(
    why="Two arrays of the same size, the same call, the same H200: one copy to the device takes 4.9 ms and the other "
    "8.9 ms. The only difference is the kind of host memory. The faster copy also leaves your program free: its call "
    "returns after 0.2 ms, while the slower one keeps the host busy almost to the end.\n\n"
    "The link to the host carries 55 GB/s, and device memory delivers 4,000 GB/s. For most programs the link is the "
    "bottleneck, so it pays to know how to use all of it.",
    learn=[
        "choose between pageable and pinned host memory.",
        "say whether a copy is done, or only queued, when its call returns.",
        "explain why the source of a queued copy must not change until the copy has run.",
        "copy a pageable array in pieces through two buffers (double buffering), so that the host and the device work "
        "at the same time.",
    ],
    idea="The operating system may move a page of ordinary memory, or write it to disk, at any time. Such memory is "
    "**pageable**. **Pinned** (page-locked) memory stays where it is, so the device's **copy engine** can read and "
    "write it directly, while the host does something else. A copy to or from pageable memory takes a detour: each "
    "piece goes through one of the driver's own pinned buffers.\n\n"
    "```\n"
    "pinned      host memory ------------------------> link --> device memory\n"
    "pageable    host memory --> pinned buffer ------> link --> device memory\n"
    "```\n\n"
    "A **stream** is a queue of work for the device. A copy in a stream is *asynchronous* if its host memory is "
    "pinned: the call only queues it. Until the copy has run, its source must not change and its target must not be "
    "read. If the source is pageable, the call reads all of it before it returns, but the copy to the device may still "
    "be queued. If the target is pageable, the call waits until the copy is done.\n\n"
    "The rule of thumb: pin the arrays that you copy often, but not everything, because pinned pages are not available "
    "to other programs. Keep data on the device if a kernel will need it again.",
    steps=[
        Step(
            name="every kind of memory",
            shows=["make_ways"],
            text="This step copies the same bytes from four kinds of memory. A NumPy array is pageable, `pinned_empty` "
            "returns pinned memory, its write-combined variant bypasses the host's caches, and `to_device` returns a "
            "device array. `memcpy(target, source)` infers the direction from its arrays.",
        ),
        Step(
            name="done or queued",
            shows=["returned"],
            text="Each copy runs once without a `stream` argument, as with `cudaMemcpy`, and once with one, as "
            "with `cudaMemcpyAsync`. Both times, it runs in the default stream. Right after the call, `stream.done` "
            "shows whether the copy has run. Without a stream, the call waits, unless both arrays are on the device. "
            "In a stream, it waits for the copy only if the target is pageable.",
        ),
        Step(
            name="pageable, changed at once",
            shows=["changed_at_once"],
            text="When the source is pageable, the call reads all of its bytes before it returns. The host may change "
            "the source right afterwards.",
        ),
        Step(
            name="pinned, changed at once",
            shows=["changed_too_early"],
            text="Wrong on purpose. The source is pinned now, so the call itself reads no bytes. The copy reads the "
            "source when it runs, and by then the host has overwritten it.",
        ),
        Step(
            name="wrong direction",
            shows=["wrong_direction"],
            text="A host address is passed off as a device address. In C, this would be the wrong `kind` argument. The "
            "driver knows which memory every address belongs to, and refuses the copy.",
        ),
    ],
    look_at=[
        "The 'When the call returns, the copy is' table shows the same results with and without a GPU. Its 'memcpy' "
        "and 'in a stream' columns differ for pinned memory and for pageable sources.",
        "On an H200, pinned memory reaches the rate of the link, 55 GB/s. Pageable memory reaches 30 GB/s to the "
        "device and 37 GB/s from it, because every byte is also copied within host memory.",
        "The 'call ms' column, which is present only on a GPU, shows how long a call takes to queue a copy in a "
        "stream. For pageable memory, that is about as long as the copy itself takes.",
        "A copy within an H200's device memory reaches 4,088 GB/s, counting both reads and writes.",
    ],
    exercise=Exercise(
        task="Write `upload(target, source, buffers, stream)`. It copies the pageable array `source` to the device in "
        "pieces, through two pinned buffers of the same size. The host must fill one buffer while the device copies "
        "the other. Before refilling a buffer, wait only for the copy that reads it. An **event** marks a place in a "
        "stream: `stream.record()` returns one, and `event.synchronize()` waits until all work queued before it has "
        "run. Return while the last copies are still queued. The last piece may be shorter than a buffer.",
        hints=[
            "Which earlier copy reads the buffer that you are about to fill?",
            "Keep one event per copy, recorded right after the copy. When that event is done, so is the copy.",
            "Before filling a buffer for piece *i*, wait for the event of piece *i - 2*.",
        ],
        answer="An event after each copy tells the host when the copy's buffer may be refilled. Before each piece, the "
        "host waits for the second-to-last copy so far, while the last one may still be running. Waiting for the whole "
        "stream would also be correct. But the host and the device would then take turns, and the second buffer would "
        "be pointless.",
        check=check,
    ),
    course="The last table lists the bandwidths that the lectures give for PCIe 5, DDR5 and two graphics cards, the "
    "RTX 2070S and the RTX 5090. They are specifications, not measurements.",
)

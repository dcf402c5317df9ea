"""The lesson of `stride_and_offset`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCK = 128
# The 32 floats of a warp fill four 32-byte sectors.
SECTORS = 4


def check(answer: cuda.Module) -> Iterator[Check]:
    """Scale ranges that start inside a sector or at a boundary; check the elements around them; count sectors."""
    x = np.random.default_rng(5).integers(1, 100, 3000).astype(np.float32)
    for offset, n in ((1, 2048), (13, 1000), (2, 5), (31, 31), (64, 1024)):
        device_x = cuda.to_device(x)
        grid = blocks_for(n, BLOCK) + 1
        launch = answer["scale"][grid, BLOCK].bind(device_x, 3, offset, n)
        counted = counters.count(launch, ["sectors/load", "sectors/store"])
        expected = x.copy()
        expected[offset : offset + n] *= 3
        yield compare(f"{n:,} elements from offset {offset} are scaled, and no others", device_x.to_host(), expected)
        for kind in ("load", "store"):
            fact = f"offset {offset}: a {kind} of a warp touches at most {SECTORS} sectors on average"
            yield at_most(fact, counted[f"sectors/{kind}"], SECTORS)


LESSON = Lesson(
    why="Copying every second element of an array takes about as long as copying all of them. On an H200, a copy runs "
    "at 2,733 GB/s with stride 1, at 1,473 GB/s with stride 2 and at 367 GB/s with stride 8. The kernel is the same; "
    "only one argument changes.\n\n"
    "Strides hide in ordinary code: a column of a matrix, one field in an array of structures, every n-th sample of a "
    "signal. Misaligned accesses look just as harmful, but cost almost nothing. This lesson measures both.",
    learn=[
        "say what fraction of each sector a given stride uses.",
        "explain why a warp that starts in the middle of a sector touches one more sector.",
        "decide whether to fix a stride or an offset first.",
    ],
    idea="Memory is read and written in 32-byte sectors, even if a warp needs only part of a sector. With a **stride** "
    "of n, adjacent lanes touch elements that are n apart. Eight 4-byte elements fit into a sector. A stride of 2 "
    "therefore uses half of each sector, and a stride of 4 uses a quarter. With a stride of 8 or more, every element "
    "is in a different sector: a warp touches 32 sectors and uses one eighth of their bytes.\n\n"
    "With an **offset**, the elements are adjacent, but the first one may lie in the middle of a sector. The warp's "
    "128 bytes then extend into a fifth sector. That sector is also the next warp's first sector, and the next warp "
    "usually finds it in a cache.\n\n"
    "The rule of thumb: remove strides by storing elements next to each other if they are used together. Worry about "
    "alignment only after that.",
    steps=[
        Step(
            name="stride 1",
            shows=["copy_stride"],
            text="Each thread copies one element. With stride 1, the 32 lanes of a warp copy 32 adjacent elements: "
            "128 bytes, or 4 full sectors.",
        ),
        Step(
            name="stride 2",
            shows=["copy_stride"],
            text="The same kernel with a different argument. The elements of adjacent lanes are now 8 bytes apart. "
            "The warp requests as many bytes as before, but they are spread over 8 sectors, and half of each sector "
            "is wasted.",
        ),
        Step(
            name="stride 8",
            shows=["copy_stride"],
            text="The elements are 32 bytes apart, so each lane touches a different sector. With 4 bytes per lane, a "
            "load cannot touch more than these 32 sectors. A larger stride does not add any.",
        ),
        Step(
            name="offset 1",
            shows=["copy_offset"],
            text="The elements are adjacent again, but the first index is the offset. A warp's 128 bytes start 4 "
            "bytes after the start of a sector, so they extend into a fifth one.",
        ),
        Step(
            name="offset 8",
            shows=["copy_offset"],
            text="Eight elements take up 32 bytes. If the offset is a multiple of 8, each warp starts at a sector "
            "boundary again and touches 4 sectors.",
        ),
    ],
    look_at=[
        "The values in the 'sectors/load' column double with the stride until they reach 32 at a stride of 8. The load "
        "efficiency halves each time, down to 12.5 %.",
        "On the H200, each doubling of the stride halves the rate: 2,733, 1,473, 736 and 367 GB/s. The time hardly "
        "changes: with a larger stride, the kernel copies fewer elements of the same array but moves the same sectors. "
        "Beyond a stride of 8, the rate keeps falling although the number of sectors per load does not grow: accesses "
        "to sectors that are far apart take longer.",
        "If the offset is not a multiple of 8, each warp touches 5 sectors and uses 80 % of their bytes. On the H200, "
        "no offset costs more than 4 % of the rate, whether a warp touches 4 sectors or 5. The fifth sector mostly "
        "comes from a cache.",
    ],
    exercise=Exercise(
        task="Multiply `n` elements of `x` by a factor in place, starting at index `offset`. No load or store of a "
        "warp may touch more than 4 sectors, whatever the offset. `x` itself is aligned to 256 bytes. The grid has "
        "one more block than the elements need.",
        hints=[
            "Which warps touch a fifth sector, and at which index would they have to start instead?",
            "Not every thread needs an element: the first threads of the grid can do nothing.",
            "Round the offset down to a multiple of 8 and let thread 0 start there. Each thread then tests whether "
            "its index lies in the range to be scaled.",
        ],
        answer="The threads are shifted back to the start of the sector that contains the first element. Every warp "
        "then starts at a sector boundary. A few threads before and after the range do nothing, which is why the grid "
        "needs one more block. Kernels with 16-byte loads need the same shift, because such loads must be aligned to "
        "16 bytes.",
        check=check,
    ),
    course="The lectures had a plot of these rates, but it is lost, so this lesson cannot compare its figures with "
    "theirs.",
)

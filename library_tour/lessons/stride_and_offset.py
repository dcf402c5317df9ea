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
# The 32 floats of a warp fill 4 sectors of 32 bytes.
SECTORS = 4


def check(answer: cuda.Module) -> Iterator[Check]:
    """Scale parts that begin inside a sector or at its start; compare the elements around them too; count sectors."""
    x = np.random.default_rng(5).integers(1, 100, 3000).astype(np.float32)
    for offset, n in ((1, 2048), (13, 1000), (2, 5), (31, 31), (64, 1024)):
        device_x = cuda.to_device(x)
        grid = blocks_for(n, BLOCK) + 1
        launch = answer["scale"][grid, BLOCK].bind(device_x, 3, offset, n)
        counted = counters.count(launch, ["sectors/load", "sectors/store"])
        expected = x.copy()
        expected[offset : offset + n] *= 3
        yield compare(f"{n:,} elements from offset {offset} on are scaled, and no others", device_x.to_host(), expected)
        for kind in ("load", "store"):
            fact = f"offset {offset}: a {kind} of a warp touches at most {SECTORS} sectors on average"
            yield at_most(fact, counted[f"sectors/{kind}"], SECTORS)


LESSON = Lesson(
    why="Copying every second element of an array takes as long as copying all of it. On an H200 a copy with stride 1 "
    "runs at 2,733 GB/s, with stride 2 at 1,473 GB/s and with stride 8 at 367 GB/s. The kernel is the same; only an "
    "argument changes.\n\n"
    "Strides hide in ordinary code: a column of a matrix, one field in an array of structures, every n-th sample of a "
    "signal. Misaligned accesses look just as harmful, but cost almost nothing. This lesson measures both.",
    learn=[
        "say how a stride decides which share of each sector is used.",
        "say why a warp that begins inside a sector touches one sector more.",
        "choose which of the two to fix first.",
    ],
    idea="Memory moves in sectors of 32 bytes, whatever part of a sector a warp asks for. With a **stride** of n, "
    "neighbouring lanes touch elements that are n apart. Of 4-byte elements, eight fit into a sector. A stride of 2 "
    "uses half of each sector, a stride of 4 a quarter, and with a stride of 8 or more each element has a sector of "
    "its own: 32 sectors per warp, and one eighth of their bytes used.\n\n"
    "With an **offset**, the lanes are neighbours, but the first one may begin inside a sector. The 128 bytes of the "
    "warp then reach into a fifth sector. That sector is also the first one of the next warp, which usually finds it "
    "in a cache.\n\n"
    "The rule of thumb: remove strides, by storing together what is used together. Worry about alignment only after "
    "that.",
    steps=[
        Step(
            name="stride 1",
            shows=["copy_stride"],
            text="Each thread copies one element. With stride 1, the 32 lanes of a warp copy 32 neighbours: 128 bytes, "
            "which fill 4 sectors.",
        ),
        Step(
            name="stride 2",
            shows=["copy_stride"],
            text="The same kernel with another argument. The elements of neighbouring lanes now begin 8 bytes apart. "
            "The warp asks for as many bytes as before, but they are spread over 8 sectors, and half of each sector "
            "is wasted.",
        ),
        Step(
            name="stride 8",
            shows=["copy_stride"],
            text="The elements begin 32 bytes apart, so each lane touches a sector of its own: 32 sectors, the most "
            "that a load of 4 bytes per lane can touch. A larger stride touches no more of them.",
        ),
        Step(
            name="offset 1",
            shows=["copy_offset"],
            text="The lanes are neighbours again, but the index begins at the offset. The 128 bytes of a warp begin 4 "
            "bytes after the start of a sector, so they reach into a fifth one.",
        ),
        Step(
            name="offset 8",
            shows=["copy_offset"],
            text="Eight elements are 32 bytes. With an offset that is a multiple of 8, each warp begins at the start "
            "of a sector again and touches 4 of them.",
        ),
    ],
    look_at=[
        "The column 'sectors/load' doubles with the stride until it reaches 32, at a stride of 8. 'load efficiency' "
        "halves each time, down to 12.5 %.",
        "On the H200 the rate halves with each doubling of the stride: 2,733, 1,473, 736 and 367 GB/s. The time hardly "
        "changes, since the same sectors move each time. Beyond a stride of 8 the rate goes on falling, although the "
        "number of sectors does not grow: sectors that are far apart are slower to reach.",
        "An offset that is not a multiple of 8 makes each warp touch 5 sectors, of which 80 % is used. On the H200 no "
        "offset costs more than 4 % of the rate, whether its warps touch 4 sectors or 5: the fifth sector mostly comes "
        "from a cache.",
    ],
    exercise=Exercise(
        task="Multiply `n` elements of `x` by a factor in place, from index `offset` on. No load or store of a warp "
        "may touch more than 4 sectors, whatever the offset is. `x` itself is aligned to 256 bytes. The grid has one "
        "block more than the elements need.",
        hints=[
            "Which warps touch a fifth sector, and at which index would they have to begin instead?",
            "The first threads of the grid may go without an element.",
            "Round the offset down to a multiple of 8 and let thread 0 begin there. Each thread then tests whether its "
            "index lies in the part that is to be scaled.",
        ],
        answer="The threads are moved back to the start of the sector that holds the first element. Every warp then "
        "begins at the start of a sector. A few threads before and after the part do nothing, which is why the grid "
        "needs one more block. Kernels with 16-byte loads need the same, because such a load must be aligned to 16 "
        "bytes.",
        check=check,
    ),
    course="The lectures have a plot of these rates, but it is lost. So this lesson shows no figures of theirs.",
)

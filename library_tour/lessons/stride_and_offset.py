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
# A warp's 32 floats fill 4 sectors of 32 bytes.
SECTORS = 4


def check(answer: cuda.Module) -> Iterator[Check]:
    """Scale parts that begin inside a sector and at one; compare the numbers around them too, and count sectors."""
    x = np.random.default_rng(5).integers(1, 100, 3000).astype(np.float32)
    for offset, n in ((1, 2048), (13, 1000), (2, 5), (31, 31), (64, 1024)):
        device_x = cuda.to_device(x)
        grid = blocks_for(n, BLOCK) + 1
        launch = answer["scale"][grid, BLOCK].bind(device_x, 3, offset, n)
        counted = counters.count(launch, ["sectors/load", "sectors/store"])
        expected = x.copy()
        expected[offset : offset + n] *= 3
        yield compare(
            f"{n:,} numbers from the offset {offset} on are scaled, and no others", device_x.to_host(), expected
        )
        for kind in ("load", "store"):
            fact = f"offset {offset}: a {kind} of a warp touches {SECTORS} sectors at most, on average"
            yield at_most(fact, counted[f"sectors/{kind}"], SECTORS)


LESSON = Lesson(
    learn=[
        "Memory is read and written in sectors of 32 bytes, whatever part of a sector a warp asks for.",
        "How the stride of an access decides how much of each sector is used, down to one number of eight.",
        "Why a warp that begins inside a sector touches one more sector, and why an offset costs far less than a "
        "stride.",
    ],
    steps=[
        Step(
            name="stride 1",
            shows=["copy_stride"],
            text="A thread copies one number. With a stride of 1, the 32 lanes of a warp copy 32 neighbours: 128 "
            "bytes, which fill 4 sectors.",
        ),
        Step(
            name="stride 2",
            shows=["copy_stride"],
            text="The same kernel with another argument: the lanes' numbers now lie 8 bytes apart. The warp asks for "
            "as many bytes as before, but they are spread over 8 sectors, and half of each sector goes unused.",
        ),
        Step(
            name="stride 8",
            shows=["copy_stride"],
            text="The numbers lie 32 bytes apart, so each lane has a sector of its own: 32 sectors, the most that a "
            "load of 4 bytes a lane can touch. A larger stride cannot touch more of them.",
        ),
        Step(
            name="offset 1",
            shows=["copy_offset"],
            text="The lanes are neighbours again, but the index begins at the offset. The warp's 128 bytes begin 4 "
            "bytes behind the start of a sector, so that they reach into a fifth one.",
        ),
        Step(
            name="offset 8",
            shows=["copy_offset"],
            text="8 numbers are 32 bytes. With an offset that is a multiple of 8, each warp begins at the start of a "
            "sector again, and touches 4 of them.",
        ),
    ],
    look_at=[
        "The column 'sectors/load' doubles with the stride until it reaches 32, at a stride of 8. 'load efficiency' "
        "halves as often, to 12.5 %.",
        "On an H200, the rate halves with each doubling up to a stride of 8: about 2,700, 1,500, 740 and 370 GB/s. It "
        "goes on falling beyond that, although a warp touches no more than 32 sectors: they lie further apart.",
        "An offset that is no multiple of 8 makes it 5 sectors a warp, of which 80 % are used. On an H200 it costs "
        "only about 4 % of the rate: the fifth sector of a warp is the first one of the next warp, which mostly finds "
        "it in a cache.",
    ],
    exercise=Exercise(
        task="Multiply `n` numbers of `x` by a factor in place, from index `offset` on. Whatever the offset is, a "
        "load or a store of a warp must touch 4 sectors at most. `x` itself is aligned to 256 bytes. The grid has one "
        "block more than the numbers need.",
        hints=[
            "Which index should the first lane of a warp have, so that the warp begins at the start of a sector? The "
            "first threads may go without a number.",
        ],
        answer="The threads are moved back to the start of the sector in which the first number lies. Every warp then "
        "begins at the start of a sector. A few threads in front of the part and behind it do nothing, which is why "
        "the grid needs a block more. A kernel with loads of 16 bytes needs the same, because such a load must be "
        "aligned to 16 bytes.",
        check=check,
    ),
    course="The course has a plot of these rates, which is lost, so that there are no figures of the course here.",
)

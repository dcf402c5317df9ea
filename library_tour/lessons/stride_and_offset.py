"""The lesson of `stride_and_offset`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCK = 256


def check(answer: cuda.Module) -> Iterator[Check]:
    """Compute squared distances of whole blocks of points and of a part of one; count what of the bytes is used."""
    for size in (1024, 1003):
        points = np.random.default_rng(5).integers(-99, 100, (size, 4)).astype(np.float32)
        squares = poisoned(size, np.float32)
        launch = answer["squares"][blocks_for(size, BLOCK), BLOCK].bind(cuda.to_device(points), squares, size)
        counted = counters.count(launch, ["used by loads", "loads"])
        yield compare(f"the squared distances of {size:,} points", squares.to_host(), np.square(points).sum(1))
        if size % BLOCK == 0:
            unused = 1 - float(counted["used by loads"])
            yield at_most("each load uses all of the bytes that it moves", unused, 0)


LESSON = Lesson(
    learn=[
        "Memory is moved in sectors of 32 bytes: what of a sector no lane uses is moved all the same.",
        "How the part that is used falls with the stride, down to an eighth for numbers of 4 bytes.",
        "Why a misaligned copy costs little: a warp touches one sector more.",
    ],
    steps=[
        Step(
            name="stride",
            shows=["copy_stride"],
            text="Lane `i` copies the number `i * stride`. From a stride of 8 on, each number lies in a sector of its "
            "own, and 4 of 32 bytes are used.",
        ),
        Step(
            name="offset",
            shows=["copy_offset"],
            text="The lanes are neighbours again, but the first one may begin inside a sector. The warp then touches "
            "five sectors instead of four. Offsets that are multiples of 8 numbers begin a sector.",
        ),
    ],
    look_at=[
        "The column 'used by loads' falls to 50, 25 and 12.5 % with strides of 2, 4 and 8, and no further.",
        "The curve over the offset on a GPU is nearly flat: the sector that two warps share is still in the cache for "
        "the second one. The counters, which know no cache, show 80 % for offsets that begin inside a sector.",
        "On a GPU the rates go on falling with strides beyond 8, where the number of sectors no longer grows: the "
        "sectors lie further apart in memory.",
    ],
    exercise=Exercise(
        task="Points have four coordinates of 4 bytes each, which lie beside one another in memory. The kernel "
        "computes the squared distance of each point from the origin, and reads the coordinates one by one, so that "
        "the lanes are 4 numbers apart. Change it so that every load uses all of the bytes that it moves.",
        hint="A thread can load 16 bytes at once, if their address is a multiple of 16: as a `float4`.",
        answer="With one load of a `float4`, a warp asks for 512 bytes, which are 16 whole sectors. With four loads of "
        "4 bytes each touches the same 16 sectors and uses a quarter of them; the cache may save the others from being "
        "read from memory again, and the requests remain.",
        check=check,
    ),
    course="The plot of the course is lost, so there are no figures to compare with.",
)

"""The lesson of `texture`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudart_py as cuda

from .. import counters
from ..checks import compare, poisoned
from ..device_code import blocks_for
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check

BLOCK = (32, 8)
FETCHES, LOADS = "l1tex__t_requests_pipe_tex_mem_texture.sum", "loads"
MOST = 4


def check(answer: cuda.Module) -> Iterator[Check]:
    """Blur images of whole numbers, whose means are exact; count the fetches and loads of a warp."""
    for height, width in ((32, 64), (19, 70)):
        texels = np.random.default_rng(5).integers(0, 256, (height, width)).astype(np.float32)
        image = cuda.empty_pitched((height, width), np.float32)
        image.copy_from(texels)
        texture = cuda.textures.Texture(image, address="clamp", filter="linear")
        blurred = poisoned((height, width), np.float32)
        grid = (blocks_for(width, BLOCK[0]), blocks_for(height, BLOCK[1]))
        metrics = counters.counted(answer["blur"][grid, BLOCK].bind(texture, blurred, width, height))
        beyond = np.pad(texels, 1, mode="edge")
        in_rows = beyond[:, :-2] + 2 * beyond[:, 1:-1] + beyond[:, 2:]
        expected = (in_rows[:-2] + 2 * in_rows[1:-1] + in_rows[2:]) / np.float32(16)
        where = f"{height} x {width}"
        yield compare(f"{where}: the blurred image", blurred.to_host(), expected)
        reads = metrics[FETCHES] + float(counters.values(metrics, [LOADS])[LOADS])
        warps = height * grid[0]
        yield at_most(f"{where}: a pixel takes {MOST} fetches", reads / warps, MOST)


LESSON = Lesson(
    learn=[
        "Which texels the lanes of a warp ask for together decides how many sectors they touch, for plain loads as for "
        "texture fetches: a patch of pixels touches few sectors at any angle.",
        "A texture object has a test for what lies outside of the image, and a unit that computes a mean of four "
        "texels in one fetch.",
        "The weights of that mean have 8 bits, which is exact enough for pictures and not for every computation.",
    ],
    steps=[
        Step(
            name="plain loads",
            shows=["for_each_pixel", "rotate_plain"],
            text="Each pixel of the output computes its place in the source by the rotation, and loads the nearest "
            "texel, or takes 0 outside. The 32 pixels of a warp are a piece of a row, which is a slanted line of the "
            "source. `for_each_pixel` starts four loads of a thread before the first store.",
        ),
        Step(
            name="__ldg",
            shows=["for_each_pixel", "rotate_ldg"],
            text="Only the load changes. `__ldg` promises that nobody writes the data meanwhile; it reads through the "
            "same L1 cache as a plain load.",
        ),
        Step(
            name="texture",
            shows=["for_each_pixel", "rotate_texture"],
            text="`tex2D` takes the place of the test and the load. The texture object returns 0 outside of the "
            "image, because it was made with the address mode 'border'. The middle of a texel is at a half, which is "
            "why 0.5 is added.",
        ),
        Step(
            name="plain, 8 x 4 warps",
            shows=["IN_PATCHES", "for_each_pixel", "rotate_plain"],
            text="The kernel is that of the plain loads; only the launch changes. In a block of 8 x 32 threads, the 32 "
            "threads of a warp are 8 x 4 pixels, a patch that covers a patch of the source at any angle.",
            compared_with="plain loads",
        ),
        Step(
            name="texture, 8 x 4 warps",
            shows=["for_each_pixel", "rotate_texture"],
            text="The kernel of the texture, in the same blocks. It touches the same sectors as the plain loads.",
            compared_with="texture",
        ),
        Step(
            name="shared memory",
            shows=["BOX", "rotate_shared"],
            text="A block copies the box of the source that its pixels need to shared memory, row by row, and takes "
            "the texels from there. The box has more texels than the block has pixels.",
        ),
        Step(
            name="filter: plain loads",
            shows=["rounded", "filter_plain"],
            text="Another result: a pixel is the mean of the four nearest texels, weighted by their distances. That "
            "takes four tests, four loads and three interpolations.",
        ),
        Step(
            name="filter: texture",
            shows=["rounded", "filter_texture"],
            text="The texture object was made with the filter 'linear', and one fetch returns the mean.",
        ),
    ],
    look_at=[
        "At 90°, a warp whose pixels are in a row reads from 32 different rows. Without a GPU, the sectors show it: "
        "with warps of 8 x 4 pixels they are a quarter as many. Loads and texture fetches touch the same number.",
        "On an H200 at 90°, the plain loads move 1,920 GB/s in rows and 3,350 GB/s in patches; the texture moves "
        "2,890 and 2,970 GB/s. The order of the pixels helps plain loads more than a texture does.",
        "With shared memory the number of sectors depends least on the angle, but it executes three times as many "
        "instructions: on an H200 it is the slowest way to read the nearest texel.",
        "The texture's filter takes about a third of the instructions of four plain loads and their interpolation. It "
        "is the faster way on an H200 at every angle, for example 2,970 against 1,690 GB/s at 90°.",
    ],
    exercise=Exercise(
        task="Blur an image: each pixel becomes the mean of the 3 x 3 texels around it, with the weights 1 2 1, 2 4 2, "
        "1 2 1, divided by 16. The kernel makes nine fetches, at the middles of the texels. The texture object filters "
        "linearly; let it compute, so that a pixel takes four fetches at most.",
        hints=[
            "The middle of texel `(column, row)` is at `(column + 0.5, row + 0.5)`. What does a fetch return at a "
            "place where four texels meet? Which such places does a texel have?",
        ],
        answer="At a corner of a texel, four texels are equally near, and the fetch returns their plain mean. A texel "
        "has four corners. It is in the means of all four itself, its neighbours at an edge are in two, and those at a "
        "corner are in one: these are the weights 4, 2 and 1. The weights of the filter are halves there, which 8 bits "
        "hold exactly.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)

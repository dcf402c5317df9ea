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
FETCHES, LOADS = "smsp__inst_executed_op_texture.sum", "loads"
MOST = 4


def check(answer: cuda.Module) -> Iterator[Check]:
    """Blur images of integers, for which the means are exact; count the fetches and loads per warp."""
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
        yield at_most(f"{where}: each pixel takes at most {MOST} fetches", reads / warps, MOST)


LESSON = Lesson(
    why="Rotate an image by 90°, and a kernel that ran at 4,010 GB/s on an H200 slows down to 1,926 GB/s. Let each "
    "warp compute a patch of 8 x 4 pixels instead of a row of 32, and the kernel runs at 3,352 GB/s. The kernel is "
    "the same; only the shape of the block changes.\n\n"
    "Textures have a reputation for being fast in two dimensions. This lesson shows where that reputation comes from, "
    "and what a texture object can do that plain loads cannot.",
    learn=[
        "choose the shape of a block so that each warp reads a compact patch of an image.",
        "read an image through a texture object, which has its own rules for coordinates outside the image.",
        "say when a texture's filter pays off, and how accurate it is.",
    ],
    idea="Memory is fetched in 32-byte **sectors**. A sector holds 8 adjacent texels of a row (a texel is an element "
    "of the source image). A warp pays for each sector that its 32 threads touch. After a rotation, a row of output "
    "pixels comes from a slanted line of the source: at 90°, the 32 pixels of a warp come from 32 different rows. A "
    "patch of 8 x 4 pixels comes from a patch of the source, whatever the angle, and a patch spans only a few sectors. "
    "This is 2-D locality. It reduces the number of sectors for plain loads. The texture unit reads texels for four "
    "threads at a time, and counts the sectors of each four separately. At 90°, these are four sectors whatever the "
    "shape of the patch. Plain loads and textures go through the same L1 cache.\n\n"
    "A fetch through a **texture object** also goes through the texture unit, which does arithmetic. This unit handles "
    "positions outside the image, and it can return the weighted mean of the four nearest texels in a single fetch. "
    "Its weights have 8 bits, which is enough for pictures but not for every computation.\n\n"
    "The rule of thumb: give each warp a patch, and use a texture for its arithmetic, not for its cache.",
    steps=[
        Step(
            name="plain loads",
            shows=["for_each_pixel", "rotate_plain"],
            text="For each of its output pixels, a thread computes the position in the source. It loads the nearest "
            "texel, or uses 0 outside the image. The 32 lanes of a warp compute 32 adjacent pixels of a row. "
            "`for_each_pixel` issues four loads per thread before the first store.",
        ),
        Step(
            name="__ldg",
            shows=["for_each_pixel", "rotate_ldg"],
            text="Only the load changes. `__ldg` promises that nothing modifies the data while the kernel runs. It "
            "reads through the same L1 cache as a plain load.",
        ),
        Step(
            name="texture",
            shows=["for_each_pixel", "rotate_texture"],
            text="`tex2D` replaces the test and the load. The texture object returns 0 outside the image, because it "
            "was created with the 'border' address mode. The centre of a texel lies halfway between two integer "
            "coordinates, so the kernel adds 0.5.",
        ),
        Step(
            name="plain, 8 x 4 warps",
            shows=["IN_PATCHES", "for_each_pixel", "rotate_plain"],
            text="The kernel with plain loads again. Only the launch changes. In a block of 8 x 32 threads, each warp "
            "computes 8 x 4 pixels.",
            compared_with="plain loads",
        ),
        Step(
            name="texture, 8 x 4 warps",
            shows=["for_each_pixel", "rotate_texture"],
            text="The texture kernel with the same block shape. At 90°, the number of sectors does not change, because "
            "each four adjacent pixels of a row still come from four rows of the source.",
            compared_with="texture",
        ),
        Step(
            name="shared memory",
            shows=["BOX", "rotate_shared"],
            text="The block first copies to shared memory, row by row, the part of the source that its pixels need. It "
            "then reads the texels from there. The copied box contains more texels than the block has pixels.",
        ),
        Step(
            name="filter: plain loads",
            shows=["rounded", "filter_plain"],
            text="This kernel computes a different result: each pixel is the mean of the four nearest texels, weighted "
            "by how close they are. That takes four tests, four loads and three interpolations per pixel.",
        ),
        Step(
            name="filter: texture",
            shows=["rounded", "filter_texture"],
            text="The texture object was created with the 'linear' filter mode, so a single fetch returns the mean.",
        ),
    ],
    look_at=[
        "Without a GPU, compare the numbers of sectors at 90°. With plain loads, warps that compute patches of 8 x 4 "
        "pixels touch a quarter as many sectors as warps that compute rows. With texture fetches, the number is the "
        "same for both.",
        "On the H200 at 90°, plain loads reach 1,926 GB/s with rows and 3,352 GB/s with patches. The texture reaches "
        "2,902 and 2,944 GB/s. So patches help plain loads more than they help a texture.",
        "With shared memory, the number of sectors depends least on the angle, but the kernel executes three times as "
        "many instructions as the one with plain loads. On the H200, it is the slowest way to read the nearest texel.",
        "The texture's filter takes about a third as many instructions as four plain loads with interpolation. On the "
        "H200, it is faster at every angle: at 90°, it reaches 2,944 GB/s, and the plain loads reach 1,690 GB/s.",
    ],
    exercise=Exercise(
        task="Blur an image. Each pixel becomes the weighted mean of the 3 x 3 texels around it. The weights are 1 2 "
        "1, 2 4 2, 1 2 1, divided by 16. The kernel issues nine fetches per pixel, each at the centre of a texel. The "
        "texture object uses linear filtering. Let it do the arithmetic, so that each pixel takes at most four "
        "fetches.",
        hints=[
            "The centre of texel `(column, row)` is at `(column + 0.5, row + 0.5)`. What does a fetch return at a "
            "position where four texels meet?",
            "At such a corner, all four weights are 1/4. Each texel has four corners.",
            "Add up the fetches at the four corners of the pixel's own texel. How many times is each of the nine "
            "texels counted?",
        ],
        answer="At a corner, four texels are equally close, so the fetch returns their unweighted mean. A texel has "
        "four corners. The texel itself is included in all four means, its neighbours across an edge in two, and its "
        "neighbours across a corner in one. This gives the weights 4, 2 and 1. At a corner, the fractions in x and y "
        "are both 1/2, which 8 bits represent exactly, so each of the filter's weights is exactly 1/4.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)

"""Rotate an image with plain loads, with __ldg, through a texture object and through shared memory.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run texture
    texture: Texture objects and 2-D locality
    size 200: rows and columns of the image
    counters: measured over 200 rows of pixels
                          sectors 0°  sectors 30°  sectors 90°  instructions  check
    ───────────────────────────────────────────────────────────────────────────────
    plain loads                5,200       21,388       40,800        59,969  right
    __ldg                      5,200       21,388       40,800        59,969  right
    texture                   10,400       25,076       40,800        46,088  right
    plain, 8 x 4 warps         5,200       11,628       10,200        61,135  right
    texture, 8 x 4 warps      10,400       24,561       40,800        47,424  right
    shared memory             10,944       12,822       14,892       176,686  right
    filter: plain loads       30,723       46,473       51,200       139,066  right
    filter: texture           30,723       40,692       57,500        47,424  right
    The columns show the memory sectors that loads or texture fetches touch at each
    angle, and the instructions at 30°.
    A warp whose pixels form a row reads a slanted line of the source: at 90°, it
    reads from 32 different rows. A warp with 8 x 4 pixels reads a patch, which
    spans only a few sectors at any angle. So 2-D locality comes from the
    arrangement of a warp's pixels. Plain loads and textures go through the same L1
    cache, but the texture unit reads the texels of four lanes at a time, and
    patches do not reduce its sectors. __ldg behaves like a plain load, but promises
    that nothing modifies the data while the kernel runs. On an H200, a texture is
    faster than plain loads only for rows of pixels at 90°. With patches, plain
    loads are faster at every angle.
    A block that copies its part of the source to shared memory reads contiguous
    parts of rows at any angle. But it reads more texels than it has pixels and
    executes three times as many instructions. On an H200, this variant is the
    slowest.
    A texture fetch also goes through the texture unit, which does arithmetic. The
    texture unit handles positions outside the image, and can return the weighted
    mean of four texels in one fetch. That is faster than four plain loads with the
    same arithmetic. The weights have 8 bits, so the mean of values up to 1 is
    accurate to 1/256.
    These textures read ordinary row-major memory. A CUDA array would store its
    texels in a special layout that keeps neighbouring texels of several rows close
    together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..device_code import blocks_for, load
from ..limits import copy_limit
from ..stop import Bars, Limit, Result, Row, Size
from ..variants import Variant, measure, of_slowest, side_by_side

TITLE = "Texture objects and 2-D locality"
SIZE = Size("rows and columns of the image", full=16384, small=200)
CHECKED = 200  # rows of the largest image on which results are checked
BAND = 256  # random rows, which a large image repeats
ANGLES = (0, 30, 90)
SHOWN_ANGLE = 30  # for columns that show one angle only
PIXELS = 4  # per thread
POSITION_BITS, WEIGHT_BITS = 14, 8
EXPLAINED_BY = ("sectors read", "instructions")
IN_ROWS, IN_PATCHES = (32, 8), (8, 32)  # blocks whose warps compute 32 x 1 and 8 x 4 pixels

Floats = NDArray[np.float32]
Positions = NDArray[np.int64]
ROTATION = np.dtype([(name, np.int32) for name in ("cosine", "sine", "x", "y")])
SHAPE = np.dtype([(name, np.int32) for name in ("width", "height", "pitch")])


class Way(NamedTuple):
    """A kernel, the shape of its blocks, and whether it returns the nearest texel or a filtered mean of four."""

    kernel: str
    block: tuple[int, int] = IN_ROWS
    filtered: bool = False

    @property
    def by_texture(self) -> bool:
        """Whether the kernel takes a texture object instead of the array."""
        return self.kernel.endswith("_texture")


WAYS = {
    "plain loads": Way("rotate_plain"),
    "__ldg": Way("rotate_ldg"),
    "texture": Way("rotate_texture"),
    "plain, 8 x 4 warps": Way("rotate_plain", IN_PATCHES),
    "texture, 8 x 4 warps": Way("rotate_texture", IN_PATCHES),
    "shared memory": Way("rotate_shared"),
    "filter: plain loads": Way("filter_plain", IN_PATCHES, filtered=True),
    "filter: texture": Way("filter_texture", IN_PATCHES, filtered=True),
}
# For single precision, and for the texture unit. Its weights are multiples of 1/256, so each may be off by half of
# that, in x and in y.
PLAIN_TOLERANCE, TEXTURE_TOLERANCE = 1e-6, 2**-8


def rotation(angle: float, rows: int, columns: int) -> Any:
    """Return the rotation about the centre of the image, in fixed-point numbers."""
    unit = 2**POSITION_BITS
    cosine, sine = round(unit * math.cos(math.radians(angle))), round(unit * math.sin(math.radians(angle)))
    # From the centre of the image to that of the first pixel.
    across, down = 0.5 - columns / 2, 0.5 - rows / 2
    x = unit * columns / 2 + cosine * across - sine * down
    y = unit * rows / 2 + sine * across + cosine * down
    return np.array((cosine, sine, math.floor(x), math.floor(y)), ROTATION)[()]


def positions(turn: Any, rows: int, columns: int) -> tuple[Positions, Positions]:
    """Return the x and y that each pixel has in the source, in units of 2^-POSITION_BITS."""
    row, column = np.indices((rows, columns))
    cosine, sine, x, y = (int(turn[name]) for name in ("cosine", "sine", "x", "y"))
    return cosine * column - sine * row + x, sine * column + cosine * row + y


def texels(image: Floats, column: Positions, row: Positions) -> Floats:
    """Return the texels at these columns and rows, 0 outside the image."""
    inside = (column >= 0) & (column < image.shape[1]) & (row >= 0) & (row < image.shape[0])
    values: Floats = image[np.where(inside, row, 0), np.where(inside, column, 0)]
    values[~inside] = 0
    return values


def nearest(image: Floats, turn: Any) -> Floats:
    """Return the rotated image; each pixel is the nearest texel."""
    x, y = positions(turn, *image.shape)
    return texels(image, x >> POSITION_BITS, y >> POSITION_BITS)


def filtered(image: Floats, turn: Any) -> Floats:
    """Return the rotated image; each pixel is the mean of four texels, weighted in double precision."""
    unit = 2**WEIGHT_BITS
    # Weights are measured from texel centres.
    x, y = ((position >> (POSITION_BITS - WEIGHT_BITS)) - unit // 2 for position in positions(turn, *image.shape))
    column, row, to_right, to_below = x // unit, y // unit, x % unit / unit, y % unit / unit
    above = (1 - to_right) * texels(image, column, row) + to_right * texels(image, column + 1, row)
    below = (1 - to_right) * texels(image, column, row + 1) + to_right * texels(image, column + 1, row + 1)
    return np.asarray((1 - to_below) * above + to_below * below, np.float32)


class Image:
    """A source and a target of the same shape on the device, and the launches that rotate one into the other."""

    def __init__(self, module: cuda.Module, band: Floats, rows: int) -> None:
        """Create a source of `rows` rows, which repeat those of `band`."""
        self._module = module
        self._source, self.target = (cuda.empty_pitched((rows, band.shape[1]), np.float32) for _ in range(2))
        for start in range(0, rows, len(band)):
            self._source[start : start + len(band)].copy_from(band[: rows - start])
        self._shape = np.array((band.shape[1], rows, self._source.strides[0] // 4), SHAPE)[()]
        # Texels outside the image are 0, the default border.
        self._textures = {
            linear: cuda.textures.Texture(self._source, address="border", filter="linear" if linear else "point")
            for linear in (False, True)
        }

    def launch(self, way: Way, angle: float) -> Callable[[], object]:
        """Return the launch that rotates the image."""
        rows, columns = self.target.shape
        x, y = way.block
        grid = (blocks_for(columns, x), blocks_for(rows, y * PIXELS))
        source = self._textures[way.filtered] if way.by_texture else self._source
        turn = rotation(angle, rows, columns)
        return self._module[way.kernel][grid, way.block].bind(source, self.target, self._shape, turn)


def run(device: cuda.Device, size: int) -> Result:
    """Check every variant on a small image that is not square, and time it on a square one, at several angles."""
    module = load("texture")
    rows = min(size, CHECKED)
    host = np.random.default_rng().random((rows, rows + 8), np.float32)
    small, large = Image(module, host, rows), None
    if timing.available():
        large = Image(module, np.random.default_rng().random((min(size, BAND), size), np.float32), size)

    def variant(name: str, way: Way, angle: float) -> Variant:
        turn = rotation(angle, *host.shape)
        tolerance = (TEXTURE_TOLERANCE if way.by_texture else PLAIN_TOLERANCE) if way.filtered else 0.0
        return Variant(
            name=name,
            launch=small.launch(way, angle),
            output=small.target,
            expected=filtered(host, turn) if way.filtered else nearest(host, turn),
            tolerance=tolerance,
            timed=large.launch(way, angle) if large else None,
            amount=2 * 4 * size**2,
        )

    limit = copy_limit(device)
    cases = {
        angle: measure([variant(name, way, angle) for name, way in WAYS.items()], limit, EXPLAINED_BY)
        for angle in ANGLES
    }
    return replace(result_of(cases, limit), counted=f"{rows} rows of pixels")


def result_of(cases: dict[int, list[Row]], limit: Limit) -> Result:
    """Return the rows of all angles side by side: rates if they were timed, counters if not."""
    pictures = []
    if timing.available():
        rows = side_by_side({f"{angle}°": rows for angle, rows in cases.items()}, limit.unit)
        bars = {row.name: {angle: float(rate) for angle, rate in row.values.items()} for row in rows}
        pictures = [Bars("angles", limit.unit, bars, limit)]
        rows = [of_slowest(row, limit) for row in rows]
        columns = (
            f"The columns show the rate in {limit.unit} at each angle. The 'of limit' column refers to the slowest "
            "angle."
        )
    else:
        rows = side_by_side({f"sectors {angle}°": rows for angle, rows in cases.items()}, "sectors read")
        rows = [
            replace(row, values={**row.values, **instructions(counted)})
            for row, counted in zip(rows, cases[SHOWN_ANGLE], strict=True)
        ]
        columns = (
            "The columns show the memory sectors that loads or texture fetches touch at each angle, and the "
            f"instructions at {SHOWN_ANGLE}°."
        )
    notes = [
        columns,
        "A warp whose pixels form a row reads a slanted line of the source: at 90°, it reads from 32 different rows. A "
        "warp with 8 x 4 pixels reads a patch, which spans only a few sectors at any angle. So 2-D locality comes from "
        "the arrangement of a warp's pixels. Plain loads and textures go through the same L1 cache, but the texture "
        "unit reads the texels of four lanes at a time, and patches do not reduce its sectors. __ldg behaves like a "
        "plain load, but promises that nothing modifies the data while the kernel runs. On an H200, a texture is "
        "faster than plain loads only for rows of pixels at 90°. With patches, plain loads are faster at every angle.",
        "A block that copies its part of the source to shared memory reads contiguous parts of rows at any angle. But "
        "it reads more texels than it has pixels and executes three times as many instructions. On an H200, this "
        "variant is the slowest.",
        "A texture fetch also goes through the texture unit, which does arithmetic. The texture unit handles "
        "positions outside the image, and can return the weighted mean of four texels in one fetch. That is faster "
        "than four plain loads with the same arithmetic. The weights have 8 bits, so the mean of values up to 1 is "
        "accurate to 1/256.",
        "These textures read ordinary row-major memory. A CUDA array would store its texels in a special layout that "
        "keeps neighbouring texels of several rows close together.",
    ]
    return Result(rows, limit, pictures=pictures, notes=notes)


def instructions(row: Row) -> dict[str, Any]:
    """Return the column of the instructions, if they were counted."""
    return {column: value for column, value in row.values.items() if column == "instructions"}

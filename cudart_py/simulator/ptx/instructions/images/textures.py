"""Texture fetches: the texels that a fetch reads, and the filtering of these texels.

The rounding of coordinates, weights and sums follows recorded outputs of an H200, for one to three dimensions and for
layers. The filtering of negative floats, of halves, and of the border's color among integers is an assumption: the
recordings contain none of these.

Indices, weights and sums are whole numbers in double precision, which represents all of them exactly. NaN coordinates
are treated like coordinates far below 0.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from ..number_formats.formats import to_single
from ..number_formats.rounding import to_integral
from ..values import Value, maximum, minimum, where

# The fraction bits of a normalized coordinate that have an effect; recordings agree only with this number.
_COORDINATE_BITS = 21
# The filter weight that represents 1, and its binary logarithm.
_WEIGHT, _WEIGHT_BITS = 256, 8
# The bits of the largest texel when floats are filtered, and the bits of the result.
_TEXEL_BITS, _FLOAT_BITS = 28, 24
# Coordinates in texels are limited to this size. Twice an extent fits many times, and all smaller halves are exact.
_FAR = 2.0**40
# The exponent bias of double precision and the width of its fraction, and an exponent below those of all texels but 0.
_BIAS, _FRACTION, _LEAST = 1023, 52, -160
# The number of coordinates of each geometry, not counting the index of a layer.
AXES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2}
# The texels that a fetch filters. In one dimension without layers, the hardware also filters along y, at y = 0. That is
# halfway between the only row and the texels before it, which are the row itself, or the border if y has that mode.
_CORNERS = {"1d": 4, "2d": 4, "3d": 8, "a1d": 2, "a2d": 4}
# The corners of a filtered fetch in two dimensions, in the order in which a gather returns them.
_GATHERED = (1, 3, 2, 0)
# The PTX types of a texel's channels by their NumPy types; halves are bit patterns.
CHANNELS = {"f4": "f32", "f2": "u16", "u1": "u8", "i1": "s8", "u2": "u16", "i2": "s16", "u4": "u32", "i4": "s32"}


class Sampling(NamedTuple):
    """The facts about a texture and a fetch that decide how the fetch computes its results.

    `geometry` is as the instructions name it, and `channel` is the NumPy type of each of the `channels` of a texel.
    `modes` are the address modes that are in effect along the axes, joined by hyphens. `filter` is "index" if
    coordinates are the indices of texels, else "point" or "linear". `coordinates` is "normalized" or "texels". `read`
    is "fraction" if integers are read as numbers in [0, 1] or [-1, 1], else "element". `result` is the PTX type of the
    results. `levels` is "two" if the fetch filters between two levels of a mipmap, else "one".
    """

    geometry: str
    channel: str
    channels: str
    modes: str
    filter: str
    coordinates: str
    read: str
    result: str
    levels: str = "one"

    @property
    def name(self) -> str:
        """Return all facts as one name, from which `sampling_of` restores them."""
        return ".".join(self)

    @property
    def layered(self) -> bool:
        """Return whether the index of a layer comes before the coordinates."""
        return self.geometry[0] == "a"

    @property
    def axes(self) -> int:
        """Return the number of coordinates."""
        return AXES[self.geometry]

    @property
    def has_border(self) -> bool:
        """Return whether some fetches may read the border's color instead of a texel."""
        return "border" in self.modes

    @property
    def is_sum(self) -> bool:
        """Return whether a fetch filters."""
        return self.filter == "linear"

    @property
    def corners(self) -> int:
        """Return the number of texels that a fetch reads in one level."""
        return _CORNERS[self.geometry] if self.is_sum else 1

    @property
    def texels(self) -> int:
        """Return the number of texels that a fetch reads."""
        return 2 * self.corners if self.levels == "two" else self.corners

    @property
    def operand_types(self) -> list[str]:
        """Return the types of the operands of `located`."""
        coordinate = "s32" if self.filter == "index" else "f32"
        layer = ["u32"] if self.layered else []
        share = ["f64"] if self.levels == "two" else []
        return [*layer, *[coordinate] * self.axes, *["f64"] * 3, *["s64"] * 2, *share]

    @property
    def texel_types(self) -> list[str]:
        """Return the types of the operands of `filtered`."""
        count, channels = self.texels, int(self.channels)
        beyond = ["pred"] * count if self.has_border else []
        weights = ["f64"] * count if self.is_sum else []
        return [*[CHANNELS[self.channel]] * count * channels, *beyond, *weights, *["f64"] * 4]

    @property
    def scale(self) -> int:
        """Return the integer that is read as 1."""
        bits = 8 * int(self.channel[1])
        return (1 << bits - (self.channel[0] == "i")) - 1 if self.read == "fraction" else 1


def group_size(geometry: str, by_index: bool) -> int:
    """Return the number of lanes that fetch together, each group with its own request, as measured on an H200."""
    return 8 if geometry == "1d" and by_index else 4


def sampling_of(name: str) -> Sampling:
    """Return the facts of which a name consists."""
    return Sampling(*name.split("."))


def located(how: Sampling, *operands: Value) -> tuple[Value, ...]:
    """Return the byte offsets of the texels that a fetch reads, and how it combines them.

    The operands are the layer's index if there are layers, the coordinates, three extents (width, height, and depth or
    number of layers), and the bytes from row to row and from plane to plane. If the fetch filters between two levels,
    they are those of one level, and the sum of that level's weights follows. The results are one offset per corner,
    then, if there is a border, which offsets stand for the border, and then, if the fetch filters, the weights.
    """
    values = list(operands)
    layer = values.pop(0) if how.layered else None
    share = values.pop() if how.levels == "two" else None
    coordinates, extents, pitches = values[: how.axes], values[how.axes : how.axes + 3], values[how.axes + 3 :]
    place = [_in_texels(how, *pair) for pair in zip(coordinates, extents, strict=False)]
    if how.is_sum and how.geometry == "1d":
        place, extents = [*place, extents[0].real(0)], [extents[0], extents[0].real(1), *extents[2:]]
    modes = how.modes.split("-")
    if how.is_sum:
        before, farther = zip(*map(_weighted, place), strict=True)
        farther = tuple(map(_kept, modes, place, extents, farther))
        steps = _weights(farther, share)
    else:
        before, steps = tuple(map(_floor, place)), {(0,) * len(place): None}
    sides = [
        [_placed(index + index.real(step) if step else index, extent, mode) for step in range(1 + how.is_sum)]
        for index, extent, mode in zip(before, extents, modes, strict=False)
    ]
    scales = [pitches[0].like(int(how.channels) * int(how.channel[1])), *pitches]
    offsets, beyond = [], []
    for corner in steps:
        chosen = [axis[step] for axis, step in zip(sides, corner, strict=True)]
        parts = [index.as_number("s32").to("s64") * scale for (index, _), scale in zip(chosen, scales, strict=False)]
        if layer is not None:
            last = extents[2].as_number("u32") - 1
            parts.append(minimum(layer, last).to("s64") * pitches[1])
        offsets.append(reduce(operator.add, parts))
        if how.has_border:
            beyond.append(reduce(operator.or_, [truth for _, truth in chosen if truth is not None]))
    weights = [weight for weight in steps.values() if weight is not None]
    return (*offsets, *beyond, *weights)


def filtered(how: Sampling, *operands: Value) -> tuple[Value, ...]:
    """Return four channels; missing ones are 0.

    The operands are the channels of each corner's texel, which corners are the border's and the weights, as `located`
    returns them, and the border's color as four numbers that a channel can hold, or that are multiplied by `scale`.
    """
    count, channels = how.texels, int(how.channels)
    texels = [operands[channels * corner : channels * (corner + 1)] for corner in range(count)]
    rest = list(operands[channels * count :])
    beyond = [rest.pop(0) if how.has_border else None for _ in range(count)]
    weights = [rest.pop(0) for _ in range(count)] if how.is_sum else []
    results = []
    for channel, border in enumerate(rest):
        if channel < channels:
            values = [texel[channel] for texel in texels]
            if how.is_sum:
                number = _sum(how, values, beyond, weights, border)
            else:
                number = _read(how, values[0], beyond[0], border)
            results.append(_result(how, number))
        else:
            results.append(Value(border.builder, how.result, known=0))
    return tuple(results)


def gathered(how: Sampling, *operands: Value) -> tuple[Value, ...]:
    """``tld4``: return a channel of the four texels that a filtered fetch would read.

    The first is the one with the smaller x and the larger y, then the larger x, the smaller y, and the smaller x. The
    operands are the channel of each corner's texel, which corners are the border's, if there is a border, and the
    border's color as a number that a channel can hold.
    """
    texels, border = operands[:4], operands[-1]
    beyond = operands[4:8] if how.has_border else (None,) * 4
    return tuple(_result(how, _read(how, texels[corner], beyond[corner], border)) for corner in _GATHERED)


def face_of(x: Value, y: Value, z: Value) -> tuple[Value, Value, Value]:
    """Return the face of a cube map to which a direction points, and the normalized coordinates on that face.

    The faces are +x, -x, +y, -y, +z and -z. If coordinates have the same size, z comes before y, and y before x.
    """
    zero = x.real(0)
    width, height, depth = abs(x), abs(y), abs(z)
    along_z = (depth >= width) & (depth >= height)
    along_y = ~along_z & (height >= width)

    def chosen(one: Value, two: Value, three: Value) -> Value:
        return where(along_z, three, where(along_y, two, one))

    negative = chosen(x, y, z) < zero
    face = where(along_z, x.bits.like(4), where(along_y, x.bits.like(2), x.bits.like(0))) + negative.to("u32")
    right = chosen(where(negative, z, -z), x, where(negative, -x, x))
    down = chosen(-y, where(negative, -z, z), -y)
    size = chosen(width, height, depth).as_number("f64")
    half = size.real(0.5)
    s, t = ((one.as_number("f64") / size * half + half).as_number("f32") for one in (right, down))
    return face, s, t


# --- coordinates


def _floor(x: Value) -> Value:
    return to_integral(x, "floor")


def _in_texels(how: Sampling, coordinate: Value, extent: Value) -> Value:
    """Return a coordinate in units of texels."""
    wide = coordinate.as_number("f64")
    if how.filter == "index":
        return wide
    if how.coordinates == "normalized":
        wide = _floor(wide * wide.real(2.0**_COORDINATE_BITS)) * wide.real(2.0**-_COORDINATE_BITS) * extent
    wide = where(wide > wide.real(-_FAR), wide, wide.real(-_FAR))
    return where(wide < wide.real(_FAR), wide, wide.real(_FAR))


def _placed(index: Value, extent: Value, mode: str) -> tuple[Value, Value | None]:
    """Return texel indices brought into range, and which lanes read the border instead, if there is one."""
    zero = index.real(0)
    # No quotient of such small integers is rounded to an integer that it isn't.
    if mode == "wrap":
        return index - _floor(index / extent) * extent, None
    if mode == "mirror":
        twice = extent + extent
        period = index - _floor(index / twice) * twice
        return where(period < extent, period, twice - index.real(1) - period), None
    last = extent - index.real(1)
    below, above = index < zero, index > last
    return where(below, zero, where(above, last, index)), below | above if mode == "border" else None


# --- filtering


def _weighted(coordinate: Value) -> tuple[Value, Value]:
    """Round coordinates to 256ths; return the last texel whose center isn't after each, and the next texel's weight."""
    real = coordinate.real
    steps = _floor((coordinate - real(0.5)) * real(_WEIGHT) + real(0.5))
    before = _floor(steps * real(1 / _WEIGHT))
    return before, steps - before * real(_WEIGHT)


def _kept(mode: str, coordinate: Value, extent: Value, weight: Value) -> Value:
    """Return the weights of the texels after each coordinate, 0 if it is clamped to the center of the edge texel.

    Both texels are the edge texel there, but the rounding of the other axes' weights depends on this one.
    """
    if mode != "clamp":
        return weight
    half = coordinate.real(0.5)
    return where((coordinate < half) | (coordinate >= extent - half), coordinate.real(0), weight)


def _weights(farther: Sequence[Value], share: Value | None) -> dict[tuple[int, ...], Value | None]:
    """Return the weight of each corner, whose coordinates are 0 or 1; the weights add up to 256, or to `share`.

    `farther` contains the weights of the farther texels along each axis. The sum is divided along z, then each part
    along x and then along y. Each time, one part is rounded and the other is the remainder.
    """
    across = farther[0]
    down = farther[1] if len(farther) > 1 else across.real(0)
    whole = across.real(_WEIGHT)
    total = whole if share is None else share
    planes = [total]
    if len(farther) > 2:
        deep = farther[2] if share is None else _share(share, farther[2])
        planes = [total - deep, deep]
    weights: dict[tuple[int, ...], Value | None] = {}
    for z, plane in enumerate(planes):
        right = _share(plane, across)
        left = plane - right
        above, below = _share(left, whole - down), _share(right, down)
        if len(farther) == 1:
            return {(0,): left, (1,): right}
        parts = {(0, 0, z): above, (0, 1, z): left - above, (1, 0, z): right - below, (1, 1, z): below}
        weights |= {corner[: len(farther)]: part for corner, part in parts.items()}
    return weights


def _share(whole: Value, weight: Value) -> Value:
    """Return the product of two weights as a weight, rounded half up."""
    return _floor((whole * weight + whole.real(_WEIGHT // 2)) * whole.real(1 / _WEIGHT))


def _sum(
    how: Sampling, values: Sequence[Value], beyond: Sequence[Value | None], weights: Sequence[Value], border: Value
) -> Value:
    """Return the weighted sums of texels."""
    numbers = [(to_single("f16", x) if how.channel == "f2" else x).as_number("f64") for x in values]
    color = border * border.real(how.scale)
    numbers = [x if truth is None else where(truth, color, x) for x, truth in zip(numbers, beyond, strict=True)]
    return (_sum_of_integers if how.read == "fraction" else _sum_of_floats)(how, numbers, weights)


def _sum_of_floats(how: Sampling, numbers: Sequence[Value], weights: Sequence[Value]) -> Value:
    """Return the weighted sums of floats.

    The hardware aligns the texels to the exponent of the largest texel, truncates them to its 28 bits, adds them as
    integers, and rounds the sum to the nearest float, ties away from zero.
    """
    largest = abs(numbers[0])
    for x in numbers[1:]:
        largest = where(abs(x) > largest, abs(x), largest)
    exponent = maximum(_exponent(largest), _LEAST)
    scale, unit = _power(_TEXEL_BITS - exponent), _power(exponent - (_TEXEL_BITS + _WEIGHT_BITS))
    whole = [to_integral(x * scale, "trunc") for x in numbers]
    total = reduce(operator.add, [x * weight for x, weight in zip(whole, weights, strict=True)])
    size = abs(total)
    excess = maximum(_exponent(size) - _FLOAT_BITS, 0)
    rounded = _floor(size * _power(-excess) + size.real(0.5)) * _power(excess) * unit
    signed = (rounded.bits | total.bits & 1 << 63).read_as("f64").as_number("f32")
    return Value(signed.builder, "f32", signed.raw, loose=True)


def _exponent(x: Value) -> Value:
    """Return the exponents of positive doubles with which their fractions are at least 1/2 and below 1."""
    return (x.bits >> _FRACTION).read_as("s64") - (_BIAS - 1)


def _power(exponent: Value) -> Value:
    """Return 2 to the power of 64-bit integers."""
    return (exponent + _BIAS << _FRACTION).read_as("f64")


def _sum_of_integers(how: Sampling, numbers: Sequence[Value], weights: Sequence[Value]) -> Value:
    """Return the weighted sums of integers as 16-bit fractions, whatever the integers' width."""
    whole = reduce(operator.add, [x * weight for x, weight in zip(numbers, weights, strict=True)])
    total = to_integral(whole, "rint").as_number("s64")
    if how.channel == "u1":
        total = total * 257
    elif how.channel == "i1":
        # This multiplies by nearly 32767 / 127. The hardware adds up shifted parts, and keeps three extra bits of them.
        total = ((total << 3) + (total >> 4) + (total >> 12)) << 5
    fraction = (total + _WEIGHT // 2) >> _WEIGHT_BITS
    limit = 65535 if how.channel[0] == "u" else 32767
    number = maximum(fraction, -limit).to("s32").as_number("f64")
    return (number / number.real(limit)).as_number("f32")


# --- single texels


def _read(how: Sampling, texel: Value, beyond: Value | None, border: Value) -> Value:
    """Return a texel's channel as a float or an integer."""
    if how.read == "fraction":
        number = texel.as_number("f32")
        number = number / number.real(how.scale)
        number = where(number < number.real(-1), number.real(-1), number)
    else:
        number = to_single("f16", texel) if how.channel == "f2" else texel
    if beyond is None:
        return number
    wide = number.type[0] == "f"
    color = border.as_number("f32") if wide else border.as_number("s64").to(number.type)
    return where(beyond, color, number)


def _result(how: Sampling, number: Value) -> Value:
    """Return a channel in the type of the results."""
    if number.type[0] == "f":
        return number if how.result == "f32" else number.as_number("s64").to(how.result)
    return number.as_number("f32") if how.result == "f32" else number.to(how.result)

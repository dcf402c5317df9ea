"""Conversions round once, saturate, and treat NaNs as the PTX manual specifies.

`tests/conformance` compares conversions to integers, and between other formats, with those of a GPU.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx.arrays.expressions import array_function
from cudart_py.simulator.ptx.instructions.number_formats import formats
from cudart_py.simulator.ptx.operations.formats import widen
from tests.simulator.ptx.operations.references import (
    Array,
    assert_same_floats,
    bits_of,
    floats,
    integers,
    operation,
    round_exact,
)

COUNT = 200
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
INTEGERS: dict[str, type[np.integer[Any]]] = {
    "s8": np.int8, "u16": np.uint16, "s16": np.int16, "s32": np.int32, "u64": np.uint64, "s64": np.int64,
}  # fmt: skip  # rows of a table


def assert_rounded(result: Array, kind: str, rounding: str, operands: Array, relu: bool = False) -> None:
    """Compare floats, or the bit patterns of narrow ones, with operands that are rounded once."""
    expected = []
    for number in operands.tolist():
        value = number
        if math.isfinite(number):
            value = round_exact(Fraction(number), kind, rounding, math.copysign(1, number) < 0)
        expected.append(0.0 if relu and value <= 0 else value)
    if kind in ("f32", "f64"):
        assert_same_floats(result, expected, operands)
    else:
        np.testing.assert_array_equal(result, [bits_of(value, kind) for value in expected])


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("source", ["s16", "u64", "s64", "f32", "f64"])
def test_numbers_become_floats_with_one_rounding(source: str, rounding: str) -> None:
    if source in INTEGERS:
        a = integers(INTEGERS[source], COUNT, 3)
        # Values near a tie of float32, which only a far lower bit decides.
        if source != "s16":
            a[::7] = (np.int64(2**24 + 1) << 30) + np.arange(a[::7].size) % 3 - 1
    else:
        rng, kind = np.random.default_rng(5), FLOATS[source]
        halves = (rng.integers(-5000, 5000, COUNT) * 2.0**-13).astype(kind)
        near = rng.standard_normal(COUNT).astype(np.float16).astype(kind)
        near = np.nextafter(near, np.where(np.arange(COUNT) % 2, 9, -9).astype(kind))
        tiny = (rng.integers(-4000, 4000, COUNT) * 2.0**-27).astype(kind)
        a = np.concatenate([floats(kind, COUNT, 4), halves, near, tiny])
    for destination in ("f16", "bf16", "f32", "f64"):
        if destination != source and (source, destination) != ("f32", "f64"):
            result = operation(f"cvt.{rounding}.{destination}.{source}")(a)
            assert_rounded(result, destination, rounding, a)


@pytest.mark.parametrize("destination", ["s8", "u16", "s32", "u64"])
def test_numbers_beyond_one_end_of_the_integers_alone_saturate(destination: str) -> None:
    convert, info = operation(f"cvt.rzi.{destination}.f32"), np.iinfo(INTEGERS[destination])
    for beyond, end in ((2.0 ** info.max.bit_length(), info.max), (-1e30, info.min), (math.inf, info.max)):
        assert convert(np.array([1.5, beyond], np.float32)).tolist() == [1, end]


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("rounding", ["rna", "rn", "rz"])
def test_tf32(rounding: str, relu: bool) -> None:
    """The tf32 format keeps ten fraction bits."""
    few = (1 + np.arange(1000) / 8192).astype(np.float32)
    a = np.concatenate([floats(np.float32, COUNT, 8), few, -few])
    result = operation(f"cvt.{rounding}{'.relu' if relu else ''}.tf32.f32")(a)
    assert_rounded(result, "tf32", rounding, a, relu)


def test_halves_saturate() -> None:
    numbers = np.array([-1.0, 2.0, 0.5, math.nan, math.inf, -math.inf])
    assert operation("cvt.rn.sat.f16.f64")(numbers).tolist() == [0, 0x3C00, 0x3800, 0, 0x3C00, 0]
    both = operation("cvt.rn.satfinite.f16x2.f32")
    assert both(np.array([1e9], np.float32), np.array([math.nan], np.float32)).tolist() == [0x7BFF7FFF]


@pytest.mark.parametrize(
    ("kind", "fraction", "bias", "specials"), [("e4m3", 3, 7, [math.nan]), ("e5m2", 2, 15, [math.inf] + [math.nan] * 3)]
)
def test_eight_bit_floats(kind: str, fraction: int, bias: int, specials: list[float]) -> None:
    """Rounding is to nearest, ties to even. Values out of range become the largest finite one; relu clamps at zero."""
    narrow = array_function(lambda x: formats.nearest(kind, x, finite=True), "f32")
    values = widen(np.arange(256, dtype=np.uint8), kind)
    exponent, rest = np.divmod(np.arange(128 - len(specials)), 1 << fraction)
    sizes = ((exponent > 0) * (1 << fraction) + rest) * 2.0 ** (np.maximum(exponent, 1) - bias - fraction)
    assert_same_floats(values, [*sizes, *specials, *-sizes, *(-x for x in specials)], values)
    numbers = np.isfinite(values)
    assert (narrow(values[numbers]) == np.arange(256)[numbers]).all()
    ladder = np.unique(np.abs(values[numbers]))
    middle = (ladder[1:] + ladder[:-1]) / 2
    assert np.isin(widen(narrow(middle), kind), ladder).all()
    assert (narrow(middle) & 1 == 0).all()
    for towards, neighbours in ((0, ladder[:-1]), (math.inf, ladder[1:])):
        assert (widen(narrow(np.nextafter(middle, np.float32(towards))), kind) == neighbours).all()
    top = np.array([1e9, -math.inf, math.nan], np.float32)
    assert widen(narrow(top[:2]), kind).tolist() == [ladder[-1], -ladder[-1]]
    assert narrow(top)[2] == 0x7F
    a, b = np.array([[-ladder[1], *ladder[1:3], -0.0], [*ladder[1:3], -ladder[3], -0.0]], np.float32)
    for relu, packed in ((False, [0x8101, 0x0102, 0x0283, 0x8080]), (True, [0x0001, 0x0102, 0x0200, 0])):
        convert = f"cvt.rn.satfinite{'.relu' if relu else ''}.{kind}x2"
        assert operation(f"{convert}.f32")(a, b).tolist() == packed
        halves = operation("cvt.rn.f16x2.f32")(a, b)
        assert operation(f"{convert}.f16x2")(halves).tolist() == packed


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_pairs_of_eight_bit_floats_become_pairs_of_halves(kind: str) -> None:
    patterns = np.arange(0x10000, dtype=np.uint32)
    values = widen(np.arange(256, dtype=np.uint8), kind)
    each = np.where(np.isnan(values), np.uint16(0x7FFF), values.astype(np.float16).view(np.uint16)).astype(np.uint32)
    for relu, halves in ((False, each), (True, np.where(each & 0x8000 > 0, each & 0, each))):
        result = operation(f"cvt.rn{'.relu' if relu else ''}.f16x2.{kind}x2")(patterns.astype(np.uint16))
        assert result.dtype == np.uint32
        assert (result == halves[patterns // 256] * 65536 + halves[patterns % 256]).all()


@pytest.mark.parametrize("integral", ["rni", "rzi", "rmi", "rpi"])
def test_brain_floats_become_integral(integral: str) -> None:
    a = np.concatenate([np.arange(0x4000), np.arange(0x8000, 0xC000)]).astype(np.uint16) + np.uint16(0x3C00)
    a = a[(a & 0x7FFF) <= 0x7F80]
    function = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[integral]
    expected = function((a.astype(np.uint32) << 16).view(np.float32)).view(np.uint32) >> 16
    np.testing.assert_array_equal(operation(f"cvt.{integral}.bf16.bf16")(a), expected)


def test_brain_floats_are_moved_or_flushed() -> None:
    a = np.random.default_rng().integers(0, 1 << 16, COUNT, np.uint16)
    a[(a & 0x7FFF) > 0x7F80] = 1
    np.testing.assert_array_equal(operation("cvt.bf16.bf16")(a), a)
    tiny = np.array([1, 0x80000001, 0x007FFFFF, 0x00800000], np.uint32).view(np.float32)
    assert operation("cvt.rp.ftz.bf16.f32")(tiny).tolist() == [0, 0x8000, 0, 0x0080]

"""Conversions round once, saturate, and treat NaN as the PTX manual says.

Those to integers, and between numbers of other sizes, are compared with a GPU's in `tests/conformance`.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.conversions import INTEGERS, converter
from cudart_py.simulator.ptx.operations.floats.formats import narrow_f16, narrow_fp8, widen_fp8
from tests.simulator.ptx.operations.references import Array, assert_same_floats, bits_of, floats, integers, round_exact

COUNT = 500
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def assert_rounded(result: Array, kind: str, rounding: str, operands: Array, relu: bool = False) -> None:
    """Compare floats, or the patterns of narrow ones, with numbers that are rounded once."""
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
        # Near ties of float32 with a far sticky bit.
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
            assert_rounded(converter(destination, source, rounding=rounding)(a), destination, rounding, a)


@pytest.mark.parametrize("destination", ["s8", "u16", "s32", "u64"])
def test_numbers_beyond_one_end_of_the_integers_alone_saturate(destination: str) -> None:
    convert, info = converter(destination, "f32", rounding="rzi"), np.iinfo(INTEGERS[destination])
    for beyond, end in ((1e30, info.max), (-1e30, info.min), (math.inf, info.max)):
        assert convert(np.array([1.5, beyond], np.float32)).tolist() == [1, end]


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("rounding", ["rna", "rn", "rz"])
def test_tf32(rounding: str, relu: bool) -> None:
    """tf32 keeps ten fraction bits"""
    few = (1 + np.arange(1000) / 8192).astype(np.float32)
    a = np.concatenate([floats(np.float32, COUNT, 8), few, -few])
    assert_rounded(converter("tf32", "f32", rounding=rounding, relu=relu)(a), "tf32", rounding, a, relu)


def test_halves_saturate() -> None:
    numbers = np.array([-1.0, 2.0, 0.5, math.nan, math.inf, -math.inf])
    assert converter("bf16", "f64", rounding="rn", sat=True)(numbers).tolist() == [0, 0x3F80, 0x3F00, 0, 0x3F80, 0]
    both = converter("f16x2", "f32", rounding="rn", satfinite=True)
    assert both(np.array([1e9], np.float32), np.array([math.nan], np.float32)).tolist() == [0x7BFF7FFF]


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_eight_bit_floats(kind: str) -> None:
    """fp8 rounds to the nearest even value and saturates to the greatest finite one; relu makes negative ones zero"""
    values = widen_fp8(np.arange(256, dtype=np.uint8), kind)
    numbers = np.isfinite(values)
    assert (narrow_fp8(values[numbers], kind) == np.arange(256)[numbers]).all()
    ladder = np.unique(np.abs(values[numbers]))
    middle = (ladder[1:] + ladder[:-1]) / 2
    assert np.isin(widen_fp8(narrow_fp8(middle, kind), kind), ladder).all()
    assert (narrow_fp8(middle, kind) & 1 == 0).all()
    for towards, neighbours in ((0, ladder[:-1]), (math.inf, ladder[1:])):
        assert (widen_fp8(narrow_fp8(np.nextafter(middle, np.float32(towards)), kind), kind) == neighbours).all()
    top = np.array([1e9, -math.inf, math.nan], np.float32)
    assert widen_fp8(narrow_fp8(top[:2], kind), kind).tolist() == [ladder[-1], -ladder[-1]]
    assert narrow_fp8(top, kind)[2] == 0x7F
    a, b = np.array([[-ladder[1], ladder[1], ladder[2]], [ladder[1], ladder[2], -ladder[3]]])
    for relu, packed in ((False, [0x8101, 0x0102, 0x0283]), (True, [0x0001, 0x0102, 0x0200])):
        options: dict[str, Any] = {"rounding": "rn", "satfinite": True, "relu": relu}
        assert converter(kind + "x2", "f32", **options)(a, b).tolist() == packed
        halves = converter("f16x2", "f32", rounding="rn")(a, b)
        assert converter(kind + "x2", "f16x2", **options)(halves).tolist() == packed


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_pairs_of_eight_bit_floats_become_pairs_of_halves(kind: str) -> None:
    patterns = np.arange(0x10000, dtype=np.uint32)
    each = narrow_f16(widen_fp8(np.arange(256, dtype=np.uint8), kind)).astype(np.uint32)
    for relu, halves in ((False, each), (True, np.where(each & 0x8000 > 0, each & 0, each))):
        result = converter("f16x2", kind + "x2", rounding="rn", relu=relu)(patterns.astype(np.uint16))
        assert result.dtype == np.uint32
        assert (result == halves[patterns // 256] * 65536 + halves[patterns % 256]).all()

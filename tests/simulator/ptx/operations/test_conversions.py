"""Conversions round once, saturate, and treat NaN as the PTX manual says."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.conversions import INTEGERS, converter
from cudart_py.simulator.ptx.operations.floats.formats import narrow_f16, narrow_fp8, widen, widen_fp8
from tests.simulator.ptx.operations.references import (
    Array,
    assert_same_floats,
    bits_of,
    finite,
    floats,
    integers,
    round_exact,
)

COUNT = 500
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
ROUNDINGS = ["rn", "rz", "rm", "rp"]


def patterns(a: Array, kind: str) -> Array:
    """View floats as the operand type of their kind."""
    return a.view(np.uint16) if kind == "f16" else a


def assert_patterns(actual: Array, expected: list[float], kind: str, operands: Array) -> None:
    """Compare bit patterns of a narrow format with expected values; NaN is canonical."""
    nan = {"f16": 0x7FFF, "bf16": 0x7FFF, "tf32": 0x7FFFFFFF}[kind]
    wanted = [nan if math.isnan(v) else bits_of(v, kind) for v in expected]
    wrong = [i for i, (x, y) in enumerate(zip(actual.tolist(), wanted, strict=True)) if x != y]
    assert not wrong, f"{float(operands[wrong[0]]).hex()} gave {actual[wrong[0]]:#x}, expected {wanted[wrong[0]]:#x}"


def round_float(value: float, kind: str, rounding: str) -> float:
    """Round a float into a format; infinities and NaN pass."""
    return round_exact(Fraction(value), kind, rounding, math.copysign(1, value) < 0) if finite(value) else value


@pytest.mark.parametrize("source", INTEGERS)
def test_integers_wrap_or_saturate(source: str) -> None:
    a = integers(INTEGERS[source], COUNT, 1)
    for destination, dtype in INTEGERS.items():
        info = np.iinfo(dtype)
        wrapped = [(int(v) - info.min) % (1 << info.bits) + info.min for v in a]
        assert converter(destination, source)(a).tolist() == wrapped
        result = converter(destination, source, sat=True)(a)
        assert result.dtype == dtype
        assert result.tolist() == [max(info.min, min(info.max, int(v))) for v in a]


@pytest.mark.parametrize("destination", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_floats_to_integers_saturate(destination: str, source: str) -> None:
    """Float to integer rounds, saturates, and gives the manual's value for NaN"""
    info = np.iinfo(INTEGERS[destination])
    bounds = np.array([info.min, info.max, info.max / 2], np.float64)
    near = np.concatenate([np.nextafter(bounds, d) for d in (-math.inf, math.inf, 0)] + [bounds, bounds + 0.5])
    whole = np.arange(-300, 300) / 4
    a = np.concatenate([floats(FLOATS[source], COUNT, 2), near.astype(FLOATS[source]), whole.astype(FLOATS[source])])
    special = source == "f64" or info.bits == 64
    of_nan = (info.min if info.min else 1 << (info.bits - 1)) if special else 0

    def reference(value: float, round_: Any) -> int:
        if math.isnan(value):
            return of_nan
        if math.isinf(value):
            return info.max if value > 0 else info.min
        return max(info.min, min(info.max, round_(value)))

    for rounding, round_ in {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}.items():
        convert = converter(destination, source, rounding=rounding)
        # All values at once, and those alone that are inside every type's range, positive or negative.
        for part in (a, a[(a > -0.6) & (a < 100)], a[a > 0], a[a < 0]):
            assert convert(patterns(part, source)).tolist() == [reference(float(v), round_) for v in part]


def assert_rounded(result: Array, expected: list[float], kind: str, operands: Array) -> None:
    if kind in ("f32", "f64"):
        assert_same_floats(result, expected, operands)
    else:
        assert_patterns(result, expected, kind, operands)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("source", ["u8", "s16", "u32", "s32", "u64", "s64"])
def test_integers_to_floats_round_once(source: str, rounding: str) -> None:
    a = integers(INTEGERS[source], COUNT, 3)
    # Near ties of float32 with a far sticky bit.
    if source in ("u64", "s64"):
        a[::7] = (np.int64(2**24 + 1) << 30) + np.arange(a[::7].size) % 3 - 1
    for destination in ("f16", "bf16", "f32", "f64"):
        expected = [round_exact(Fraction(int(v)), destination, rounding) for v in a]
        assert_rounded(converter(destination, source, rounding=rounding)(a), expected, destination, a)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_floats_to_narrower_floats_round_once(source: str, rounding: str) -> None:
    rng, kind = np.random.default_rng(5), FLOATS[source]
    halves = (rng.integers(-5000, 5000, COUNT) * 2.0**-13).astype(kind)
    near = rng.standard_normal(COUNT).astype(np.float16).astype(kind)
    near = np.nextafter(near, np.where(np.arange(COUNT) % 2, 9, -9).astype(kind))
    tiny = (rng.integers(-4000, 4000, COUNT) * 2.0**-27).astype(kind)
    a = np.concatenate([floats(kind, COUNT, 4), halves, near, tiny])
    for destination in ("f16", "bf16", "f32") if source == "f64" else ("f16", "bf16"):
        expected = [round_float(float(v), destination, rounding) for v in a]
        assert_rounded(converter(destination, source, rounding=rounding)(a), expected, destination, a)


def test_every_f16_and_bf16_widens_exactly() -> None:
    """f16 and bf16 to f32 and f64 are exact"""
    codes = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    f16 = codes.view(np.float16).astype(np.float64)
    bf16 = (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    assert_same_floats(converter("f32", "f16")(codes), f16.tolist(), codes)
    assert_same_floats(converter("f64", "f16")(codes), f16.tolist(), codes)
    assert_same_floats(converter("f32", "bf16")(codes), bf16.tolist(), codes)
    assert (converter("f16", "f32", rounding="rn")(widen(codes, "f16"))[~np.isnan(f16)] == codes[~np.isnan(f16)]).all()


def test_f32_around_every_tie_of_f16() -> None:
    """f32 to f16 rounds to nearest even at each point halfway between two f16 numbers, and next to it"""
    codes = np.arange(0x7C00, dtype=np.uint16)
    numbers = np.append(codes.view(np.float16).astype(np.float32), np.float32(65536))
    ties = (numbers[:-1] + numbers[1:]) / 2
    even = np.where(codes % 2 == 0, codes, codes + 1).astype(np.uint16)
    convert = converter("f16", "f32", rounding="rn")
    for sign in (np.uint16(0), np.uint16(0x8000)):
        signed = -ties if sign else ties
        assert (convert(signed) == even | sign).all()
        assert (convert(np.nextafter(signed, np.float32(0))) == codes | sign).all()
        assert (convert(np.nextafter(signed, 2 * signed)) == (codes + np.uint16(1)) | sign).all()


def test_a_pair_decides_a_tie_of_its_high_part() -> None:
    """f16 rounding of a pair follows the low part where the high part alone is a tie"""
    high = np.array([1 + 2.0**-11, 1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-11])
    low = np.array([2.0**-70, -(2.0**-70), -(2.0**-70), -(2.0**-70), 0.0])
    assert narrow_f16(high, low).tolist() == [0x3C01, 0x3C00, 0x3C01, 0xBC01, 0x3C00]


@pytest.mark.parametrize("rounding", ["rna", "rn", "rz"])
def test_tf32(rounding: str) -> None:
    """tf32 keeps ten fraction bits"""
    a = floats(np.float32, COUNT, 8)
    few = (1 + np.arange(1000) / 8192).astype(np.float32)
    a = np.concatenate([a, few, -few])
    result = converter("tf32", "f32", rounding=rounding)(a)
    expected = [round_float(float(v), "tf32", rounding) for v in a]
    assert_patterns(result, expected, "tf32", a)
    rectified = [value if math.isnan(value) else max(0.0, value) + 0.0 for value in expected]
    assert_patterns(converter("tf32", "f32", rounding=rounding, relu=True)(a), rectified, "tf32", a)


INF, NAN = math.inf, math.nan
TINY = [1e-40, -1e-40]
# Conversions with their modifiers, operands, and the values or patterns that they give.
MODIFIED: list[tuple[str, dict[str, Any], list[list[float]], list[float]]] = [
    ("f32 f32", {"rounding": "rni"}, [[-0.5, 0.5, 1.5, 2.5, INF, NAN]], [-0.0, 0.0, 2.0, 2.0, INF, NAN]),
    ("f64 f64", {"rounding": "rpi"}, [[-0.5, 0.5, 1.5, 2.5, INF, NAN]], [-0.0, 1.0, 2.0, 3.0, INF, NAN]),
    ("f32 f64", {"rounding": "rn", "sat": True}, [[-1.0, 2.0, 0.5, NAN, -0.0]], [0.0, 1.0, 0.5, 0.0, 0.0]),
    ("f16 f64", {"rounding": "rn", "sat": True}, [[-1.0, 2.0, 0.5, NAN, INF, -INF]], [0, 0x3C00, 0x3800, 0, 0x3C00, 0]),
    ("bf16 f64", {"rounding": "rn", "sat": True}, [[INF, -INF]], [0x3F80, 0]),
    ("f64 f32", {"ftz": True}, [TINY], [0.0, -0.0]),
    ("f32 f64", {"rounding": "rn", "ftz": True}, [TINY], [0.0, -0.0]),
    ("s32 f32", {"rounding": "rpi", "ftz": True}, [TINY], [0, 0]),
    ("s32 f32", {"rounding": "rpi"}, [TINY], [1, 0]),
    # The first operand of a pair gets on top.
    ("f16x2 f32", {"rounding": "rn"}, [[1.0, -2.0, 1e9], [0.5, 3.0, NAN]], [0x3C003800, 0xC0004200, 0x7C007FFF]),
    ("f16x2 f32", {"rounding": "rn", "relu": True}, [[1.0, -2.0], [0.5, 3.0]], [0x3C003800, 0x00004200]),
    ("f16x2 f32", {"rounding": "rn", "satfinite": True}, [[1e9], [NAN]], [0x7BFF7FFF]),
    ("bf16x2 f32", {"rounding": "rn"}, [[1.0, -2.0, 1e9], [0.5, 3.0, NAN]], [0x3F803F00, 0xC0004040, 0x4E6E7FFF]),
    ("f16x2 f32", {"rounding": "rn"}, [[1 + 1.75 * 2.0**-10]] * 2, [0x3C023C02]),
    ("f16x2 f32", {"rounding": "rz"}, [[1 + 1.75 * 2.0**-10]] * 2, [0x3C013C01]),
]


@pytest.mark.parametrize(("types", "modifiers", "operands", "expected"), MODIFIED)
def test_modifiers_of_conversions(
    types: str, modifiers: dict[str, Any], operands: list[list[float]], expected: list[float]
) -> None:
    destination, source = types.split()
    arrays = [np.array(values, FLOATS[source]) for values in operands]
    result = converter(destination, source, **modifiers)(*arrays)
    if destination in FLOATS and destination != "f16":
        assert_same_floats(result, expected, *arrays)
    else:
        assert result.tolist() == expected


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_eight_bit_floats(kind: str) -> None:
    """fp8 rounds to the nearest even value and saturates to the greatest finite one"""
    values = widen_fp8(np.arange(256, dtype=np.uint8), kind)
    numbers = np.isfinite(values)
    assert (narrow_fp8(values[numbers], kind) == np.arange(256)[numbers]).all()
    ladder = np.unique(np.abs(values[numbers]))
    middle = (ladder[1:] + ladder[:-1]) / 2
    rounded = widen_fp8(narrow_fp8(middle, kind), kind)
    assert np.isin(rounded, ladder).all()
    assert (narrow_fp8(middle, kind) & 1 == 0).all()
    assert (widen_fp8(narrow_fp8(np.nextafter(middle, np.float32(0)), kind), kind) == ladder[:-1]).all()
    assert (widen_fp8(narrow_fp8(np.nextafter(middle, np.float32(np.inf)), kind), kind) == ladder[1:]).all()
    top = np.array([1e9, -math.inf, math.nan], np.float32)
    assert widen_fp8(narrow_fp8(top[:2], kind), kind).tolist() == [ladder[-1], -ladder[-1]]
    assert narrow_fp8(top, kind)[2] == 0x7F
    packed = converter(kind + "x2", "f32", rounding="rn", satfinite=True)(ladder[:3], ladder[1:4])
    assert packed.tolist() == [0x0001, 0x0102, 0x0203]


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_pairs_of_eight_bit_floats_become_pairs_of_halves(kind: str) -> None:
    patterns = np.arange(0x10000, dtype=np.uint32)
    each = narrow_f16(widen_fp8(np.arange(256, dtype=np.uint8), kind)).astype(np.uint32)
    for relu, halves in ((False, each), (True, np.where(each & 0x8000 > 0, each & 0, each))):
        result = converter("f16x2", kind + "x2", rounding="rn", relu=relu)(patterns.astype(np.uint16))
        assert result.dtype == np.uint32
        assert (result == halves[patterns // 256] * 65536 + halves[patterns % 256]).all()


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_relu_makes_negative_eight_bit_floats_zero(kind: str) -> None:
    """cvt.rn.satfinite.relu.e4m3x2 and e5m2x2, of f32 and of f16x2"""
    a, b = np.array([-2.0, 1.0, 3.0], np.float32), np.array([1.5, -0.25, 2.0], np.float32)
    clamped = converter(kind + "x2", "f32", rounding="rn", satfinite=True)(np.maximum(a, 0), np.maximum(b, 0))
    assert (clamped > 0).all()
    relu = converter(kind + "x2", "f32", rounding="rn", satfinite=True, relu=True)
    assert relu(a, b).tolist() == clamped.tolist()
    halves = converter("f16x2", "f32", rounding="rn")(a, b)
    of_halves = converter(kind + "x2", "f16x2", rounding="rn", satfinite=True, relu=True)
    assert of_halves(halves).tolist() == clamped.tolist()


def test_unknown_types_are_refused() -> None:
    """cvt names the type that it doesn't know"""
    for destination, source in (("e4m3x2", "bf16x2"), ("bf16x2", "f16x2"), ("f16x2", "f64")):
        with pytest.raises(ValueError, match=f"does not convert '{source}' to '{destination}'"):
            converter(destination, source)
    with pytest.raises(ValueError, match="b128"):
        converter("b128", "f32")
    with pytest.raises(ValueError, match="q7"):
        converter("f32", "q7")
    with pytest.raises(ValueError, match="rounding"):
        converter("s32", "f32")

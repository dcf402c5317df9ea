"""Single- and double-precision opcodes round the exact result once, in every rounding mode."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.floats import comparisons, double, single
from tests.simulator.ptx.operations.references import (
    Array,
    assert_same_floats,
    extreme,
    finite,
    floats,
    flush,
    ieee_product,
    ieee_sum,
    operation,
    round_exact,
    round_flushed,
)

ROUNDINGS = ["rn", "rz", "rm", "rp"]
KINDS = {"f32": np.float32, "f64": np.float64}
COUNT = 1000


def ieee_quotient(x: float, y: float, kind: str, rounding: str) -> float:
    """Divide as IEEE 754 says."""
    if not finite(x) or not finite(y) or y == 0:
        return float(np.float64(x) / np.float64(y))
    return round_exact(Fraction(x) / Fraction(y), kind, rounding, math.copysign(1, x) != math.copysign(1, y))


def ieee_root(x: float, kind: str, rounding: str) -> float:
    """Take the square root as IEEE 754 says: an integer root with many spare bits and a sticky one."""
    if not finite(x) or x <= 0:
        return float(np.sqrt(np.float64(x)))
    number = Fraction(x)
    scale = 4**1200
    scaled = number * scale
    root = math.isqrt(int(scaled))
    sticky = root * root != scaled
    return round_exact(Fraction(2 * root + sticky, 2 * 2**1200), kind, rounding)


def compare(function: Callable[..., Array], reference: Callable[..., float], *operands: Array) -> None:
    """Compare a function with a reference over all lanes, and with a scalar as last operand."""
    lists = [[float(v) for v in o] for o in operands]
    assert_same_floats(function(*operands), [reference(*lane) for lane in zip(*lists, strict=True)], *operands)
    if len(operands) > 1:
        few = [o[:40] for o in operands[:-1]]
        last = operands[-1][7]
        expected = [reference(*lane, float(last)) for lane in zip(*[x[:40] for x in lists[:-1]], strict=True)]
        assert_same_floats(function(*few, last), expected, *few)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_basic_operations_round_once(kind: str, rounding: str) -> None:
    a, b = floats(KINDS[kind], COUNT, 1), floats(KINDS[kind], COUNT, 2)
    how = kind, rounding
    for name, reference, operands in (
        ("add", lambda x, y: ieee_sum(x, y, None, *how), (a, b)),
        ("sub", lambda x, y: ieee_sum(x, -y, None, *how), (a, b)),
        ("mul", lambda x, y: ieee_product(x, y, *how), (a, b)),
        ("div", lambda x, y: ieee_quotient(x, y, *how), (a, b)),
        ("rcp", lambda x: ieee_quotient(1.0, x, *how), (a,)),
        ("sqrt", lambda x: ieee_root(x, *how), (np.concatenate([np.abs(a[:300]), a[:50]]),)),
    ):
        compare(operation(f"{name}.{rounding}.{kind}"), reference, *operands)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_fma_rounds_once(kind: str, rounding: str) -> None:
    """fma over all magnitudes, and where the addend nearly cancels the product or only tips a tie"""
    dtype = KINDS[kind]
    a, b, c = (floats(dtype, 2 * COUNT, seed) for seed in (3, 4, 5))
    rng = np.random.default_rng(6)
    near = slice(0, COUNT // 2)
    # The addend cancels the product down to its last bits, or is one unit off.
    c[near] = np.nextafter(-(a[near] * b[near]), rng.choice(np.array([-1, 1], dtype), COUNT // 2) * dtype(math.inf))
    ties = slice(COUNT // 2, COUNT)
    # Few bits in the product: ties; powers of two far below or above: sticky bits only.
    half = COUNT // 2
    a[ties] = (1 + rng.integers(0, 4, half) * float(np.finfo(dtype).eps)) * 2.0 ** rng.integers(-30, 30, half)
    b[ties] = (1 + rng.integers(0, 4, half) * float(np.finfo(dtype).eps)) * rng.choice([-1.0, 1.0], half)
    c[ties] = rng.choice([1.0, -1.0, 3.0], half) * 2.0 ** rng.integers(-90, 60, half)
    compare(operation(f"fma.{rounding}.{kind}"), lambda x, y, z: ieee_sum(x, y, z, kind, rounding), a, b, c)


@pytest.mark.parametrize("kind", KINDS)
def test_fma_at_the_subnormal_border(kind: str) -> None:
    """fma rounds once where the result is subnormal, in every rounding mode"""
    dtype = KINDS[kind]
    info = np.finfo(dtype)
    rng = np.random.default_rng(7)
    unit = Fraction(float(info.smallest_subnormal))
    exponent = info.minexp // 2
    # Products of about half a unit, times odd counts, with a sticky tail far below.
    a = ((rng.integers(1, 64, COUNT) + rng.choice([0.0, float(info.eps) * 64], COUNT)) * 2.0**exponent).astype(dtype)
    b = (rng.choice([-1, 1], COUNT) * 2.0 ** (math.log2(unit) - exponent - rng.integers(1, 8, COUNT))).astype(dtype)
    c = (rng.integers(-20, 20, COUNT) * float(unit)).astype(dtype)
    c[::3] = info.smallest_normal * rng.choice([1, -1], c[::3].size)
    for rounding in ROUNDINGS:
        compare(operation(f"fma.{rounding}.{kind}"), lambda x, y, z, r=rounding: ieee_sum(x, y, z, kind, r), a, b, c)


def test_ftz_flushes_operands_and_results() -> None:
    operands = [floats(np.float32, COUNT, seed) for seed in (8, 9, 10)]
    for name, reference in (
        ("add.f32", lambda x, y: flush(ieee_sum(x, y, None, "f32"))),
        ("mul.f32", lambda x, y: ieee_product(x, y, "f32", "rn", round_flushed)),
        ("fma.rn.f32", lambda x, y, z: flush(ieee_sum(x, y, z, "f32"))),
    ):
        given = operands[: 3 if name.startswith("fma") else 2]
        compare(partial(operation(name), ftz=True), lambda *x, f=reference: f(*map(flush, x)), *given)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_ftz_takes_for_subnormal_what_is_so_rounded_with_no_least_exponent(rounding: str) -> None:
    rng = np.random.default_rng(25)
    near = (1 + rng.integers(-4, 4, COUNT) * 2.0**-24).astype(np.float32)
    other = (1 + rng.integers(-4, 4, COUNT) * 2.0**-24) * rng.choice([1, -1], COUNT)
    small = (np.maximum(1, np.abs(other)) * 2.0**-126 * np.sign(other)).astype(np.float32)
    zero = np.full(COUNT, 2.0**-149, np.float32)
    for name, reference, operands in (
        ("mul", lambda x, y: ieee_product(x, y, "f32", rounding, round_flushed), (small, near)),
        ("div", lambda x, y: round_flushed(Fraction(x) / Fraction(y), "f32", rounding), (small, near)),
        ("fma", lambda x, y, z: round_flushed(Fraction(x) * Fraction(y), "f32", rounding), (small, near, zero)),
    ):
        compare(partial(operation(f"{name}.{rounding}.f32"), ftz=True), reference, *operands)


def test_products_that_the_hardware_flushes() -> None:
    """2**-126 * 0x3f7fffff is zero and 0x00800001 * 0x3f7ffffe is not: recorded on an H200"""
    a = np.array([0x00800000, 0x80800000, 0x00800001], np.uint32).view(np.float32)
    b = np.array([0x3F7FFFFF, 0x3F7FFFFF, 0x3F7FFFFE], np.uint32).view(np.float32)
    wanted = {
        "rn": [0, 0x80000000, 0x00800000], "rz": [0, 0x80000000, 0],
        "rm": [0, 0x80000000, 0], "rp": [0, 0x80000000, 0x00800000],
    }  # fmt: skip  # rows of a table
    for rounding, patterns in wanted.items():
        assert operation(f"mul.{rounding}.f32")(a, b, ftz=True).view(np.uint32).tolist() == patterns


@pytest.mark.parametrize("kind", KINDS)
def test_fma_with_one_factor_for_all_lanes(kind: str) -> None:
    """A power of two, and a factor with few bits, whose exact sums are often ties"""
    for factor in (0.0, -0.0, 1.0, -2.0, 0.5, 3.0, 2.5, math.inf, math.nan, 2.0**-100, 2.0**127):
        b, c = floats(KINDS[kind], COUNT // 3, 26), floats(KINDS[kind], COUNT // 3, 27)
        result = operation(f"fma.rn.{kind}")(KINDS[kind](factor), b, c)
        wanted = [ieee_sum(factor, x, y, kind) for x, y in zip(b.tolist(), c.tolist(), strict=True)]
        assert_same_floats(result, wanted, b, c)


def test_sat_clamps_and_turns_nan_to_zero() -> None:
    """sat gives +0 for NaN, for negative numbers and for -0"""
    a = np.array([math.nan, -1, -0.0, 0.25, 1.5, math.inf, -math.inf], np.float32)
    result = single.add_f32(a, np.float32(-0.0), sat=True)
    assert_same_floats(result, [0.0, 0.0, 0.0, 0.25, 1.0, 1.0, 0.0], a)


def test_single_precision_nan_is_canonical() -> None:
    a = np.array([math.nan, 1, math.inf, 0], np.float32)
    b = np.array([0x7FC00001, 0xFFC12345, 0xFF800000, 0x7F800001], np.uint32).view(np.float32)
    for name in ("add.rn.f32", "add.rm.f32", "mul.rn.f32", "div.rn.f32", "min.f32", "max.f32"):
        result = operation(name)(a, b)
        assert np.isnan(result[0])
        assert (result.view(np.uint32)[np.isnan(result)] == 0x7FFFFFFF).all(), name


def test_double_precision_nan_keeps_a_payload() -> None:
    """A NaN of double precision is the first NaN operand made quiet, or the default one"""
    signalling = np.array([0x7FF0000000000123], np.uint64).view(np.float64)
    other = np.array([0xFFF8000000000456], np.uint64).view(np.float64)
    infinity = np.array([math.inf])
    assert double.add_f64(signalling, other).view(np.uint64)[0] == 0x7FF8000000000123
    assert operation("mul.rz.f64")(infinity, other).view(np.uint64)[0] == 0xFFF8000000000456
    assert operation("sub.rm.f64")(infinity, other).view(np.uint64)[0] == 0xFFF8000000000456
    assert double.sub_f64(infinity, infinity).view(np.uint64)[0] == 0xFFF8000000000000
    assert double.fma_f64(infinity, 0 * infinity[:1] * 0, other).view(np.uint64)[0] >> 51 == 0x1FFF
    assert double.fma_f64(infinity, infinity, -infinity).view(np.uint64)[0] == 0xFFF8000000000000


@pytest.mark.parametrize("kind", KINDS)
def test_extremes(kind: str) -> None:
    """min and max, and with the modifiers of single precision: NaN, ftz and xorsign.abs"""
    a, b = floats(KINDS[kind], COUNT, 11), floats(KINDS[kind], COUNT, 12)
    low, high = operation(f"min.{kind}"), operation(f"max.{kind}")
    compare(low, lambda x, y: extreme(x, y, True), a, b)
    compare(high, lambda x, y: extreme(x, y, False), a, b)
    if kind == "f64":
        return
    compare(partial(low, nan=True), lambda x, y: extreme(x, y, True, True), a, b)
    compare(partial(high, ftz=True), lambda x, y: extreme(flush(x), flush(y), False), a, b)
    numbers = ~(np.isnan(a) | np.isnan(b))
    compare(
        partial(low, xorsign_abs=True),
        lambda x, y: math.copysign(1, x) * math.copysign(1, y) * extreme(abs(x), abs(y), True), a[numbers], b[numbers],
    )  # fmt: skip  # grouped by meaning


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["min", "max"])
def test_a_signalling_nan_loses_at_each_place_of_an_array(name: str, kind: str) -> None:
    """The loops of NumPy treat the elements at an array's end otherwise"""
    bits = {"f32": np.array([0x7F800001], np.uint32), "f64": np.array([0x7FF0000000000001], np.uint64)}[kind]
    for length in (1, 7, 77):
        nans, numbers = np.repeat(bits, length).view(KINDS[kind]), np.full(length, 2, KINDS[kind])
        for operands in ((nans, numbers), (numbers, nans)):
            assert (operation(f"{name}.{kind}")(*operands) == 2).all()


@pytest.mark.parametrize("kind", KINDS)
def test_comparisons(kind: str) -> None:
    """Ordered comparisons are false and unordered ones true with NaN"""
    a, b = floats(KINDS[kind], COUNT, 15), floats(KINDS[kind], COUNT, 16)
    b[::5] = a[::5]
    unordered = np.isnan(a) | np.isnan(b)
    ordered: dict[str, Any] = {"eq": a == b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
    for name, truth in ordered.items():
        assert (getattr(comparisons, name)(a, b) == (truth & ~unordered)).all()
        assert (getattr(comparisons, name + "u")(a, b) == (truth | unordered)).all()
    assert (comparisons.ne(a, b) == ((a != b) & ~unordered)).all()
    assert (comparisons.neu(a, b) == ((a != b) | unordered)).all()
    assert (comparisons.num(a, b) == ~unordered).all()
    assert (comparisons.nan(a, b) == unordered).all()


@pytest.mark.parametrize("kind", KINDS)
def test_classes_and_signs(kind: str) -> None:
    """testp, copysign, abs and neg"""
    a, b = floats(KINDS[kind], COUNT, 17), floats(KINDS[kind], COUNT, 18)
    size = np.abs(a)
    least = np.finfo(a.dtype).smallest_normal
    truths = {
        "finite": size < math.inf, "infinite": size == math.inf, "number": a == a, "notanumber": a != a,
        "normal": (size >= least) & (size < math.inf), "subnormal": (size < least) & (size > 0),
    }  # fmt: skip  # rows of a table
    for name, truth in truths.items():
        result = operation(f"testp.{name}.{kind}")(a)
        assert result.dtype == bool
        assert (result == truth).all()
    integer = f"u{a.dtype.itemsize}"
    sign = np.array(1, integer) << (a.dtype.itemsize * 8 - 1)
    x, y = a.view(integer), b.view(integer)
    assert (operation(f"copysign.{kind}")(a, b).view(integer) == ((x & sign) | (y & ~sign))).all()
    assert (operation(f"abs.{kind}")(a).view(integer) == (x & ~sign)).all()
    assert (operation(f"neg.{kind}")(a).view(integer) == (x ^ sign)).all()

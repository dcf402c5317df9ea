"""Single and double precision in cases that neither the record of a GPU nor the tests of math functions cover.

Those (`tests/conformance`, `tests/math_functions`) cover every rounding of every operation. But they do not compare the
bits of NaNs, and their operands always differ between lanes.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from cudart_py.simulator.ptx.arrays import double
from cudart_py.simulator.ptx.arrays import floats as arrays
from cudart_py.simulator.ptx.arrays.floats import multiply_add_by_power, scratch
from cudart_py.simulator.ptx.compiling.opcode_table.opcodes import ROWS
from tests.simulator.ptx.operations.references import (
    Array,
    assert_same_floats,
    floats,
    ieee_product,
    ieee_quotient,
    ieee_root,
    ieee_sum,
    operation,
)
from tests.simulator.ptx.spellings import spellings

KINDS = {"f32": np.float32, "f64": np.float64}
COUNT = 1000


@pytest.mark.parametrize("kind", KINDS)
def test_fma_with_one_factor_for_all_lanes(kind: str) -> None:
    """The factors include powers of two, and numbers with few bits, with which exact sums are often ties."""
    b, c = floats(KINDS[kind], COUNT // 3, 26), floats(KINDS[kind], COUNT // 3, 27)
    for factor in (0.0, -0.0, 1.0, -2.0, 0.5, 3.0, 2.5, math.inf, math.nan, 2.0**-100, 2.0**127):
        result = operation(f"fma.rn.{kind}")(KINDS[kind](factor), b, c)
        expected = [ieee_sum(factor, x, y, kind) for x, y in zip(b.tolist(), c.tolist(), strict=True)]
        assert_same_floats(result, expected, b, c)


def test_fma_rounds_once_near_the_least_normal_number() -> None:
    """The exact sums do not fit in float64, and rounding to it first would give a tie of subnormal numbers."""
    rng = np.random.default_rng()
    a, b = (rng.integers(1 << 23, 1 << 24, COUNT).astype(np.float32) * np.float32(2.0**-86) for _ in range(2))
    c = (rng.integers(0, 1 << 23, COUNT) + 0.0).astype(np.float32) * np.float32(2.0**-149)
    # Half a unit in the last place above or below c, except for low bits that only the exact product has.
    a[::2], b[::2] = (1 + 2.0**-23) * np.float32(2.0**-75), (1 - 2.0**-23) * np.float32(2.0**-75)
    b[::4] *= -1
    # Half a unit and one unit in the last place of float64, except for even lower bits.
    x, y, count = *_factors_beyond(2**40 + 2**10, 2**40 + 2**11), COUNT // 8
    a[:count], b[:count] = x[:count] * np.float32(2.0**-95), y[:count] * np.float32(2.0**-95)
    c[:count] = np.ldexp(rng.integers(1 << 21, 1 << 22, count) * 2.0, -149)
    result = operation("fma.rn.f32")(a, b, c)
    expected = [ieee_sum(x, y, z, "f32") for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)]
    assert_same_floats(result, expected, a, b, c)


def _factors_beyond(least: int, limit: int) -> tuple[Array, Array]:
    """Return pairs of numbers of 24 bits whose products are from `least` up to but not including `limit`."""
    x = np.random.default_rng().integers(1 << 17, 1 << 20, 1 << 17)
    y = -(-least // x)
    near = x * y < limit
    return x[near].astype(np.float32), y[near].astype(np.float32)


def flush(a: Array) -> Array:
    """Replace subnormal numbers by zeros of their signs."""
    return np.where(np.abs(a) < np.finfo(a.dtype).smallest_normal, a * a.dtype.type(0), a)


def patterns_of(opcode: str) -> Callable[..., Array]:
    """Return the function that an opcode of one type is, on arrays of float32 or float16."""
    function = operation(opcode)
    if opcode.endswith("f32"):
        return function
    return lambda *operands: function(*(x.view(np.uint16) for x in operands)).view(np.float16)


def hard_operands(count: int) -> tuple[Array, Array, Array]:
    """Return double-precision factors and addends whose exact results are near the limits of the format."""
    rng = np.random.default_rng()
    a, b, c = (floats(np.float64, count, seed) for seed in rng.integers(0, 1000, 3))
    # Products near the least and the greatest numbers, and addends that almost cancel them or are far smaller.
    exponents = rng.choice([-1074, -1000, -900, 0, 1000, 1020], count) + rng.integers(0, 30, count)
    split = rng.integers(-40, 40, count) + exponents // 2
    a, b = (
        np.where(rng.integers(0, 4, count) == 0, x, np.ldexp(1 + rng.random(count), part))
        for x, part in ((a, split), (b, exponents - split))
    )
    near = -np.nextafter(a * b, rng.choice([-math.inf, 0, math.inf], count))
    far = np.ldexp(rng.standard_normal(count), exponents + rng.integers(-120, 120, count))
    kind = rng.integers(0, 4, count)
    return a, b, np.select([kind == 0, kind == 1, kind == 2], [near, -(a * b), far], c)


def test_fma_in_double_precision_rounds_once_below_the_least_normal_number() -> None:
    """The sums are just beside the middle between two subnormal numbers, which 53 bits do not show."""
    a = (np.arange(1.0, 65) + 0.5) * 2.0**-537
    b = np.full(64, 2.0**-537)
    for c in (2.0**-1074, -(2.0**-1074), 2.0**-1023):
        for x, y in ((1 + 2.0**-52, 1 - 2.0**-52), (1 + 2.0**-27, 1 - 2.0**-27), (1 + 2.0**-27, 1 + 2.0**-27)):
            expected = [
                ieee_sum(*lane, "f64") for lane in zip((a * x).tolist(), (b * y).tolist(), [c] * 64, strict=True)
            ]
            assert_same_floats(operation("fma.rn.f64")(a * x, b * y, np.full(64, c)), expected, a * x, b * y)


@pytest.mark.parametrize("rounding", ["rz", "rm", "rp"])
def test_double_precision_rounds_once_near_its_limits(rounding: str) -> None:
    a, b, c = hard_operands(COUNT)
    triples = list(zip(a.tolist(), b.tolist(), c.tolist(), strict=True))
    assert_same_floats(
        operation(f"fma.{rounding}.f64")(a, b, c), [ieee_sum(*triple, "f64", rounding) for triple in triples], a, b, c
    )
    for name, reference in (("mul", ieee_product), ("div", ieee_quotient)):
        expected = [reference(x, y, "f64", rounding) for x, y, _ in triples]
        assert_same_floats(operation(f"{name}.{rounding}.f64")(a, b), expected, a, b)
    expected = [ieee_sum(x, 1, z, "f64", rounding) for x, _, z in triples]
    assert_same_floats(operation(f"add.{rounding}.f64")(a, c), expected, a, c)
    assert_same_floats(operation(f"sqrt.{rounding}.f64")(a), [ieee_root(x, "f64", rounding) for x in a.tolist()], a)


@pytest.mark.parametrize(
    "operands",
    [
        # The product is just below half a unit in the last place of the greatest number, and is rounded to the half.
        ((1 - 2.0**-27) * 2.0**485, (1 + 2.0**-27) * 2.0**485, np.finfo(float).max),
        # The product is exact, and a far smaller addend decides directed roundings.
        (2.0**500, 2.0**500, 2.0**-1074),
        (2.0**500, 2.0**500, -(2.0**-1074)),
    ],
)
def test_bits_beyond_double_precision_decide_a_sum(operands: tuple[float, float, float]) -> None:
    a, b, c = np.array(operands)[:, None]
    for rounding in ("rn", "rz", "rm", "rp"):
        for sign in (1, -1):
            expected = ieee_sum(float(sign * a[0]), float(b[0]), float(sign * c[0]), "f64", rounding)
            assert_same_floats(operation(f"fma.{rounding}.f64")(sign * a, b, sign * c), [expected], a, b, c)


def test_only_inexact_ties_are_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(double, "_fma_by_lanes", None)
    monkeypatch.setattr(arrays, "_mend", lambda result, doubtful, *operands: again.append(doubtful.tolist()))
    again: list[list[bool]] = []
    x = np.arange(8.0)
    assert (operation("fma.rn.f64")(x, x + 1, x) == x * (x + 1) + x).all()
    random = np.random.default_rng().standard_normal((3, COUNT))
    # In one lane, the sum of the errors of the product and of the sum has few bits, but is exact.
    random[:, 0] = 1 + 2.0**-30, 1 + 2.0**-30, 2.0**-59
    assert operation("fma.rn.f64")(*random)[0] == 1 + 2.0**-29
    operation("fma.rn.f32")(*random.astype(np.float32))
    assert not again
    operation("fma.rn.f32")(*np.array([[1, 1], [2.0**-25, 2.0**-24], [1, 1]], np.float32))
    assert again == [[False, True]]
    assert multiply_add_by_power(x[3], x, x) is None
    for factor in (x[0], x[4]):
        assert np.array_equal(multiply_add_by_power(factor, x, x), factor * x + x)


def test_work_arrays_of_one_slot_share_their_storage() -> None:
    assert np.shares_memory(scratch.take("test", (4096,)), scratch.take("test", (64, 64)))


@pytest.mark.parametrize("kind", KINDS)
def test_negative_zero_is_the_smaller_one(kind: str) -> None:
    a, b = np.array([[0.0, -0.0, 0.0, -0.0, 1.0], [-0.0, 0.0, 0.0, -0.0, -0.0]], KINDS[kind])
    assert np.signbit(operation(f"min.{kind}")(a, b)).tolist() == [True, True, False, True, True]
    assert np.signbit(operation(f"max.{kind}")(a, b)).tolist() == [False, False, False, True, False]


def test_an_approximate_quotient_of_a_divisor_beyond_2_to_the_126_is_zero_or_nan() -> None:
    """The PTX manual says so of `div.approx.f32`, whose reciprocal would be subnormal; an infinite divisor is exact."""
    for a, divisor, expected in (
        (3, 1.5, 0.0), (-3, 2, -0.0), (2.0**127, -3.9, -0.0), (math.inf, -1.9, math.nan),
        (2.0**127, 1, 2.0), (2.0**127, -1, -2.0), (-3, math.inf, -0.0), (math.inf, -math.inf, math.nan),
    ):  # fmt: skip  # rows of a table
        operands = np.array([[a], [divisor * 2.0**126]], np.float32)
        assert_same_floats(operation("div.approx.f32")(*operands), [expected], *operands)


def test_ftz_flushes_operands_and_results_which_are_kept_without_it() -> None:
    rng = np.random.default_rng()
    forms = [(opcode, form) for row in ROWS for opcode, form in spellings(row) if form and ".ftz." in opcode]
    for opcode, form in forms:
        if not opcode.endswith((".f16", ".f32")) or {*form.operands} != {"=T", "T"}:
            continue
        kind = np.float16 if opcode.endswith(".f16") else np.float32
        # Sums, products and quotients of the normal numbers are exact, or far from the least normal one.
        least = np.finfo(kind).smallest_normal
        numbers = np.concatenate([[0, 0.5, 1.5, 1.25 * least, 1.5 * least], rng.random(5) * least]).astype(kind)
        operands = rng.choice([*numbers, *-numbers], (len(form.operands) - 1, COUNT))
        flushed, kept = patterns_of(opcode), patterns_of(opcode.replace(".ftz", ""))
        assert_same_floats(flushed(*operands), flush(kept(*flush(operands))).tolist(), *operands)
        if opcode.split(".")[0] not in ("cos", "ex2"):  # of subnormal numbers and zeros, these are 1
            assert kept(*operands).tobytes() != flushed(*operands).tobytes(), opcode
    # On an H200, a result that is below the least normal number after rounding to 24 bits is flushed, too.
    assert operation("mul.rn.ftz.f32")(*np.array([[2.0**-126], [1 - 2.0**-24]], np.float32)) == 0


def test_the_high_word_of_an_approximate_reciprocal_is_rounded_to_nearest() -> None:
    """The manual allows twice this error."""
    x = (1 + np.random.default_rng().integers(0, 1 << 20, COUNT) / (1 << 20)) * 2.0**100
    for name, power in (("rcp", 1), ("rsqrt", 2)):
        result = operation(f"{name}.approx.ftz.f64")(x)
        errors = [abs(Fraction(y) ** power * Fraction(z) - 1) for y, z in zip(result.tolist(), x.tolist(), strict=True)]
        assert max(errors) <= power * 2.0**-21 * (1 + 2.0**-20), name


def test_single_precision_nan_is_canonical() -> None:
    a = np.array([math.nan, 1, math.inf, 0], np.float32)
    b = np.array([0x7FC00001, 0xFFC12345, 0xFF800000, 0x7F800001], np.uint32).view(np.float32)
    for name in ("add.rn.f32", "add.rm.f32", "mul.rn.f32", "div.rn.f32", "min.f32", "max.f32"):
        result = operation(name)(a, b)
        assert np.isnan(result[0])
        assert (result.view(np.uint32)[np.isnan(result)] == 0x7FFFFFFF).all(), name


def test_double_precision_nan_keeps_a_payload() -> None:
    """A double-precision NaN result is the first NaN operand, made quiet, or the default NaN."""
    signalling, other = np.array([[0x7FF0000000000123], [0xFFF8000000000456]], np.uint64).view(np.float64)
    infinity = np.array([math.inf])
    for result, expected in (
        (operation("add.rn.f64")(signalling, other), 0x7FF8000000000123),
        (operation("mul.rz.f64")(infinity, other), 0xFFF8000000000456),
        (operation("sub.rm.f64")(infinity, other), 0xFFF8000000000456),
        (operation("sub.rn.f64")(infinity, infinity), 0xFFF8000000000000),
        (operation("fma.rn.f64")(infinity, infinity, -infinity), 0xFFF8000000000000),
    ):
        assert result.view(np.uint64)[0] == expected
    assert operation("fma.rn.f64")(infinity, 0 * infinity[:1] * 0, other).view(np.uint64)[0] >> 51 == 0x1FFF


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["min", "max"])
def test_a_signalling_nan_loses_at_each_place_of_an_array(name: str, kind: str) -> None:
    """NumPy's vectorised loops treat the elements at the end of an array differently."""
    bits = {"f32": np.array([0x7F800001], np.uint32), "f64": np.array([0x7FF0000000000001], np.uint64)}[kind]
    for length in (1, 7, 77):
        nans, numbers = np.repeat(bits, length).view(KINDS[kind]), np.full(length, 2, KINDS[kind])
        for operands in ((nans, numbers), (numbers, nans)):
            assert (operation(f"{name}.{kind}")(*operands) == 2).all()

"""Matrix products equal sums of exact fractions, each truncated 25 bits below the leading bit of the largest.

`tests/launch/test_tensor_cores.py` compares products with those of a GPU.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cudart_py.simulator.ptx.arrays.floats import NAN_F32
from cudart_py.simulator.ptx.operations.matrices import Fragment, from_registers, multiply, product
from tests.simulator.ptx.operations.references import bits_of, round_exact

SMALL = [2.0**-13] * 7


def patterns(kind: str, numbers: Any) -> NDArray[Any]:
    """Return the patterns of numbers that are exact in a type."""
    if kind == "f16":
        return np.array(numbers, np.float16).view(np.uint16)
    single = np.array(numbers, np.float32).view(np.uint32)
    return single if kind == "tf32" else (single >> 16).astype(np.uint16)


# The exponents of bf16 and tf32 also hold the products scaled by this power of two, for which the rules are the same.
@pytest.mark.parametrize(("kind", "power"), [("f16", 0), ("bf16", 0), ("bf16", -100), ("tf32", 0), ("tf32", -100)])
@pytest.mark.parametrize(
    ("left", "right", "start", "expected"),
    [
        # Small products are truncated one by one, although their sum would change the last bit.
        ([1.0, *SMALL], [1.0, *SMALL], 0.0, 1.0),
        ([1.0, *SMALL], [0.25, *SMALL], 0.0, 0.25 + 7 * 2.0**-26 - 2.0**-26),
        # Large products truncate the small ones even if the large ones cancel.
        ([2.0**12, 1.0, 2.0**12], [2.0**12, 1.0, -(2.0**12)], 0.5, 1.5),
        ([2.0**14, 2.0**-1, 2.0**14], [2.0**12, 2.0**-1, -(2.0**12)], 0.0, 0.0),
        ([2.0**14, 2.0**-1, 2.0**14], [2.0**12, 2.0**-1, -(2.0**12)], -0.25, 0.0),
        ([np.inf, 1], [0.0, 1], 1.0, NAN_F32),
        ([np.inf, 1], [-2.0, 1], 1.0, -np.inf),
        ([np.inf, 1], [-2.0, 1], np.inf, NAN_F32),
        ([0.0, 0.0], [3.0, 0.0], 0.0, 0.0),
        ([0.0, 0.0], [-3.0, -1.0], -0.0, -0.0),
        ([0.0, 0.0], [-3.0, 1.0], -0.0, 0.0),
    ],
)
def test_a_sum_has_the_hardwares_bits(
    left: list[float], right: list[float], start: float, expected: float, kind: str, power: int
) -> None:
    a, b = (patterns(kind, np.ldexp([vector], power // 2)) for vector in (left, right))
    c, total = np.ldexp(np.float32([start, expected]), power)
    with np.errstate(all="ignore"):
        [[[found]]] = product(("f32", kind, kind, "f32"), a[None], b[:, :, None], c[None, None, None])
    assert found.view(np.uint32) == total.view(np.uint32)


def one_addition(left: Sequence[Any], right: Sequence[Any], start: Any, kind: str) -> float:
    """Add `start` and exact products, each truncated 25 bits below the leading bit of the largest, and round once."""
    leading = [math.frexp(x)[1] + math.frexp(y)[1] - 1 for x, y in zip(left, right, strict=True) if x and y]
    last = Fraction(2) ** (max([*leading, *[math.frexp(start)[1]] * (start != 0)], default=0) - 26)
    terms = [Fraction(start), *(Fraction(x) * Fraction(y) for x, y in zip(left, right, strict=True))]
    return round_exact(sum(math.trunc(term / last) for term in terms) * last, kind, "rz" if kind == "f32" else "rn")


def by_pairs(left: Sequence[Any], right: Sequence[Any], start: Any, kind: str) -> float:
    """Add products of 8-bit floats: the first two of every four, then the other two, and finally `start`."""
    total = 0.0
    for first in (0, 2):
        chosen = [place for place in range(len(left)) if place % 4 in (first, first + 1)]
        total = one_addition([left[place] for place in chosen], [right[place] for place in chosen], total, kind)
    return round_exact(Fraction(total) + Fraction(start), kind, "rn")


# By type: the bits of the exponent and of the fraction.
FORMATS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "e4m3": (4, 3), "e5m2": (5, 2)}


def drawn(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw numbers of a type, a tenth of them zeros; return their patterns and the numbers."""
    exponents, fraction = FORMATS[kind]
    bias = (1 << exponents - 1) - 1
    exponent = rng.integers(max(1, bias - 12), min((1 << exponents) - 2, bias + 6), shape)
    bits, sign = rng.integers(0, 1 << fraction, shape), rng.integers(0, 2, shape)
    zero = rng.random(shape) < 0.1
    numbers = np.where(zero, 0, (-1.0) ** sign * (1 + bits / (1 << fraction)) * 2.0 ** (exponent - bias))
    patterns = np.where(zero, 0, sign << exponents + fraction | exponent << fraction | bits)
    if kind == "tf32":
        # The hardware ignores the 13 bits below the fraction.
        return (patterns << 13 | rng.integers(0, 1 << 13, shape)).astype(np.uint32), numbers
    return patterns.astype(f"u{-(-(1 + exponents + fraction) // 8)}"), numbers


@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize("factor", FORMATS)
def test_products_of_many_warps_are_those_of_exact_fractions(factor: str, kind: str, rng: np.random.Generator) -> None:
    (a, left), (b, right) = drawn(rng, factor, (130, 1, 8)), drawn(rng, factor, (130, 8, 2))
    c = rng.normal(0, 2.0 ** rng.integers(-6, 6, (130, 1, 2))).astype(np.float32 if kind == "f32" else np.float16)
    with np.errstate(all="ignore"):
        found = product((kind, factor, factor, kind), a, b, c if kind == "f32" else c.view(np.uint16))
    assert found.shape == c.shape
    reference = by_pairs if factor in ("e4m3", "e5m2") else one_addition
    for warp, row, column in np.ndindex(c.shape):
        expected = reference(
            left[warp, row].tolist(), right[warp, :, column].tolist(), float(c[warp, row, column]), kind
        )
        got = found[warp, row, column]
        assert (float(got) == expected) if kind == "f32" else (int(got) == bits_of(expected, kind)), (warp, row, column)


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_doubles_are_added_one_by_one(rounding: str) -> None:
    """Each product is exact, and each sum is rounded."""
    (left, right), start = np.random.default_rng(9).normal(0, 1, (2, 8)), 0.75
    fragments = [Fragment("f64", 16, 8, 4, 1), Fragment("f64", 8, 8, 2, 1, True), Fragment("f64", 16, 8, 4, 2)]
    # All rows of the left matrix are the same, and all columns of the right one.
    a, b = ([vector[first + np.arange(32) % 4] for first in (0, 4)] for vector in (left, right))
    sums = [np.full(32, start)] * 4
    found = multiply((fragments[2], *fragments), [[a[0], a[0], a[1], a[1]], b, sums], rounding=rounding)
    for x, y in zip(left.tolist(), right.tolist(), strict=True):
        start = round_exact(Fraction(start) + Fraction(x) * Fraction(y), "f64", rounding)
    assert (from_registers(found, "f64") == start).all()

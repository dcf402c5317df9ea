"""Sums of products of narrow numbers are cut off 25 places behind the greatest product, and rounded once."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.floats.exact import NAN_F32
from cudart_py.simulator.ptx.operations.tensor_sums import add_bytes, add_products
from tests.simulator.ptx.operations.references import Array


def added(terms: list[tuple[float, float]], start: float, kind: str) -> float:
    """Return the sum of products and a number, by exact arithmetic."""
    exact = [Fraction(x) * Fraction(y) for x, y in terms if x and y]
    places = [math.frexp(x)[1] + math.frexp(y)[1] - 2 for x, y in terms if x and y]
    if start:
        exact.append(Fraction(start))
        places.append(math.frexp(start)[1] - 1)
    unit = Fraction(2) ** (max(places, default=0) - 25)
    total = float(sum(math.trunc(term / unit) for term in exact) * unit)
    if kind == "f16":
        return float(np.float16(total))
    nearest = np.float32(total)
    return float(nearest if abs(float(nearest)) <= abs(total) else np.nextafter(nearest, np.float32(0)))


def numbers(kind: str, result: Array) -> Array:
    return result.view(np.float16) if kind == "f16" else result


@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize("spread", [0, 4, 14])
def test_sums_are_those_of_exact_arithmetic(kind: str, spread: int, rng: np.random.Generator) -> None:
    """`spread` is the range of the exponents, so that places are cut off of few products or of many."""
    a, b, c = (
        (rng.normal(0, 1, shape) * 2.0 ** rng.integers(-spread // 2, spread // 2 + 1, shape)).astype(np.float16)
        for shape in ((3, 16, 8), (3, 8, 8), (3, 16, 8))
    )
    a[0, :, 3] = 0
    a[1, 5], c[1, 5] = 0, 0
    a, b, c = (x.astype(np.float64) for x in (a, b, c * (1 + 2.0**-12 * (kind == "f32"))))
    found = numbers(kind, add_products(a, b, c, kind))
    for warp, row, column in np.ndindex(found.shape):
        terms = list(zip(a[warp, row].tolist(), b[warp, :, column].tolist(), strict=True))
        assert found[warp, row, column] == added(terms, float(c[warp, row, column]), kind)


def row(left: list[float], right: list[float], start: float, kind: str = "f32") -> Any:
    """Return the one element that a row times a column and a number make."""
    [[[found]]] = add_products(np.array([[left]]), np.array([right])[:, :, None], np.array([[[start]]]), kind)
    return found


def test_small_products_are_cut_off_one_by_one() -> None:
    """Together they would reach the last place."""
    small = 2.0**-13
    assert row([1.0] + [small] * 7, [1.0] + [small] * 7, 0.0) == 1
    assert row([1.0] + [small] * 7, [0.25] + [small] * 7, 0.0) == np.float32(0.25 + 7 * small**2 - 2.0**-26)


def test_great_products_that_cancel_leave_the_places_of_small_ones() -> None:
    assert row([2.0**12, 1.0, 2.0**12, 0.0], [2.0**12, 1.0, -(2.0**12), 0.0], 0.5) == 1.5
    assert row([2.0**14, 2.0**-1, 2.0**14], [2.0**12, 2.0**-1, -(2.0**12)], 0.0) == 0


def test_nan_and_infinity_are_the_hardwares() -> None:
    assert row([np.inf, 1], [0.0, 1], 1.0).view(np.uint32) == NAN_F32.view(np.uint32)
    assert row([np.inf, 1], [-2.0, 1], 1.0) == -np.inf
    assert row([np.inf, 1], [-2.0, 1], np.inf).view(np.uint32) == NAN_F32.view(np.uint32)
    assert row([0.0, 0.0], [3.0, 0.0], 0.0) == 0


@pytest.mark.parametrize(
    ("left", "start", "expected"),
    [
        # Each addition is a tie, which goes to the even number: 1.
        ([1.0, 0.0, 2.0**-11, 0.0], 2.0**-11, 1.0),
        ([2.0**-11, 2.0**-11, 1.0, 0.0], 0.0, 1 + 2.0**-10),
        ([1.0, 2.0**-11, 2.0**-11, 0.0], 0.0, 1.0),
    ],
)
def test_bytes_are_added_in_two_halves_and_the_start_last(left: list[float], start: float, expected: float) -> None:
    [[[found]]] = add_bytes(np.array([[left]]), np.ones((1, 4, 1)), np.array([[[start]]]), "f16")
    assert found == np.float16(expected).view(np.uint16)

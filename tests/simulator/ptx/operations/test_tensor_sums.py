"""Sums of products of narrow numbers are cut off 25 places behind the greatest product, and rounded once.

The sums of a GPU, of bytes too, are those of `tests/launch/test_tensor_cores.py`.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.floats.exact import NAN_F32
from cudart_py.simulator.ptx.operations.tensor_sums import add_products


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
    # Great products that cancel leave the places of small ones cut off.
    a[2, :, 0], a[2, :, 1], b[2, 0], b[2, 1] = 2.0**12, 2.0**12, 2.0**12, -(2.0**12)
    a, b, c = (x.astype(np.float64) for x in (a, b, c * (1 + 2.0**-12 * (kind == "f32"))))
    found = add_products(a, b, c, kind).view(np.float16 if kind == "f16" else np.float32)
    for warp, row, column in np.ndindex(found.shape):
        terms = list(zip(a[warp, row].tolist(), b[warp, :, column].tolist(), strict=True))
        assert found[warp, row, column] == added(terms, float(c[warp, row, column]), kind)


@pytest.mark.parametrize(
    ("left", "right", "start", "expected"),
    [
        ([np.inf, 1], [0.0, 1], 1.0, NAN_F32),
        ([np.inf, 1], [-2.0, 1], 1.0, -np.inf),
        ([np.inf, 1], [-2.0, 1], np.inf, NAN_F32),
        ([0.0, 0.0], [3.0, 0.0], 0.0, 0.0),
    ],
)
def test_nan_and_infinity_are_the_hardwares(
    left: list[float], right: list[float], start: float, expected: float
) -> None:
    [[[found]]] = add_products(np.array([[left]]), np.array([right])[:, :, None], np.array([[[start]]]), "f32")
    assert found.view(np.uint32) == np.float32(expected).view(np.uint32)

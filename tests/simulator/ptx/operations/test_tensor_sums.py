"""Sums of products of narrow floats truncate each product 25 bits below the greatest; infinities give the GPU's NaN.

`tests/launch/test_tensor_cores.py` compares sums with those of a GPU, including sums of 8-bit floats.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx.arrays.floats import NAN_F32
from cudart_py.simulator.ptx.operations.tensor_sums import add_bytes, add_products
from tests.simulator.ptx.operations.references import bits_of, round_exact

SMALL = [2.0**-13] * 7


@pytest.mark.parametrize(
    ("left", "right", "start", "expected"),
    [
        # Small products are truncated one by one, although their sum would change the last bit.
        ([1.0, *SMALL], [1.0, *SMALL], 0.0, 1.0),
        ([1.0, *SMALL], [0.25, *SMALL], 0.0, 0.25 + 7 * 2.0**-26 - 2.0**-26),
        # Large products truncate the small ones even if the large ones cancel.
        ([2.0**12, 1.0, 2.0**12], [2.0**12, 1.0, -(2.0**12)], 0.5, 1.5),
        ([2.0**14, 2.0**-1, 2.0**14], [2.0**12, 2.0**-1, -(2.0**12)], 0.0, 0.0),
        ([np.inf, 1], [0.0, 1], 1.0, NAN_F32),
        ([np.inf, 1], [-2.0, 1], 1.0, -np.inf),
        ([np.inf, 1], [-2.0, 1], np.inf, NAN_F32),
        ([0.0, 0.0], [3.0, 0.0], 0.0, 0.0),
    ],
)
def test_a_sum_has_the_hardwares_bits(left: list[float], right: list[float], start: float, expected: float) -> None:
    [[[found]]] = add_products(np.array([[left]]), np.array([right])[:, :, None], np.array([[[start]]]), "f32")
    assert found.view(np.uint32) == np.float32(expected).view(np.uint32)


def one_addition(left: Sequence[float], right: Sequence[float], start: float, kind: str) -> float:
    """Add exact products to a number, each truncated 25 bits below the greatest, and round the sum once."""
    leading = [math.frexp(x)[1] + math.frexp(y)[1] - 1 for x, y in zip(left, right, strict=True) if x and y]
    last = Fraction(2) ** (max([*leading, *[math.frexp(start)[1]] * (start != 0)], default=0) - 26)
    terms = [Fraction(start), *(Fraction(x) * Fraction(y) for x, y in zip(left, right, strict=True))]
    return round_exact(sum(math.trunc(term / last) for term in terms) * last, kind, "rz" if kind == "f32" else "rn")


def by_pairs(left: Sequence[float], right: Sequence[float], start: float, kind: str) -> float:
    """Add products of 8-bit floats: the first two of every four, then the other two, and finally the number."""
    total = 0.0
    for first in (0, 2):
        chosen = [place for place in range(len(left)) if place % 4 in (first, first + 1)]
        total = one_addition([left[place] for place in chosen], [right[place] for place in chosen], total, kind)
    return round_exact(Fraction(total) + Fraction(start), kind, "rn")


@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize(("add", "reference"), [(add_products, one_addition), (add_bytes, by_pairs)])
def test_sums_of_many_warps_are_those_of_exact_fractions(add: Any, reference: Any, kind: str) -> None:
    rng = np.random.default_rng(11)

    def numbers(*shape: int) -> Any:
        return rng.integers(-1023, 1024, shape) * 2.0 ** rng.integers(-20, -4, shape)

    a, b, c = numbers(130, 1, 8), numbers(130, 8, 2), numbers(130, 1, 2) / 64
    found = add(a, b, c, kind)
    assert found.shape == c.shape
    for warp, row, column in np.ndindex(c.shape):
        expected = reference(a[warp, row].tolist(), b[warp, :, column].tolist(), float(c[warp, row, column]), kind)
        got = found[warp, row, column]
        assert (float(got) == expected) if kind == "f32" else (int(got) == bits_of(expected, kind)), (warp, row, column)

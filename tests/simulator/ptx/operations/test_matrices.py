"""Matrix products of doubles round once after each product, in the given direction.

`tests/launch/test_tensor_cores.py` compares products of all shapes and types with those of a GPU.
"""

from fractions import Fraction

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.matrices import Fragment, from_registers, multiply
from tests.simulator.ptx.operations.references import round_exact


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

"""Products of doubles are rounded once for each product, and infinities make the hardware's NaN.

The products of a GPU, in all shapes and types, are those of `tests/launch/test_tensor_cores.py`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.floats.exact import NAN_F32
from cudart_py.simulator.ptx.operations.matrices import Fragment, from_registers, multiply
from tests.simulator.ptx.operations.references import Array, round_exact


def product(kind: str, factor: str, left: Array, right: Array, start: float, **modifiers: str) -> Array:
    """Return the elements of a product all of whose rows, columns and first sums are the same."""
    depth = len(left)
    a = Fragment(factor, 16, depth, depth // 2, 1)
    b = Fragment(factor, depth, 8, depth // 4, 1, True)
    total = Fragment(kind, 16, 8, 4, 2)
    lanes = np.arange(32) % 4
    places = [4 * number + lanes for number in range(depth // 4)]
    registers = [left[place] for place in places for _ in range(2)], [right[place] for place in places]
    sums = [np.full(32, start, f"f{int(kind[1:]) // 8}")] * 4
    return from_registers(multiply((total, a, b, total), [*registers, sums], **modifiers), kind)


def test_a_nan_is_the_hardwares() -> None:
    left, right = np.array([[np.inf, 1, 1, 1], [0, 1, 1, 1]], np.float32).view(np.uint32)
    assert (product("f32", "tf32", left, right, 1.0).view(np.uint32) == NAN_F32.view(np.uint32)).all()


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_doubles_are_added_one_by_one(rounding: str) -> None:
    """Each product is exact, and each sum is rounded."""
    (left, right), start = np.random.default_rng(9).normal(0, 1, (2, 8)), 0.75
    found = product("f64", "f64", left, right, start, rounding=rounding)
    for x, y in zip(left.tolist(), right.tolist(), strict=True):
        start = round_exact(Fraction(start) + Fraction(x) * Fraction(y), "f64", rounding)
    assert (found == start).all()

"""Products of matrices find their elements in the registers; doubles are rounded once for each product."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.floats.exact import NAN_F32
from cudart_py.simulator.ptx.operations.matrices import Fragment, from_registers, multiply
from tests.simulator.ptx.operations.references import Array, round_exact


def product(kind: str, factor: str, depth: int, a: Array, b: Array, c: Array, side: int, **modifiers: Any) -> Array:
    """Return the elements of d."""
    left = Fragment(factor, 16, depth, 16 * depth // 32, side)
    right = Fragment(factor, depth, 8, 8 * depth // 32, side, True)
    # The sum and the product have 16 x 8 elements.
    total = Fragment(kind, 16, 8, 4, 2)
    found = multiply((total, left, right, total), [list(x) for x in (a, b, c)], **modifiers)
    return from_registers(found, kind)


def single_row(left: list[float], right: list[float], start: float, kind: str, factor: str, **modifiers: Any) -> Any:
    """Return ``start + left . right`` as a product computes it, in all of its elements."""
    depth = len(left)
    bits = {"tf32": np.float32, "f64": np.float64}[factor]
    lane = np.arange(32) % 4
    a = [np.array(left, bits)[4 * number + lane] for number in range(depth // 4) for _ in range(2)]
    b = [np.array(right, bits)[4 * number + lane] for number in range(depth // 4)]
    if factor == "tf32":
        a, b = ([x.view(np.uint32) for x in each] for each in (a, b))
    c = [np.full(32, start, np.float32 if kind == "f32" else np.float64)] * 4
    elements = product(kind, factor, depth, np.array(a), np.array(b), np.array(c), 1, **modifiers)
    assert (elements.view(f"u{elements.itemsize}") == elements.view(f"u{elements.itemsize}").flat[0]).all()
    return elements.flat[0]


def test_the_low_bits_of_tf32_are_ignored() -> None:
    noisy = np.array([1.5, -2.5, 3.0, 1.0], np.float32)
    cut = (noisy.view(np.uint32) | np.uint32(0x1FFF)).view(np.float32)
    exact = float(noisy.astype(np.float64) @ noisy.astype(np.float64))
    assert single_row(cut.tolist(), cut.tolist(), 0.0, "f32", "tf32") == exact


def test_a_nan_is_the_hardwares() -> None:
    found = single_row([np.inf, 1, 1, 1], [0.0, 1, 1, 1], 1.0, "f32", "tf32")
    assert found.view(np.uint32) == NAN_F32.view(np.uint32)


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_doubles_are_added_one_by_one(rounding: str) -> None:
    """Each product is exact, and each sum is rounded."""
    generator = np.random.default_rng(9)
    left, right, start = generator.normal(0, 1, 8), generator.normal(0, 1, 8), 0.75
    found = single_row(left.tolist(), right.tolist(), start, "f64", "f64", rounding=rounding)
    for x, y in zip(left.tolist(), right.tolist(), strict=True):
        start = round_exact(Fraction(start) + Fraction(x) * Fraction(y), "f64", rounding)
    assert found == start


@pytest.mark.parametrize(("satfinite", "expected"), [(False, -(2**31) + 15 * 127 * 127 - 1), (True, 2**31 - 1)])
def test_integers_wrap_or_saturate(satfinite: bool, expected: int) -> None:
    words = np.full((2, 32), 0x7F7F7F7F, np.uint32)
    start = np.full((4, 32), 2**31 - 1 - 127 * 127, np.int32)
    assert (product("s32", "s8", 16, words, words[:1], start, 4, satfinite=satfinite) == expected).all()

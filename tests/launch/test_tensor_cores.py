"""Inline mma.sync multiplies the fragments that the PTX manual describes, in each shape and type."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

import cudart_py as cuda
from tests.launch.matrix_products import (
    RECORDED,
    SPELLINGS,
    Array,
    Layout,
    compiled,
    extents,
    layouts_of,
    multiplied,
    patterns,
)

# Two roundings of the sum apart, numbers of these formats differ by this fraction.
STEP = {"f16": 2.0**-10, "f32": 2.0**-23, "f64": 2.0**-52}


@pytest.fixture(scope="module")
def module() -> cuda.Module:
    with cuda.Device(0) as device:
        if device.compute_capability < (9, 0):
            pytest.skip("some of the shapes need compute capability 9.0")
        return compiled()


def product(a: Sequence[Fraction], b: Sequence[Fraction], c: Sequence[Fraction], extent: tuple[int, int, int]) -> Array:
    """Return the exact sums, and the sums of sizes, of matrices by rows: an array of the shape (2, m, n)."""
    m, n, k = extent
    left, right = np.array(a, object).reshape(m, k), np.array(b, object).reshape(k, n)
    start = np.array(c, object).reshape(m, n)
    return np.array([left @ right + start, abs(left) @ abs(right) + abs(start)], object)


def is_right(module: cuda.Module, rng: np.random.Generator, spelling: str, layouts: list[Layout]) -> bool:
    """Return whether a kernel's product is that of random matrices which are laid out so."""
    m, n, k = extents(spelling)
    kind, left, right, start = spelling.split(".")[-4:]
    (a, exact_a), (b, exact_b) = patterns(rng, left, m * k), patterns(rng, right, k * n)
    c, exact_c = patterns(rng, start, m * n)
    matrices = a.reshape(m, k), b.reshape(k, n).T, c.reshape(m, n)
    found = multiplied(module, spelling, layouts, matrices)
    exact, sizes = product(exact_a, exact_b, exact_c, (m, n, k))
    if kind == "s32":
        low, high = -(2**31), 2**31 - 1
        expected = np.clip(exact, low, high) if "satfinite" in spelling else (exact - low) % 2**32 + low
        return bool((found == expected).all())
    # The hardware may round, or cut off, once for each product.
    step = STEP[kind]
    error = np.abs(np.array([Fraction(float(x)) for x in found.flat], object).reshape(m, n) - exact)
    return bool((error <= (k + 1) * Fraction(step) * sizes).all())


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_product_is_that_of_the_matrices(
    device: cuda.Device, module: cuda.Module, rng: np.random.Generator, spelling: str
) -> None:
    assert is_right(module, rng, spelling, layouts_of(spelling))


@pytest.mark.parametrize("matrix", [0, 1, 2])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_another_layout_is_not_right(
    device: cuda.Device, module: cuda.Module, rng: np.random.Generator, spelling: str, matrix: int
) -> None:
    """The bound of the test above is narrow enough to notice columns, or rows of b, that are counted from the end."""
    layouts = layouts_of(spelling)
    layouts[matrix] = layouts[matrix]._replace(side=-layouts[matrix].side)
    assert not is_right(module, rng, spelling, layouts)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_product_has_the_bits_of_an_h200(device: cuda.Device, module: cuda.Module, spelling: str) -> None:
    if device.compute_capability != (9, 0):
        pytest.skip("how tensor cores round is each compute capability's own")
    with np.load(RECORDED) as recorded:
        *given, expected = (recorded[f"{spelling} {name}"] for name in "abcd")
    for *matrices, sums in zip(*given, expected, strict=True):
        np.testing.assert_array_equal(multiplied(module, spelling, layouts_of(spelling), matrices), sums)

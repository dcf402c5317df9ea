"""Inline mma.sync multiplies the fragments that the PTX manual describes, in each shape and type, as an H200 does."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from tests.launch.matrix_products import RECORDED, SPELLINGS, compiled, multiplied


@pytest.fixture(scope="module")
def module() -> cuda.Module:
    with cuda.Device(0) as device:
        if device.compute_capability != (9, 0):
            pytest.skip("how tensor cores round is each compute capability's own")
        return compiled()


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_product_has_the_bits_of_an_h200(device: cuda.Device, module: cuda.Module, spelling: str) -> None:
    with np.load(RECORDED) as recorded:
        *given, expected = (recorded[f"{spelling} {name}"] for name in "abcd")
    for *registers, sums in zip(*given, expected, strict=True):
        np.testing.assert_array_equal(multiplied(module, spelling, registers), sums)

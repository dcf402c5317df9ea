"""Sums of products of narrow numbers are cut off 25 places behind the greatest product; infinities make the GPU's NaN.

The sums of a GPU, of bytes too, are those of `tests/launch/test_tensor_cores.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.floats.exact import NAN_F32
from cudart_py.simulator.ptx.operations.tensor_sums import add_products

SMALL = [2.0**-13] * 7


@pytest.mark.parametrize(
    ("left", "right", "start", "expected"),
    [
        # Small products are cut off one by one: together they would reach the last place.
        ([1.0, *SMALL], [1.0, *SMALL], 0.0, 1.0),
        ([1.0, *SMALL], [0.25, *SMALL], 0.0, 0.25 + 7 * 2.0**-26 - 2.0**-26),
        # Great products that cancel leave the places of small ones cut off.
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

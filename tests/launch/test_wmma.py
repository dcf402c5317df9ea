"""The wmma products of integers, tf32, bf16 and doubles are those of NumPy, for numbers whose sums are exact."""

from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda

pytestmark = pytest.mark.needs("sm_80")  # which has wmma of tf32, bf16 and doubles

KERNELS = Path(__file__).with_name("wmma_products.cu")
# The type of the elements of a and b, and of the sums, and the limits of the elements that are drawn.
TYPES = {
    "s8": (np.int8, np.int32, -128, 128), "u8": (np.uint8, np.int32, 0, 256), "tf32": (np.float32, np.float32, -99, 99),
    "bf16": (np.uint16, np.float32, -99, 99), "f64": (np.float64, np.float64, -(2**20), 2**20),
}  # fmt: skip  # rows of a table
SHAPES = ["s8_16x16x16", "s8_32x8x16", "u8_8x32x16", "u8_32x8x16", "tf32_16x16x8", "f64_8x8x4", "bf16_32x8x16"]


def padded(matrix, by_columns, stride, dtype):
    """Return the elements of a matrix in memory, with unused elements after each row or column."""
    lines = matrix.T if by_columns else matrix
    whole = np.full((len(lines), stride), 99, dtype)
    if dtype == np.uint16:
        lines = lines.astype(np.float32).view(np.uint32) >> 16
    whole[:, : lines.shape[1]] = lines
    return cuda.to_device(whole)


@pytest.mark.parametrize("order", ["rows", "columns"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_product_is_numpys(device, kernels, rng, name, order):
    kind, _, shape = name.partition("_")
    dtype, sums, low, high = TYPES[kind]
    rows, columns, depth = map(int, shape.split("x"))
    a, b = (rng.integers(low, high, size) for size in ((rows, depth), (depth, columns)))
    c = rng.integers(-(2**16), 2**16, (rows, columns))
    by_columns = order == "columns"
    lda, ldb, ldc = 32 + 16 * (rows > 16), 48, 36
    out = padded(np.zeros_like(c), True, ldc, sums)
    given = padded(c, True, ldc, sums), padded(a, by_columns, lda, dtype), padded(b, not by_columns, ldb, dtype)
    kernels[f"{name}_{order}"][1, 32](out, *given, lda, ldb, ldc)
    found = out.to_host()
    np.testing.assert_array_equal(found[:, :rows].T, (a @ b + c).astype(sums))
    assert (found[:, rows:] == 99).all()

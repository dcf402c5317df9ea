"""ldmatrix, stmatrix and movmatrix move the elements that the PTX manual names, and serve a product of matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cudart_py as cuda

SOURCE = Path(__file__).with_name("tensor_cores.cu")
LANES = np.arange(32)


@pytest.fixture(scope="module")
def module() -> cuda.Module:
    with cuda.Device(0) as device:
        if device.compute_capability < (9, 0):
            pytest.skip("stmatrix needs compute capability 9.0")
        return cuda.compile(SOURCE)


def lanes_of(matrix: NDArray[Any], transposed: bool) -> NDArray[Any]:
    """Return what each lane holds of a matrix of 8 x 8: neighbours of row ``lane // 4``, of a column if transposed."""
    upright = matrix.T if transposed else matrix
    return np.array([[upright[lane // 4, lane % 4 * 2 + k] for k in range(2)] for lane in LANES])


def rows_of_lanes(rng: np.random.Generator, count: int) -> NDArray[np.int32]:
    """Draw the row of 64 that each lane names: no two the same; those of lanes that don't count are no rows at all."""
    rows = rng.permutation(64)[:32].astype(np.int32)
    rows[8 * count :] = rng.integers(1 << 20, 1 << 24, 32 - 8 * count)
    return rows


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_rows_are_loaded(
    device: cuda.Device, module: cuda.Module, rng: np.random.Generator, count: int, transposed: bool
) -> None:
    tile = rng.permutation(65536)[:512].astype(np.uint16).reshape(64, 8)
    rows = rows_of_lanes(rng, count)
    out = cuda.zeros((32, count), np.uint32)
    kernel = module[f"load_{count}{'_transposed' if transposed else ''}"]
    kernel[1, 32](out, cuda.to_device(tile), cuda.to_device(rows))
    found = out.to_host().view(np.uint16).reshape(32, count, 2)
    for number in range(count):
        matrix = tile[rows[8 * number : 8 * number + 8]]
        np.testing.assert_array_equal(found[:, number], lanes_of(matrix, transposed))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_rows_are_stored(
    device: cuda.Device, module: cuda.Module, rng: np.random.Generator, count: int, transposed: bool
) -> None:
    matrices = (1 + rng.permutation(65535)[: 64 * count]).astype(np.uint16).reshape(count, 8, 8)
    registers = np.stack([lanes_of(matrix, transposed) for matrix in matrices], axis=1).astype(np.uint16)
    rows = rows_of_lanes(rng, count)
    out = cuda.zeros((64, 8), np.uint16)
    kernel = module[f"store_{count}{'_transposed' if transposed else ''}"]
    kernel[1, 32](out, cuda.to_device(registers.view(np.uint32)), cuda.to_device(rows))
    expected = np.zeros((64, 8), np.uint16)
    expected[rows[: 8 * count]] = matrices.reshape(-1, 8)
    np.testing.assert_array_equal(out.to_host(), expected)


def test_a_matrix_is_transposed_in_registers(
    device: cuda.Device, module: cuda.Module, rng: np.random.Generator
) -> None:
    matrix = rng.permutation(65536)[:64].astype(np.uint16).reshape(8, 8)
    out = cuda.zeros(32, np.uint32)
    module["move"][1, 32](out, cuda.to_device(lanes_of(matrix, False).view(np.uint32)))
    np.testing.assert_array_equal(out.to_host().view(np.uint16).reshape(32, 2), lanes_of(matrix, True))


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 32), (75, 104, 88), (1, 8, 8), (130, 72, 200)])
def test_a_tiled_product_is_right(
    device: cuda.Device, module: cuda.Module, rng: np.random.Generator, m: int, n: int, k: int
) -> None:
    a, b = rng.uniform(-1, 1, (m, k)).astype(np.float16), rng.uniform(-1, 1, (k, n)).astype(np.float16)
    out = cuda.full((m, n), np.float16(99), np.float16)
    grid = -(-n // 64), -(-m // 64)
    module["product"][grid, 128](out, cuda.to_device(a), cuda.to_device(b), m, n, k)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    sizes = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    # Each product is added in single precision, perhaps cut off. The sum is rounded to a half; its least step is 2^-24.
    bound = (k + 1) * 2.0**-23 * sizes
    bound += np.maximum(2.0**-11 * (np.abs(exact) + bound), 2.0**-25)
    assert (np.abs(out.to_host() - exact) <= bound).all()

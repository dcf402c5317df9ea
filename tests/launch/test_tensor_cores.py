"""Inline mma.sync gives an H200's results; ldmatrix, stmatrix and movmatrix move elements as the PTX ISA says."""

from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from tests.launch.matrix_products import RECORDED, SPELLINGS, compiled, multiplied

KERNELS = Path(__file__).with_name("tensor_cores.cu")


@pytest.fixture(scope="module")
def module():
    with cuda.Device(0):
        return compiled()


@pytest.mark.needs("sm_90a")  # how tensor cores round is each compute capability's own
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_product_has_the_bits_of_an_h200(device, module, spelling):
    with np.load(RECORDED) as recorded:
        *given, expected = (recorded[f"{spelling} {name}"] for name in "abcd")
    for *registers, sums in zip(*given, expected, strict=True):
        np.testing.assert_array_equal(multiplied(module, spelling, registers), sums)


def lanes_of(matrix, transposed):
    """Return the two elements per lane of an 8 x 8 matrix: neighbours in row ``lane // 4``, or column if transposed."""
    upright = matrix.T if transposed else matrix
    return np.array([[upright[lane // 4, lane % 4 * 2 + k] for k in range(2)] for lane in range(32)])


def rows_of_lanes(rng, count):
    """Draw the row, out of 64, that each lane addresses, without repetition; unused lanes get invalid rows."""
    rows = rng.permutation(64)[:32].astype(np.int32)
    rows[8 * count :] = rng.integers(1 << 20, 1 << 24, 32 - 8 * count)
    return rows


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_rows_are_loaded_and_stored(device, kernels, rng, count, transposed):
    rows, end = rows_of_lanes(rng, count), "_transposed" if transposed else ""
    tile = rng.permutation(65536)[:512].astype(np.uint16).reshape(64, 8)
    matrices = tile[rows[: 8 * count]].reshape(count, 8, 8)
    registers = np.stack([lanes_of(matrix, transposed) for matrix in matrices], axis=1).astype(np.uint16)
    loaded = cuda.zeros((32, count), np.uint32)
    kernels[f"load_{count}{end}"][1, 32](loaded, cuda.to_device(tile), cuda.to_device(rows))
    np.testing.assert_array_equal(loaded.to_host().view(np.uint16).reshape(registers.shape), registers)
    stored = cuda.zeros((64, 8), np.uint16)
    kernels[f"store_{count}{end}"][1, 32](stored, cuda.to_device(registers.view(np.uint32)), cuda.to_device(rows))
    expected = np.zeros((64, 8), np.uint16)
    expected[rows[: 8 * count]] = matrices.reshape(-1, 8)
    np.testing.assert_array_equal(stored.to_host(), expected)


def test_a_matrix_is_transposed_in_registers(device, kernels, rng):
    matrix = rng.permutation(65536)[:64].astype(np.uint16).reshape(8, 8)
    out = cuda.zeros(32, np.uint32)
    kernels["move"][1, 32](out, cuda.to_device(lanes_of(matrix, False).view(np.uint32)))
    np.testing.assert_array_equal(out.to_host().view(np.uint16).reshape(32, 2), lanes_of(matrix, True))

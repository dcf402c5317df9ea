"""Tensor maps that kernels compose and change: ``tensormap.replace`` and ``tensormap.cp_fenceproxy``."""

from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda

pytestmark = pytest.mark.needs("sm_90a")

# The element types as PTX numbers them, with dtypes of the same size.
ELEMENTS = {
    0: np.uint8, 1: np.uint16, 2: np.uint32, 3: np.int32, 4: np.uint64, 5: np.int64, 6: np.float16, 7: np.float32,
    8: np.float32, 9: np.float64, 10: np.uint16,
}  # fmt: skip  # rows of a table
TF32 = 11


def name(element, dtype, fill=0):
    return f"compose<{element}, {np.dtype(dtype).itemsize}, {fill}>"


KERNELS = Path(__file__).with_name("tensor_map_changes.cu")
NAMES = [*(name(*one) for one in ELEMENTS.items()), name(7, np.float32, 1), name(TF32, np.float32)]
COMPILE_OPTIONS = {"arch": "sm_90a", "names": NAMES}


def box_of(kernel, array, column, row):
    """Return the box at some coordinates, loaded by a map that the kernel composes."""
    rows, columns = array.shape
    made = cuda.full(128, 0xA5, np.uint8)
    out = cuda.full(4 * 16 * array.itemsize, 0xA5, np.uint8)
    kernel[1, 32](cuda.to_device(array), columns, rows, made, column, row, out)
    return out.to_host().view(array.dtype).reshape(4, 16)


@pytest.mark.parametrize("element", ELEMENTS)
def test_a_kernel_composes_the_map_of_an_array(device, kernels, rng, element):
    dtype = np.dtype(ELEMENTS[element])
    array = rng.integers(0, 100, (7, 48)).astype(dtype)
    expected = np.zeros((4, 16), dtype)
    expected[:3] = array[4:, 32:]
    np.testing.assert_array_equal(box_of(kernels[name(element, dtype)], array, 32, 4), expected)


def test_a_composed_map_can_fill_with_nan(device, kernels, rng):
    array = rng.normal(size=(7, 20)).astype(np.float32)
    found = box_of(kernels[name(7, np.float32, 1)], array, 16, 1)
    np.testing.assert_array_equal(found[:, :4], array[1:5, 16:])
    assert np.isnan(found[:, 4:]).all()


def test_a_composed_map_of_tf32_rounds(device, kernels, rng):
    array = rng.integers(1 << 23, 0x7F << 23, (4, 16), np.uint32).view(np.float32)
    found = box_of(kernels[name(TF32, np.float32)], array, 0, 0)
    assert not np.any(found.view(np.uint32) & 0x1FFF)
    np.testing.assert_allclose(found, array, rtol=2.0**-11)


def test_a_kernel_changes_the_address_of_a_map(device, kernels, rng):
    first, second = rng.integers(0, 1000, (2, 4, 16)).astype(np.float32)
    tensor_map = cuda.tensor_maps.TensorMap(cuda.to_device(first), (4, 16))
    there = cuda.to_device(np.frombuffer(bytes(tensor_map), np.uint8))
    array, out = cuda.to_device(second), cuda.full((4, 16), np.nan, np.float32)
    kernels["change"][1, 32](there, array, out)
    np.testing.assert_array_equal(out.to_host(), second)

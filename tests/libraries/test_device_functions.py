"""Kernels that call cuFFTDx and cuBLASDx, as the stop `fft` has them. They need the extra `dx`."""

import numpy as np
import pytest

import cudart_py as cuda
from library_tour.libraries import device_functions

pytestmark = [
    pytest.mark.needs("libraries"),
    pytest.mark.skipif(
        bool(device_functions.missing()), reason="the packages of the extra `dx`, or libcuda, are missing"
    ),
    # Compiling the functions takes half a minute.
    pytest.mark.exhaustive,
]


def complex_rows(rng, count, length):
    return (rng.normal(size=(count, length)) + 1j * rng.normal(size=(count, length))).astype(np.complex64)


def test_a_kernel_filters_rows_as_numpy_does_even_if_the_last_block_has_too_few(rng, device):
    length = device_functions.LENGTH
    x, response = complex_rows(rng, 37, length), complex_rows(rng, 1, length)[0]
    rows, out = cuda.to_device(x), cuda.full(x.shape, np.nan, np.complex64)
    device_functions.filter_in_a_kernel(cuda.to_device(response))(rows, out)()
    expected = np.fft.ifft(np.fft.fft(x.astype(complex)) * response) * length
    # Two transforms of eight levels, and a product.
    error = np.linalg.norm(out.to_host() - expected) / np.linalg.norm(expected)
    assert error < 2 * 16 * 8 * 2.0**-24
    np.testing.assert_array_equal(rows.to_host(), x)


def test_a_kernel_multiplies_each_tile_of_rows_by_the_matrix(rng, device):
    side = device_functions.SHORT
    x, matrix = complex_rows(rng, 5 * side, side), complex_rows(rng, side, side)
    out = cuda.full(x.shape, np.nan, np.complex64)
    device_functions.product_in_a_kernel(cuda.to_device(matrix))(cuda.to_device(x), out)()
    expected = x.astype(complex) @ matrix.astype(complex)
    bound = 4 * side * 2.0**-24 * (abs(x).astype(float) @ abs(matrix).astype(float))
    assert (abs(out.to_host() - expected) <= bound).all()

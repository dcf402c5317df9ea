"""BLAS vector functions on DeviceArrays: every call against NumPy."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.libraries.blas import asum, axpy, cublas_calls, dot, gemv, ger, iamax, nrm2, scal
from cudart_py.libraries.dtypes import from_bfloat16, to_bfloat16

pytestmark = pytest.mark.needs("libraries")

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", "NTC")
def test_gemv_is_numpys_product(device, numbers, dtype, op):
    a, x = numbers((6, 4), dtype), numbers(4 if op == "N" else 6, dtype)
    turned = {"N": a, "T": a.T, "C": a.conj().T}[op]
    assert np.allclose(gemv(cuda.to_device(a), cuda.to_device(x), op=op).to_host(), turned @ x, rtol=1e-4)


def test_gemv_takes_a_window_and_vectors_with_gaps(device, numbers):
    a, x, y = numbers((8, 9)), numbers(12), numbers(15)
    out = cuda.to_device(y)
    gemv(cuda.to_device(a)[2:7, 3:7], cuda.to_device(x)[::3], out[::3], alpha=2.0, beta=-1.0)
    y[::3] = 2 * a[2:7, 3:7] @ x[::3] - y[::3]
    assert np.allclose(out.to_host(), y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_axpy_and_scal_work_in_place_and_leave_what_is_between(device, numbers, dtype):
    x, y = numbers((2, 10), dtype)
    out = cuda.to_device(y)
    assert axpy(3.0, cuda.to_device(x), out) is out
    y += 3 * x
    every_other = out[::2]
    assert scal(3.0, every_other) is every_other
    y[::2] *= 3
    assert np.allclose(out.to_host(), y)


def test_of_bfloat16_they_compute_in_single_precision(device, numbers):
    x, y = map(to_bfloat16, numbers((2, 10)))
    out = axpy(0.5, cuda.to_device(x), cuda.to_device(y))
    assert np.array_equal(out.to_host(), to_bfloat16(np.float32(0.5) * from_bfloat16(x) + from_bfloat16(y)))
    assert np.array_equal(scal(0.3, cuda.to_device(x)).to_host(), to_bfloat16(np.float32(0.3) * from_bfloat16(x)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dot_stays_on_the_device_and_later_calls_read_their_factors_from_the_host(device, numbers, dtype):
    x, y = numbers(10, dtype), numbers(20, dtype)
    source = cuda.to_device(x)
    out = dot(source, cuda.to_device(y)[::2])
    assert out.shape == (1,)
    assert np.allclose(out.to_host(), x @ y[::2], rtol=1e-4)
    assert np.allclose(axpy(2.0, source, cuda.zeros(10, dtype)).to_host(), 2 * x)


def test_a_product_with_a_matrix_without_columns_is_zero_or_the_scaled_output(device):
    a, x, out = cuda.empty((3, 0)), cuda.empty(0), cuda.full(3, 2.0)
    assert np.array_equal(gemv(a, x).to_host(), [0, 0, 0])
    assert np.array_equal(gemv(a, x, out, beta=0.5).to_host(), [1, 1, 1])
    assert np.array_equal(gemv(a.T, cuda.full(3, 1.0)).to_host(), [])


def test_sizes_beyond_an_int_take_the_64_bit_functions(device, numbers, record, monkeypatch):
    """A limit of 8 stands for 2^31 - 1."""
    monkeypatch.setattr(cublas_calls, "INT_MAX", 8)
    names = "axpy_ex_64", "scal_ex_64", "dot_ex_64", "dgemv_64", "nrm2ex_64", "asum_ex_64", "iamax_ex_64", "dger_64"
    calls = record("cublas", *names)
    host, matrix = numbers(30), numbers((3, 10))
    x, y, a = cuda.to_device(host)[::3], cuda.to_device(host[:10].copy()), cuda.to_device(matrix)
    expected = host[::3] + 2 * host[:10]
    assert np.allclose(scal(0.5, axpy(2.0, y, x)).to_host(), expected / 2)
    assert np.isclose(float(dot(x, y)), expected @ host[:10] / 2)
    assert np.allclose(gemv(a, y).to_host(), matrix @ host[:10])
    assert np.isclose(float(nrm2(y)), np.linalg.norm(host[:10]))
    assert np.isclose(float(asum(y)), np.abs(host[:10]).sum())
    assert iamax(y) == np.abs(host[:10]).argmax()
    assert np.allclose(ger(1.0, y[:3], y, a).to_host(), matrix + np.multiply.outer(host[:3], host[:10]))
    assert {name for name, _ in calls} == set(names)

"""Vectors on DeviceArrays: every call against NumPy, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.libraries.blas.vectors import axpy, dot, gemv, scal
from cudart_py.libraries.dtypes import from_bfloat16, to_bfloat16

pytestmark = pytest.mark.needs("libraries")

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


def numbers(rng, shape, dtype):
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", "NTC")
def test_gemv_is_numpys_product(device, rng, dtype, op):
    a, x = numbers(rng, (6, 4), dtype), numbers(rng, 4 if op == "N" else 6, dtype)
    turned = {"N": a, "T": a.T, "C": a.conj().T}[op]
    got = gemv(cuda.to_device(a), cuda.to_device(x), op=op).to_host()
    assert np.allclose(got, turned @ x, rtol=1e-4)


def test_gemv_takes_a_window_and_vectors_with_gaps(device, rng):
    a, x, y = numbers(rng, (8, 9), np.float64), numbers(rng, 12, np.float64), numbers(rng, 15, np.float64)
    out = cuda.to_device(y)
    gemv(cuda.to_device(a)[2:7, 3:7], cuda.to_device(x)[::3], out[::3], alpha=2.0, beta=-1.0)
    expected = y.copy()
    expected[::3] = 2 * a[2:7, 3:7] @ x[::3] - y[::3]
    assert np.allclose(out.to_host(), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_axpy_adds_in_place(device, rng, dtype):
    x, y = numbers(rng, 10, dtype), numbers(rng, 10, dtype)
    out = cuda.to_device(y)
    assert axpy(3.0, cuda.to_device(x), out) is out
    assert np.allclose(out.to_host(), 3 * x + y)


def test_axpy_of_bfloat16_computes_in_single_precision(device, rng):
    x, y = (to_bfloat16(rng.standard_normal(10)) for _ in range(2))
    out = cuda.to_device(y)
    axpy(0.5, cuda.to_device(x), out)
    assert np.array_equal(out.to_host(), to_bfloat16(np.float32(0.5) * from_bfloat16(x) + from_bfloat16(y)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_scal_multiplies_in_place_and_leaves_what_is_between(device, rng, dtype):
    host = numbers(rng, 10, dtype)
    whole = cuda.to_device(host)
    every_other = whole[::2]
    assert scal(3.0, every_other) is every_other
    host[::2] *= 3
    assert np.allclose(whole.to_host(), host)


def test_scal_of_bfloat16_computes_in_single_precision(device, rng):
    x = to_bfloat16(rng.standard_normal(10))
    assert np.array_equal(scal(0.3, cuda.to_device(x)).to_host(), to_bfloat16(np.float32(0.3) * from_bfloat16(x)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dot_stays_on_the_device(device, rng, dtype):
    x, y = numbers(rng, 10, dtype), numbers(rng, 20, dtype)
    out = dot(cuda.to_device(x), cuda.to_device(y)[::2])
    assert out.shape == (1,)
    assert np.allclose(out.to_host(), x @ y[::2], rtol=1e-4)


def test_after_dot_other_calls_read_their_factors_from_the_host(device, rng):
    host = numbers(rng, 10, np.float32)
    x = cuda.to_device(host)
    dot(x, x)
    assert np.allclose(axpy(2.0, x, cuda.zeros(10, np.float32)).to_host(), 2 * host)


BAD = {
    "gemv's vector": (lambda: gemv(cuda.zeros((4, 5)), cuda.zeros(4)), r"x has shape \(4,\)"),
    "gemv's output": (lambda: gemv(cuda.zeros((4, 5)), cuda.zeros(5), cuda.zeros(5)), r"out has shape \(5,\)"),
    "gemv's dtype": (lambda: gemv(cuda.zeros((4, 5)), cuda.zeros(5, np.float32)), "x has dtype float32, and a float64"),
    "gemv's half": (lambda: gemv(cuda.zeros((4, 5), np.float16), cuda.zeros(5, np.float16)), "a has dtype float16"),
    "axpy's sizes": (lambda: axpy(1.0, cuda.zeros(4), cuda.zeros(5)), r"y has shape \(5,\); x makes it \(4,\)"),
    "axpy's factor": (lambda: axpy(None, cuda.zeros(4), cuda.zeros(4)), "alpha must be a number, not NoneType"),
    "axpy's matrix": (lambda: axpy(1.0, cuda.zeros((2, 2)), cuda.zeros((2, 2))), "x has shape .2, 2.; it must have 1"),
    "scal's factor": (lambda: scal("2", cuda.zeros(4)), "alpha must be a number, not str"),
    "scal's integers": (lambda: scal(2.0, cuda.zeros(4, np.int32)), "x has dtype int32"),
    "dot's sizes": (lambda: dot(cuda.zeros(4), cuda.zeros(5)), r"y has shape \(5,\)"),
    "dot's output": (lambda: dot(cuda.zeros(4), cuda.zeros(4), cuda.zeros(2)), r"out has shape \(2,\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named(device, case):
    call, text = BAD[case]
    with pytest.raises((TypeError, ValueError), match=text):
        call()


def test_a_vector_that_overlaps_its_result_is_refused(device):
    whole = cuda.zeros(10)
    with pytest.raises(ValueError, match="y overlaps x"):
        axpy(1.0, whole[:6], whole[4:])

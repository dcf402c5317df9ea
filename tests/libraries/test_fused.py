"""A product with bias and activation in one pass: against NumPy, and what is refused."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.driver.seam import library
from cudart_py.libraries.blas.fused import gemm_epilogue
from cudart_py.libraries.dtypes import from_bfloat16, to_bfloat16
from cudart_py.libraries.handles import release

pytestmark = pytest.mark.needs("libraries")

ACTIVATIONS = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_it_is_the_product_with_its_bias_under_the_activation(device, rng, dtype, activation):
    numbers = [rng.standard_normal(shape) for shape in ((5, 7), (7, 3), (3,))]
    hosts = [to_bfloat16(x) if dtype == "bfloat16" else x.astype(dtype) for x in numbers]
    a, b, bias = (from_bfloat16(x) if dtype == "bfloat16" else x.astype(np.float32) for x in hosts)
    got = gemm_epilogue(*map(cuda.to_device, hosts), activation=activation).to_host()
    got = from_bfloat16(got) if dtype == "bfloat16" else got
    exact = ACTIVATIONS[activation](a.astype(float) @ b + bias)
    roundoff = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}[dtype]
    assert np.linalg.norm(got - exact) <= roundoff * np.linalg.norm(np.abs(a) @ np.abs(b))


def test_a_window_is_told_as_less_aligned(device, monkeypatch, rng):
    release()
    functions, told = library("cublasLt"), {}
    set_attribute = functions.matmul_preference_set_attribute

    def tell(preference, attribute, address, nbytes):
        told[attribute] = int.from_bytes(ctypes.string_at(address, nbytes), "little")
        set_attribute(preference, attribute, address, nbytes)

    monkeypatch.setattr(functions, "matmul_preference_set_attribute", tell)
    whole = cuda.to_device(rng.standard_normal((9, 9)).astype(np.float32))
    out = cuda.empty((4, 4), np.float32)
    gemm_epilogue(whole[1:5, 1:5], whole[4:8, 5:9], cuda.zeros(4, np.float32), out)
    window = whole.pointer + 40  # to cuBLAS our first matrix is the second
    assert told[functions.MatmulPreferenceAttribute.MIN_ALIGNMENT_B_BYTES] == window & -window


def test_a_second_call_makes_no_descriptors(device, record):
    made = record("cublasLt", "matmul_desc_create", "matrix_layout_create", "matmul_preference_create")
    a, bias = cuda.zeros((4, 4), np.float32), cuda.zeros(4, np.float32)
    for _ in range(2):
        gemm_epilogue(a, a, bias)
    assert len(made) == 5  # the product, three layouts, and the preference


def test_descriptors_are_given_back(device, record):
    given_back = record("cublasLt", "matmul_desc_destroy", "matrix_layout_destroy", "matmul_preference_destroy")
    a, bias = cuda.zeros((4, 4), np.float32), cuda.zeros(4, np.float32)
    gemm_epilogue(a, a, bias)
    release()
    assert len(given_back) == 5  # the product, three layouts, and the preference


BAD = {
    "bias": (lambda a: gemm_epilogue(a, a, cuda.zeros(3, np.float32)), r"bias has shape \(3,\)"),
    "activation": (lambda a: gemm_epilogue(a, a, a[0], activation="tanh"), "activation='tanh' is not None"),
    "activation's type": (
        lambda a: gemm_epilogue(a, a, a[0], activation=["relu"]),
        "activation must be a str or None, not list",
    ),
    "double": (lambda a: gemm_epilogue(a.view(np.float64), a, a[0]), "a has dtype float64"),
    "inner": (lambda a: gemm_epilogue(a, a[:3], a[0]), "b has 3 rows, and a 4 columns"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named(device, case):
    call, text = BAD[case]
    with pytest.raises((TypeError, ValueError), match=text):
        call(cuda.zeros((4, 4), np.float32))

"""Products of matrices on DeviceArrays: every call against NumPy, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.libraries.blas.products import gemm
from cudart_py.libraries.dtypes import bfloat16, from_bfloat16, to_bfloat16
from cudart_py.libraries.handles import release

pytestmark = pytest.mark.needs("libraries")

DTYPES = (np.float16, np.float32, np.float64, np.complex64, np.complex128)


def numbers(rng, shape, dtype):
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def turned(matrix, op):
    return matrix if op == "N" else matrix.swapaxes(-1, -2) if op == "T" else matrix.conj().swapaxes(-1, -2)


def close(got, expected, dtype):
    roundoff = np.finfo(dtype).eps
    scale = np.linalg.norm(expected) or 1.0
    return np.linalg.norm(got.astype(np.complex128) - expected) <= 20 * roundoff * scale


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op_a", "NTC")
@pytest.mark.parametrize("op_b", "NTC")
def test_gemm_is_numpys_product(device, rng, dtype, op_a, op_b):
    a = numbers(rng, (5, 7) if op_a == "N" else (7, 5), dtype)
    b = numbers(rng, (7, 3) if op_b == "N" else (3, 7), dtype)
    got = gemm(cuda.to_device(a), cuda.to_device(b), op_a=op_a, op_b=op_b).to_host()
    assert got.dtype == dtype
    exact = turned(a, op_a).astype(np.complex128) @ turned(b, op_b).astype(np.complex128)
    assert close(got, exact, dtype)


def test_gemm_scales_and_adds(device, rng):
    a, b, c = (numbers(rng, (4, 4), np.complex64) for _ in range(3))
    out = cuda.to_device(c)
    result = gemm(cuda.to_device(a), cuda.to_device(b), out, alpha=2 - 1j, beta=0.5)
    assert result is out
    assert close(out.to_host(), (2 - 1j) * (a @ b) + 0.5 * c, np.complex64)


def test_gemm_takes_windows_of_larger_matrices(device, rng):
    a, b = numbers(rng, (9, 11), np.float32), numbers(rng, (12, 10), np.float32)
    out = cuda.zeros((8, 8), np.float32)
    gemm(cuda.to_device(a)[1:6, 2:9], cuda.to_device(b)[3:10, 4:8], out[2:7, 1:5])
    expected = np.zeros((8, 8))
    expected[2:7, 1:5] = a[1:6, 2:9].astype(float) @ b[3:10, 4:8]
    assert close(out.to_host(), expected, np.float32)


@pytest.mark.parametrize(("first", "second"), [((3, 4, 5), (3, 5, 2)), ((4, 5), (3, 5, 2)), ((3, 4, 5), (5, 2))])
def test_gemm_multiplies_batches(device, rng, first, second):
    a, b = numbers(rng, first, np.float64), numbers(rng, second, np.float64)
    got = gemm(cuda.to_device(a), cuda.to_device(b)).to_host()
    assert got.shape == (3, 4, 2)
    assert close(got, a @ b, np.float64)


def test_gemm_of_bfloat16_adds_up_in_single_precision(device, rng):
    a, b = (to_bfloat16(rng.standard_normal((6, 6))) for _ in range(2))
    exact = from_bfloat16(a).astype(float) @ from_bfloat16(b)
    out = cuda.empty((6, 6), np.float32)
    gemm(cuda.to_device(a), cuda.to_device(b), out)
    assert close(out.to_host(), exact, np.float32)
    rounded = gemm(cuda.to_device(a), cuda.to_device(b))
    assert rounded.dtype == bfloat16
    assert np.array_equal(rounded.to_host(), to_bfloat16(out.to_host()))


def test_gemm_of_nothing_queues_nothing(device, record):
    calls = record("cublas", "gemm_ex")
    gemm(cuda.empty((0, 3), np.float32), cuda.empty((3, 4), np.float32))
    assert calls == []


def test_a_second_gemm_sets_up_nothing_again(device, record, rng):
    calls = record("cublas", "create", "set_stream", "set_workspace", "gemm_ex")
    a = cuda.to_device(numbers(rng, (4, 4), np.float32))
    for _ in range(2):
        gemm(a, a)
    assert [name for name, _ in calls] == ["create", "set_stream", "set_workspace", "gemm_ex", "gemm_ex"]


def test_another_stream_brings_a_workspace_of_its_own(device, record, rng):
    calls = record("cublas", "set_stream", "set_workspace")
    a = cuda.to_device(numbers(rng, (4, 4), np.float32))
    cuda.Device(0).synchronize()
    stream = cuda.Stream()
    gemm(a, a)
    gemm(a, a, stream=stream)
    assert [name for name, _ in calls] == ["set_stream", "set_workspace"] * 2
    assert calls[1][1][1] != calls[3][1][1]


def test_a_call_of_another_product_in_between_changes_nothing(device, rng):
    a, b = (cuda.to_device(numbers(rng, (4, 4), np.float32)) for _ in range(2))
    first = gemm(a, b).to_host()
    gemm(b, a, op_a="T")
    assert np.array_equal(gemm(a, b).to_host(), first)


def matrices(shape_a=(4, 5), shape_b=(5, 3), dtype_a=np.float32, dtype_b=np.float32):
    return cuda.zeros(shape_a, dtype_a), cuda.zeros(shape_b, dtype_b)


BAD = {
    "shapes": (lambda: gemm(*matrices((4, 5), (6, 3))), ValueError, "b has 6 rows"),
    "dtypes": (lambda: gemm(*matrices(dtype_b=np.float64)), TypeError, "b has dtype float64, and a float32"),
    "integers": (lambda: gemm(*matrices(dtype_a=np.int32, dtype_b=np.int32)), TypeError, "a has dtype int32"),
    "vector": (lambda: gemm(*matrices(shape_b=(5,))), ValueError, r"b has shape \(5,\)"),
    "columns": (
        lambda: gemm(cuda.zeros((4, 10), np.float32)[:, ::2], cuda.zeros((5, 3), np.float32)),
        ValueError,
        "a has 8 bytes from column to column",
    ),
    "out": (
        lambda: gemm(*matrices(), cuda.zeros((3, 4), np.float32)),
        ValueError,
        r"out has shape \(3, 4\); the product of a and b makes it \(4, 3\)",
    ),
    "out's dtype": (lambda: gemm(*matrices(), cuda.zeros((4, 3))), TypeError, "out has dtype float64, and a float32"),
    "operation": (lambda: gemm(*matrices(), op_b="H"), ValueError, "op_b is one of 'N', 'T', 'C', not the str 'H'"),
    "alpha": (lambda: gemm(*matrices(), alpha=1j), TypeError, "alpha is complex, and the matrices are float32"),
    "alpha's type": (lambda: gemm(*matrices(), alpha="2"), TypeError, "alpha must be a number, not str"),
    "alpha of one element": (
        lambda: gemm(*matrices(), alpha=np.array([1.0])),
        TypeError,
        "alpha must be a number, not ndarray",
    ),
    "beta of two elements": (
        lambda: gemm(*matrices(), beta=np.ones(2)),
        TypeError,
        "beta must be a number, not ndarray",
    ),
    "alpha's size": (
        lambda: gemm(*matrices(), alpha=10**400),
        ValueError,
        "alpha is beyond the largest number of floa",
    ),
    "alpha's range": (
        lambda: gemm(*matrices(), alpha=1e300),
        ValueError,
        "alpha is beyond the largest number of float",
    ),
    "an operation's type": (
        lambda: gemm(*matrices(), op_a=["T"]),
        ValueError,
        r"op_a is one of 'N', 'T', 'C'",
    ),
    "compute's type": (
        lambda: gemm(*matrices(), compute=["tf32"]),
        TypeError,
        "compute must be a str or None, not list",
    ),
    "compute's dtype": (
        lambda: gemm(*matrices(dtype_a=np.float64, dtype_b=np.float64), compute="tf32"),
        ValueError,
        "compute='tf32' is not None, or 'tf32' for single precision; the matrices are float64",
    ),
    "bfloat16": (
        lambda: gemm(*matrices(dtype_b=bfloat16)),
        TypeError,
        "b has dtype bfloat16, and a float32",
    ),
    "beta": (
        lambda: gemm(*matrices(), beta=1.0),
        ValueError,
        "beta is the float 1.0 and adds to out, which is not given",
    ),
    "compute": (lambda: gemm(*matrices(), compute="fp8"), ValueError, "compute='fp8' is not None"),
    "batches": (lambda: gemm(*matrices((2, 4, 5), (3, 5, 3))), ValueError, "b has 3 matrices, and a 2"),
    "host array": (
        lambda: gemm(np.zeros((4, 5)), cuda.zeros((5, 3))),
        TypeError,
        "a must be a DeviceArray, not ndarray",
    ),
    "host out": (lambda: gemm(*matrices(), np.zeros((4, 3))), TypeError, "out must be a DeviceArray, not ndarray"),
    "stream": (lambda: gemm(*matrices(), stream=7), TypeError, "stream must be a cudart_py Stream or None, not int"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named_before_anything_is_queued(device, record, case):
    calls = record("cublas", "gemm_ex")
    call, kind, text = BAD[case]
    with pytest.raises(kind, match=text):
        call()
    assert calls == []


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_a_bool_is_no_number_though_its_equal_was_taken_before(device, name):
    a, out = cuda.zeros((4, 4)), cuda.zeros((4, 4))
    gemm(a, a, out, **{name: 1.0})
    with pytest.raises(TypeError, match=f"{name} must be a number, not bool"):
        gemm(a, a, out, **{name: True})


def test_an_infinite_factor_is_taken(device):
    a = cuda.full((2, 2), 1.0, np.float32)
    assert np.all(np.isposinf(gemm(a, a, alpha=np.inf).to_host()))


@pytest.mark.parametrize("name", ["a", "b", "out"])
def test_a_closed_operand_is_named(device, name):
    operands = {"a": cuda.zeros((4, 4)), "b": cuda.zeros((4, 4)), "out": cuda.zeros((4, 4))}
    gemm(**operands)  # so that the call is known
    operands[name].close()
    with pytest.raises(ValueError, match=f"{name} is closed"):
        gemm(**operands)


def test_an_output_that_is_read_too_is_refused(device):
    whole = cuda.zeros((8, 8))
    with pytest.raises(ValueError, match="out overlaps b"):
        gemm(whole[:4, :4], whole[2:6, :4], whole[4:, :4])


def test_a_failure_of_the_library_is_an_error_of_cudart_py(device, monkeypatch):
    a = cuda.zeros((4, 4))
    monkeypatch.setattr("cudart_py.libraries.blas.products.compute_type", lambda kind, compute: 1 << 20)
    with pytest.raises(cuda.CudaError, match=r"cublasGemmEx: .*(NOT_SUPPORTED|INVALID_VALUE)") as error:
        gemm(a, a, alpha=1.25)  # a product that has not come before
    assert error.value.status


@pytest.mark.parametrize("has_handle", [False, True])
def test_a_first_call_within_a_capture_is_refused_with_the_remedy(device, has_handle):
    a, out = cuda.zeros((4, 4)), cuda.zeros((4, 4))
    release()
    if has_handle:
        gemm(a, a, out)
    stream = cuda.Stream()
    with pytest.raises(cuda.CaptureError, match="call it once in this stream before the capture"), stream.capture():
        gemm(a, a, out, stream=stream)


def test_no_handle_is_made_within_a_capture(device, record):
    a, out = cuda.zeros((4, 4)), cuda.zeros((4, 4))
    calls = record("cublas", "create")
    with pytest.raises(cuda.CaptureError, match="cublas needs memory"), cuda.Stream() as stream, stream.capture():
        gemm(a, a, out, stream=stream)
    assert calls == []

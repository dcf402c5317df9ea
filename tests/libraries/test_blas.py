"""Matrix products on DeviceArrays against NumPy, and what they cache for the next call."""

import ctypes

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.driver.calls import library
from cudart_py.libraries.blas.epilogues import gemm_epilogue
from cudart_py.libraries.blas.products import gemm
from cudart_py.libraries.dtypes import bfloat16, from_bfloat16, to_bfloat16
from cudart_py.libraries.handles import release

pytestmark = pytest.mark.needs("libraries")

DTYPES = (np.float16, np.float32, np.float64, np.complex64, np.complex128)


def turned(matrix, op):
    return matrix if op == "N" else matrix.swapaxes(-1, -2) if op == "T" else matrix.conj().swapaxes(-1, -2)


def close(got, expected, dtype):
    roundoff = np.finfo(dtype).eps
    return np.linalg.norm(got.astype(np.complex128) - expected) <= 20 * roundoff * np.linalg.norm(expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op_a", "NTC")
@pytest.mark.parametrize("op_b", "NTC")
def test_gemm_is_numpys_product(device, numbers, dtype, op_a, op_b):
    a = numbers((5, 7) if op_a == "N" else (7, 5), dtype)
    b = numbers((7, 3) if op_b == "N" else (3, 7), dtype)
    got = gemm(cuda.to_device(a), cuda.to_device(b), op_a=op_a, op_b=op_b).to_host()
    assert got.dtype == dtype
    assert close(got, turned(a, op_a).astype(np.complex128) @ turned(b, op_b).astype(np.complex128), dtype)


def test_gemm_scales_and_adds(device, numbers):
    a, b, c = numbers((3, 4, 4), np.complex64)
    out = cuda.to_device(c)
    assert gemm(cuda.to_device(a), cuda.to_device(b), out, alpha=2 - 1j, beta=0.5) is out
    assert close(out.to_host(), (2 - 1j) * (a @ b) + 0.5 * c, np.complex64)
    ones = cuda.full((2, 2), 1.0, np.float32)
    assert np.all(np.isposinf(gemm(ones, ones, alpha=np.inf).to_host()))


def test_gemm_takes_windows_of_larger_matrices(device, numbers):
    a, b = numbers((9, 11)), numbers((12, 10))
    out = cuda.zeros((8, 8))
    gemm(cuda.to_device(a)[1:6, 2:9], cuda.to_device(b)[3:10, 4:8], out[2:7, 1:5])
    expected = np.zeros((8, 8))
    expected[2:7, 1:5] = a[1:6, 2:9] @ b[3:10, 4:8]
    assert close(out.to_host(), expected, np.float64)


@pytest.mark.parametrize(("first", "second"), [((3, 4, 5), (3, 5, 2)), ((4, 5), (3, 5, 2)), ((3, 4, 5), (5, 2))])
def test_gemm_multiplies_batches(device, numbers, first, second):
    a, b = numbers(first), numbers(second)
    got = gemm(cuda.to_device(a), cuda.to_device(b)).to_host()
    assert got.shape == (3, 4, 2)
    assert close(got, a @ b, np.float64)


def test_gemm_of_bfloat16_adds_up_in_single_precision(device, numbers):
    a, b = map(to_bfloat16, numbers((2, 6, 6)))
    out = cuda.empty((6, 6), np.float32)
    gemm(cuda.to_device(a), cuda.to_device(b), out)
    assert close(out.to_host(), from_bfloat16(a).astype(float) @ from_bfloat16(b), np.float32)
    rounded = gemm(cuda.to_device(a), cuda.to_device(b))
    assert rounded.dtype == bfloat16
    assert np.array_equal(rounded.to_host(), to_bfloat16(out.to_host()))


def test_a_handle_is_set_up_once_for_a_stream_with_a_workspace_of_its_own(device, record):
    calls = record("cublas", "create", "set_stream", "set_workspace", "gemm_ex")
    gemm(cuda.empty((0, 3), np.float32), cuda.empty((3, 4), np.float32))
    assert calls == []
    a = cuda.zeros((4, 4), np.float32)
    cuda.Device(0).synchronize()
    for stream in (None, None, cuda.Stream()):
        gemm(a, a, stream=stream)
    bound = ["set_stream", "set_workspace", "gemm_ex"]
    assert [name for name, _ in calls] == ["create", *bound, "gemm_ex", *bound]
    assert calls[2][1][1] != calls[6][1][1]


@pytest.mark.parametrize("name", ["a", "b", "out"])
def test_what_equals_an_argument_of_a_known_product_is_looked_at_all_the_same(device, name):
    operands = {key: cuda.zeros((4, 4)) for key in ("a", "b", "out")}
    gemm(**operands, alpha=1.0, beta=1.0)
    for factor in ("alpha", "beta"):
        with pytest.raises(TypeError, match=f"gemm: argument '{factor}' must be a number, not the bool"):
            gemm(**operands, **{"alpha": 1.0, "beta": 1.0, factor: True})
    operands[name].close()
    with pytest.raises(ValueError, match=f"gemm: argument '{name}' must be open"):
        gemm(**operands, alpha=1.0, beta=1.0)


def test_a_failure_of_the_library_is_an_error_of_cudart_py(device, monkeypatch):
    a = cuda.zeros((4, 4))
    monkeypatch.setattr("cudart_py.libraries.blas.products.compute_type", lambda call, kind, compute: (1 << 20, kind))
    with pytest.raises(cuda.CudaError, match=r"cublasGemmEx: .*(NOT_SUPPORTED|INVALID_VALUE)") as error:
        gemm(a, a, alpha=1.25)  # not a cached product
    assert error.value.status


@pytest.mark.parametrize("has_handle", [False, True])
def test_a_first_call_within_a_capture_is_refused_with_the_remedy(device, record, has_handle):
    a, out = cuda.zeros((4, 4)), cuda.zeros((4, 4))
    if has_handle:
        gemm(a, a, out)
    made = record("cublas", "create")
    words = f"{'cuBLAS' if has_handle else 'cublas'} allocates memory .*call it once in this stream before the capture"
    with pytest.raises(cuda.errors.CaptureError, match=words), cuda.Stream() as stream, stream.capture():
        gemm(a, a, out, stream=stream)
    assert made == []


def test_a_window_is_told_as_less_aligned(device, monkeypatch):
    release()
    functions, told = library("cublasLt"), {}
    set_attribute = functions.matmul_preference_set_attribute

    def tell(preference, attribute, address, nbytes):
        told[attribute] = int.from_bytes(ctypes.string_at(address, nbytes), "little")
        set_attribute(preference, attribute, address, nbytes)

    monkeypatch.setattr(functions, "matmul_preference_set_attribute", tell)
    whole, out = cuda.zeros((9, 9), np.float32), cuda.empty((4, 4), np.float32)
    gemm_epilogue(whole[1:5, 1:5], whole[4:8, 5:9], cuda.zeros(4, np.float32), out)
    window = whole.pointer + 40  # cuBLAS gets our first matrix as its second
    assert told[functions.MatmulPreferenceAttribute.MIN_ALIGNMENT_B_BYTES] == window & -window


def test_descriptors_are_made_once_and_given_back(device, record):
    kinds = ("matmul_desc", "matrix_layout", "matmul_preference")
    made = record("cublasLt", *(f"{kind}_create" for kind in kinds))
    given_back = record("cublasLt", *(f"{kind}_destroy" for kind in kinds))
    a, bias = cuda.zeros((4, 4), np.float32), cuda.zeros(4, np.float32)
    for _ in range(2):
        gemm_epilogue(a, a, bias)
    release()
    assert len(made) == len(given_back) == 5  # the product, three layouts, and the preference


def test_numbers_are_rounded_to_bfloat16_once(rng):
    """Of a number next to a tie, the nearest float32 is the tie."""
    ties = 1 + 2.0**-8 * np.array([1, 3, 1, 3])
    numbers = ties + 2.0**-40 * np.array([1, -1, 0, 0])
    assert np.array_equal(from_bfloat16(to_bfloat16(numbers)), 1 + 2.0**-7 * np.array([1, 1, 0, 2]))
    assert np.array_equal(from_bfloat16(to_bfloat16(-numbers)), -from_bfloat16(to_bfloat16(numbers)))
    assert from_bfloat16(to_bfloat16([2**60 + 2**52 + 1])) == 2.0**60 + 2.0**53
    assert np.array_equal(from_bfloat16(to_bfloat16([1e39, 3.39e38, -np.inf])), [np.inf, 255 * 2.0**120, -np.inf])
    drawn = rng.standard_normal(500)
    unit = 2.0 ** (np.frexp(drawn)[1] - 8)
    assert np.array_equal(from_bfloat16(to_bfloat16(drawn)), np.rint(drawn / unit) * unit)

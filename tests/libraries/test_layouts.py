"""Products of transposed and sliced operands, by NumPy's rules, and in every precision, against exact results."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries as lib

pytestmark = pytest.mark.needs("libraries")

# How an operand of the right shape lies in memory.
LAYOUTS = {
    "rows": lambda x: cuda.to_device(x),
    "columns": lambda x: cuda.to_device(np.ascontiguousarray(x.T)).T,
    "every second row": lambda x: cuda.to_device(np.repeat(x, 2, axis=0))[::2],
    "a window of columns": lambda x: cuda.to_device(np.ascontiguousarray(np.pad(x, 3).T))[3:-3, 3:-3].T,
}


def integers(rng, shape, dtype):
    """Return small integers, whose products all the dtypes represent exactly."""
    values = rng.integers(-6, 7, shape)
    if np.dtype(dtype).kind == "c":
        return (values + 1j * rng.integers(-6, 7, shape)).astype(dtype)
    return values.astype(dtype)


def transposed(x, op):
    return {"N": x, "T": x.T, "C": x.conj().T}[op]


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.complex64])
@pytest.mark.parametrize("layout_out", ["rows", "columns"])
@pytest.mark.parametrize("layout_b", LAYOUTS)
@pytest.mark.parametrize("layout_a", LAYOUTS)
def test_gemm_takes_operands_as_they_lie_in_memory(device, rng, dtype, layout_a, layout_b, layout_out):
    for op_a, op_b in ("NN", "TN", "NC", "CT"):
        a, b = integers(rng, (5, 7) if op_a == "N" else (7, 5), dtype), integers(rng, (7, 3), dtype)
        b = b if op_b == "N" else np.ascontiguousarray(b.T)
        out = LAYOUTS[layout_out](np.full((5, 3), np.nan, dtype))
        operands = LAYOUTS[layout_a](a), LAYOUTS[layout_b](b), out
        turned = [layout in ("columns", "a window of columns") for layout in (layout_a, layout_b, layout_out)]
        flips = {"a": op_a == "C" and turned[0] != turned[2], "b": op_b == "C" and turned[1] != turned[2]}
        if dtype is np.complex64 and any(flips.values()):  # BLAS cannot conjugate without transposing
            rules = {
                "rows": r"'op_[ab]' must be 'N' or 'T' .* pass a copy",
                "columns": r"'out' must have contiguous rows with op_[ab]='C'",
            }
            with pytest.raises(ValueError, match=f"gemm: argument {rules[layout_out]}"):
                lib.gemm(*operands, op_a=op_a, op_b=op_b)
        else:
            assert lib.gemm(*operands, op_a=op_a, op_b=op_b) is out
            expected = transposed(a, op_a).astype(complex) @ transposed(b, op_b)
            assert np.array_equal(np.ascontiguousarray(out.T.to_host().T), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("op", "NTC")
def test_gemv_takes_a_transposed_matrix(device, rng, dtype, op):
    a = integers(rng, (5, 7), dtype)
    x = integers(rng, 7 if op == "N" else 5, dtype)
    assert np.array_equal(lib.gemv(LAYOUTS["columns"](a), cuda.to_device(x), op=op).to_host(), transposed(a, op) @ x)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((7,), (7,)),
        ((5, 7), (7,)),
        ((7,), (7, 3)),
        ((2, 3, 5, 7), (2, 3, 7, 4)),
        ((2, 3, 5, 7), (7,)),
        ((5, 7), (3, 7, 4)),
        ((7,), (3, 7, 4)),
        ((1, 5, 7), (3, 7, 4)),
        ((1, 1, 5, 7), (3, 7, 2)),
        ((2, 0, 5, 7), (7, 3)),
    ],
)
def test_matmul_has_numpys_shapes(device, rng, first, second):
    a, b = integers(rng, first, np.float64), integers(rng, second, np.float64)
    expected = np.matmul(a, b)
    got = lib.matmul(cuda.to_device(a), cuda.to_device(b))
    assert got.shape == expected.shape
    assert np.array_equal(got.to_host(), expected)
    out = cuda.full(expected.shape, np.nan)
    assert lib.matmul(cuda.to_device(a), cuda.to_device(b), out) is out
    assert np.array_equal(out.to_host(), expected)


def test_matmul_takes_columns_and_planes_of_larger_arrays(device, rng):
    x = integers(rng, (4, 9, 9), np.float64)
    whole = cuda.to_device(x)
    assert np.array_equal(lib.matmul(whole[0, :, 2], whole[1, ::3].T).to_host(), x[0, :, 2] @ x[1, ::3].T)
    assert np.array_equal(lib.matmul(whole[::2, 1:6], whole[1::2, :, 3:5]).to_host(), x[::2, 1:6] @ x[1::2, :, 3:5])


def test_integers_of_8_bits_are_multiplied_exactly(device, rng):
    a, b = rng.integers(-128, 128, (2, 12, 20), np.int8), rng.integers(-128, 128, (7, 20), np.int8)
    expected = a.astype(np.int32) @ b.T
    left, right = cuda.to_device(a), cuda.to_device(b).T
    out = cuda.to_device(np.full((2, 12, 7), 3, np.int32))
    assert np.array_equal(lib.gemm(left, right, out, alpha=2, beta=-1).to_host(), 2 * expected - 3)
    columns = cuda.empty((7, 12), np.int32).T
    lib.gemm(left[1], cuda.to_device(b), columns, op_b="T")
    assert np.array_equal(columns.T.to_host().T, expected[1])
    got = lib.matmul(left, cuda.to_device(b[0]))
    assert got.dtype == np.int32
    assert np.array_equal(got.to_host(), expected[:, :, 0])


def test_slices_of_padded_integers_may_have_any_number_of_columns(device, rng):
    """The rows begin a multiple of four elements apart, but only some of their elements are multiplied."""
    a, b = rng.integers(-128, 128, (5, 32), np.int8), rng.integers(-128, 128, (3, 32), np.int8)
    got = lib.gemm(cuda.to_device(a)[:, :29], cuda.to_device(b)[:, :29].T)
    assert np.array_equal(got.to_host(), a[:, :29].astype(np.int32) @ b[:, :29].T)


# The relative error, for each dtype and precision, of a product of normally distributed numbers.
PRECISIONS = [
    ("float16", "fp16", 2e-2),
    ("float16", "pedantic", 1e-3),
    ("float32", "tf32", 2e-3),
    ("float32", "bf16", 1e-2),
    ("float32", "fp16", 2e-3),
    ("float32", "emulated", 1e-6),
    ("float32", "pedantic", 1e-6),
    ("complex64", "bf16", 1e-2),
    ("float64", "emulated", 1e-14),
    ("complex128", "pedantic", 1e-14),
]


@pytest.mark.parametrize(("dtype", "compute", "bound"), PRECISIONS)
def test_a_product_is_as_precise_as_its_arithmetic(device, numbers, dtype, compute, bound):
    a, b = numbers((24, 40), dtype), numbers((40, 16), dtype)
    try:
        got = lib.gemm(cuda.to_device(a), cuda.to_device(b), compute=compute).to_host()
    except cuda.errors.NotSupportedError:
        pytest.skip(f"this version of cuBLAS has no {compute!r} for {dtype}")
    expected = a.astype(np.clongdouble) @ b.astype(np.clongdouble)
    assert np.linalg.norm((got - expected).astype(complex)) <= bound * np.linalg.norm(expected.astype(complex))

"""What is wrong with an argument is named before anything is queued."""

from __future__ import annotations

import random

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries
from tests.fuzz.arguments import cases
from tests.fuzz.arguments.world import World

sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed (the extra cpu)")

pytestmark = pytest.mark.needs("libraries")


NAMES = {
    **vars(libraries),
    "np": np,
    "empty": np.empty,
    "i32": np.int32,
    "f16": np.float16,
    "f32": lambda *shape: cuda.zeros(shape, np.float32),
    "f64": lambda *shape: cuda.zeros(shape),
    "c64": lambda *shape: cuda.zeros(shape, np.complex64),
    "of": lambda dtype, *shape: cuda.zeros(shape, dtype),
    "eye": lambda kind="csr": libraries.SparseMatrix.from_host(sparse.eye_array(4, format="csr"), kind),
    "vector": lambda size: libraries.SparseVector(size, cuda.zeros(1, np.int32), cuda.zeros(1)),
    "host": lambda *arguments, **options: libraries.Generator(*arguments, host=True, **options),
}
REFUSED = {
    "gemm(f32(4, 5), f32(6, 3))": "ValueError: b has 6 rows",
    "gemm(f32(4, 5), f64(5, 3))": "TypeError: b has dtype float64, and a float32",
    "gemm(of(i32, 4, 5), of(i32, 5, 3))": "TypeError: a has dtype int32",
    "gemm(f32(4, 5), f32(5))": "ValueError: b has shape (5,)",
    "gemm(f32(4, 10)[:, ::2], f32(5, 3))": "ValueError: a has 8 bytes from column to column",
    "gemm(f32(4, 5), f32(5, 3), f32(3, 4))": "out has shape (3, 4); the product of a and b makes it (4, 3)",
    "gemm(f32(4, 5), f32(5, 3), f64(4, 3))": "TypeError: out has dtype float64, and a float32",
    "gemm(f32(4, 5), f32(5, 3), op_b='H')": "ValueError: op_b is one of 'N', 'T', 'C', not the str 'H'",
    "gemm(f32(4, 5), f32(5, 3), alpha=1j)": "TypeError: alpha is complex, and the matrices are float32",
    "gemm(f32(4, 5), f32(5, 3), alpha=10**400)": "ValueError: alpha is beyond the largest number of float",
    "gemm(f32(4, 5), f32(5, 3), alpha=1e300)": "ValueError: alpha is beyond the largest number of float",
    "gemm(f64(4, 5), f64(5, 3), compute='tf32')": "ValueError: compute='tf32' is not None, or 'tf32' for single",
    "gemm(f32(4, 5), f32(5, 3), compute='fp8')": "ValueError: compute='fp8' is not None",
    "gemm(f32(4, 5), of(bfloat16, 5, 3))": "TypeError: b has dtype bfloat16, and a float32",
    "gemm(f32(4, 5), f32(5, 3), beta=1.0)": "ValueError: beta is the float 1.0 and adds to out, which is not given",
    "gemm(f32(2, 4, 5), f32(3, 5, 3))": "ValueError: b has 3 matrices, and a 2",
    "gemm((w := f64(8, 8))[:4, :4], w[2:6, :4], w[4:, :4])": "ValueError: out overlaps b",
    "gemm.plan(a := f64(4, 4), a, a)": "ValueError: out overlaps a",
    "gemm.plan(a := f64(4, 4), a, alpha=None)": "TypeError: alpha must be a number, not NoneType",
    "gemv(f64(4, 5), f64(4))": "ValueError: x has shape (4,)",
    "gemv(f64(4, 5), f64(5), f64(5))": "ValueError: out has shape (5,)",
    "gemv(f64(4, 5), f32(5))": "TypeError: x has dtype float32, and a float64",
    "gemv(of(f16, 4, 5), of(f16, 5))": "TypeError: a has dtype float16",
    "axpy(1.0, f64(4), f64(5))": "ValueError: y has shape (5,); x makes it (4,)",
    "axpy(1.0, f64(2, 2), f64(2, 2))": "ValueError: x has shape (2, 2); it must have 1",
    "axpy(1.0, (w := f64(10))[:6], w[4:])": "ValueError: y overlaps x",
    "scal(2.0, of(i32, 4))": "TypeError: x has dtype int32",
    "dot(f64(4), f64(5))": "ValueError: y has shape (5,)",
    "dot(f64(4), f64(4), f64(2))": "ValueError: out has shape (2,)",
    "gemm_epilogue(f32(4, 4), f32(4, 4), f32(3))": "ValueError: bias has shape (3,)",
    "gemm_epilogue(f32(4, 4), f32(4, 4), f32(4), activation='tanh')": "ValueError: activation='tanh' is not None",
    "gemm_epilogue(f64(4, 4), f64(4, 4), f32(4))": "TypeError: a has dtype float64",
    "gemm_epilogue(f32(4, 4), f32(3, 4), f32(4))": "ValueError: b has 3 rows, and a 4 columns",
    "fft(c64(3, 0))": "ValueError: x has shape (3, 0): there is no transform of length 0",
    "irfft(c64(1))": "there is no transform of length 0",
    "fft(f32(8))": "TypeError: x has dtype float32; fft takes complex64",
    "rfft(c64(8))": "TypeError: x has dtype complex64; rfft takes float32",
    "rfft(of(complex32, 8))": "TypeError: x has dtype complex32; rfft takes float32",
    "fft(c64(8), of(complex, 8))": "TypeError: out has dtype complex128",
    "fft(c64(8), of(complex32, 8))": "TypeError: out has dtype complex32; fft of complex64",
    "fft(c64(8), c64(9))": "ValueError: out has shape (9,); fft of x (8,) makes it",
    "irfft(c64(5), length=7)": "ValueError: argument 'length' is 7, of 4 complex numbers",
    "irfft(c64(8), f32(14), length=15)": "length=15, and out of shape (14,) has 14 numbers along that axis",
    "fft(c64(4, 4), axes=2)": "ValueError: axes has the int 2, and x has 2 dimensions",
    "fft(c64(4, 4, 4), axes=(0, 2))": "1, 2 or 3 axes that follow one another",
    "fft(c64(8, 8), axes=(0, True))": "TypeError: each of axes must be an int, not bool",
    "fft(c64(4, 4, 4), axes=1)": "ValueError: x of shape (4, 4, 4) has axes before and behind",
    "fft(c64(4, 5, 6)[:, 1:3, :])": "ValueError: x has 30 elements from one index of axis 0",
    "fft(of(complex32, 6))": "lengths that are powers of two",
    "fft((w := c64(12))[:8], w[4:])": "ValueError: out overlaps x in a way that is not in place",
    "spmv(eye(), f64(5))": "ValueError: x has shape (5,); a of shape (4, 4)",
    "spmv(eye(), f32(4))": "TypeError: x has dtype float32, and a float64",
    "spmv(eye(), f64(4), f64(3))": "ValueError: out has shape (3,)",
    "spmv(eye(), f64(8)[::2])": "ValueError: x has strides (16,)",
    "spmv(eye(), f64(4), op='X')": "ValueError: op is one of 'N', 'T', 'C', not the str 'X'",
    "gemvi(f64(3, 4), vector(5))": "ValueError: x has size 5; a of shape (3, 4) with op='N' makes it 4",
    "gemvi(f64(4, 4), vector(4), op='C')": "ValueError: op is one of 'N', 'T', not the str 'C'",
    "gemvi(f32(4, 4), vector(4))": "TypeError: a has dtype float32, and x float64",
    "spmm(eye(), f64(5, 2))": "ValueError: b has 5 rows",
    "spmm(eye('sell'), f64(4, 2))": "ValueError: a has the format 'sell'; this takes csr, coo",
    "spgemm(eye(), eye('coo'))": "ValueError: b has the format 'coo'",
    "sddmm(f64(4, 2), f64(3, 4), eye())": "ValueError: b has 3 rows, and a 2 columns",
    "eye('dia')": "argument 'format' must be one of 'csr', 'coo', 'sell', not the str 'dia'",
    "SparseMatrix('csr', (1, 4), f64(2), of(np.int64, 2), of(i32, 2))": "TypeError: indices has dtype int64",
    "SparseMatrix('csr', (4, 4), f64(2), of(i32, 2), of(i32, 4))": "the format csr of shape (4, 4) makes it (5,)",
    "sparse_from_dense(of(i32, 2, 2))": "TypeError: a has dtype int32",
    "solve_tridiagonal(f64(5, 2), f64(5, 2), f64(5, 2), f64(5, 2))": "it is (systems, unknowns), with 3",
    "solve_tridiagonal(f64(37), f64(37), f64(37), f64(37))": "ValueError: b has shape (37,)",
    "solve_tridiagonal(*[of(i32, 5, 7)] * 4)": "TypeError: b has dtype int32",
    "solve_tridiagonal(f64(5, 7), f64(5, 6), f64(5, 7), f64(5, 7))": "middle has shape (5, 6); b makes it (5, 7)",
    "solve_tridiagonal(f64(5, 7), f64(5, 7), f32(5, 7), f64(5, 7))": "upper has dtype float32, and b float64",
    "solve_tridiagonal(f64(5, 9)[:, :7], f64(5, 7), f64(5, 7), f64(5, 7))": "ValueError: lower has strides",
    "solve_tridiagonal(f64(5, 7), f64(5, 7), u := f64(5, 7), f64(5, 7), u)": "ValueError: out overlaps upper",
    "solve(f64(3, 4), f64(3))": "ValueError: a has shape (3, 4); it must be square",
    "solve(f64(0, 0), f64(0))": "ValueError: a has shape (0, 0)",
    "solve(f64(3, 3), f64(4))": "ValueError: b has shape (4,); a of shape (3, 3) makes it",
    "solve(f64(3, 3), f32(3))": "TypeError: b has dtype float32, and a float64",
    "solve(of(f16, 3, 3), f64(3))": "TypeError: a has dtype float16",
    "cholesky(f64(3, 6)[:, ::2])": "ValueError: a has 16 bytes from column to column",
    "qr(f64(3, 4))": "ValueError: a has shape (3, 4); it must have",
    "lstsq(f64(3, 4), f64(3))": "ValueError: a has shape (3, 4)",
    "svd(f64(3, 3), method='jacobi')": "argument 'method' must be one of",
    "svd(f64(0, 3))": "ValueError: a has shape (0, 3)",
    "solve_triangular(f64(3, 3), f64(3), op='X')": "ValueError: op is one of 'N', 'T', 'C'",
    "host('dice')": "argument 'kind' must be one of 'xorwow', ",
    "host(seed=-1)": "argument 'seed' must be an int from 0 to",
    "host('sobol', 7)": "ValueError: seed=7: the generator 'sobol' takes no seed",
    "host('mt19937', offset=3)": "has no offsets",
    "host(dimensions=3)": "ValueError: dimensions=3: the generator 'philox' is not quasi-random",
    "host(ordering='random')": "ValueError: ordering='random' is not an ordering of cuRAND",
    "host().uniform(empty(4, i32))": "TypeError: out has dtype int32",
    "host().uniform(empty(8)[::2])": "TypeError: out must be a contiguous NumPy array",
    "host().bits([0])": "TypeError: out must be a contiguous NumPy array",
    "Generator().normal(4)": "TypeError: Generator: argument 'out' must be the array to fill, not a shape, the int 4",
    "Generator().uniform((2, 3))": "TypeError: Generator: argument 'out' must be the array to fill, not a shape",
    "Generator().uniform(empty(4))": "TypeError: out must be a DeviceArray, not ndarray",
    "Generator().uniform(f32(4), stream='0')": "TypeError: stream must be a cudart_py Stream or None, not str",
    "host().normal(empty(3))": "'philox' makes normal numbers in pairs: fill an array of 4",
    "normal((3, 5))": "argument 'shape' asks for 15 numbers, and cuRAND makes normal numbers in pairs: ask for 16",
    "log_normal(3)": "ask for 4 and take a slice, log_normal(4)[:3]",
    "host('sobol', dimensions=3).uniform(empty(4))": "ValueError: out has 4 elements, no multiple of the 3 dimensions",
    "host().normal(empty(4), 0, -1)": "ValueError: deviation=-1 is not positive",
    "host().poisson(empty(4, np.uint32), 0)": "ValueError: rate=0 is not above 0",
    "host().poisson(empty(4, np.uint32), 400_000.5)": "rate=400000.5 is not above 0, or exceeds 400000",
    "host().poisson(empty(4, np.uint32), np.inf)": "ValueError: rate=inf is not above 0, or exceeds 400000",
}
QUEUES = {
    "cublas": ("gemm_ex", "dgemv", "axpy_ex", "scal_ex", "dot_ex"),
    "cublasLt": ("matmul",),
    "cufft": ("exec_c2c", "exec_r2c", "exec_c2r", "xt_exec"),
    "cusparse": ("sp_mv", "sp_mm"),
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_wrong_is_named_before_anything_is_queued(device, record, call):
    queued = [record(name, *functions) for name, functions in QUEUES.items()]
    with pytest.raises((TypeError, ValueError)) as error:
        eval(call, dict(NAMES))
    assert REFUSED[call] in f"{error.typename}: {error.value}"
    assert not any(queued)


@pytest.fixture(scope="module")
def world():
    return World()


FUNCTIONS = {name: target for name, target in cases.find_targets().items() if name in libraries.__all__}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_argument_that_is_nothing_of_its_kind_is_named(device, world, name):
    """As the fuzz does at random."""
    for slot in FUNCTIONS[name].slots:
        for label in ("object", "True", "[]", "closed array"):
            assert not list(cases.call_once(FUNCTIONS[name], world, {slot: label}, random.Random(0)))

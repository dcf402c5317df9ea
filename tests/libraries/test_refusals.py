"""Invalid arguments raise an error that names them before anything is queued."""

import random
import re

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
    "cuda": cuda,
    "np": np,
    "sparse": sparse,
    "empty": np.empty,
    "i32": np.int32,
    "i8": np.int8,
    "f16": np.float16,
    "f32": lambda *shape: cuda.zeros(shape, np.float32),
    "f64": lambda *shape: cuda.zeros(shape),
    "c64": lambda *shape: cuda.zeros(shape, np.complex64),
    "f8": lambda *shape: cuda.zeros(shape, libraries.float8_e4m3),
    "of": lambda dtype, *shape: cuda.zeros(shape, dtype),
    "eye": lambda kind="csr": libraries.SparseMatrix.from_host(sparse.eye_array(4, format="csr"), kind),
    "vector": lambda size: libraries.SparseVector(size, cuda.zeros(1, np.int32), cuda.zeros(1)),
    "host": lambda *arguments, **options: libraries.Generator(*arguments, host=True, **options),
}
# For each call: the class of its error, the call and the argument that the error names, and words in their order.
REFUSED = {
    "gemm(f32(4, 5), f32(6, 3))": "ValueError: gemm: b: 5 rows ... op_b='N' ... 'a' ... not 6",
    "gemm(f32(4, 5), f64(5, 3))": "TypeError: gemm: b: float32 ... 'a' ... not float64",
    "gemm(of(i32, 4, 5), of(i32, 5, 3))": "TypeError: gemm: a: float16 ... bfloat16 ... int8 ... not int32",
    "gemm(of(i8, 4, 8), of(i8, 3, 8).T, alpha=0.5)":
        "ValueError: gemm: alpha: whole number ... int8 ... not the float 0.5",
    "gemm(of(i8, 4, 8), of(i8, 3, 8).T, alpha=np.nan)":
        "ValueError: gemm: alpha: whole number ... int8 ... not the float nan",
    "gemm(of(i8, 4, 8), of(i8, 3, 8).T, of(i8, 4, 3))": "TypeError: gemm: out: int32 ... int8 ... not int8",
    "gemm(of(i8, 8, 4).T, of(i8, 3, 8).T)":
        "ValueError: gemm: a: contiguous rows ... 8-bit ... not contiguous columns; pass a.copy()",
    "gemm(of(i8, 4, 8), of(i8, 8, 3))":
        "ValueError: gemm: b: contiguous columns ... 8-bit ... not contiguous rows ... w.T",
    "gemm(of(i8, 4, 8), of(i8, 3, 9)[:, :8].T)": "ValueError: gemm: b: columns ... multiple of 4 ... not 9 ... pad",
    "gemm(of(i8, 4, 12)[:, 1:9], of(i8, 3, 8).T)": "ValueError: gemm: a: begin ... multiple of 4 bytes",
    "matmul(f32(4, 5), f32(4))": "ValueError: matmul: b: 5 elements ... 'a' ... (4, 5) ... not (4,)",
    "matmul(f32(2, 4, 5), f32(3, 5, 3))": "ValueError: matmul: b: batch axes (2,) ... 'a' ... not the shape (3, 5, 3)",
    "matmul(f32(), f32(3))": "ValueError: matmul: a: at least one dimension ... not the shape ()",
    "matmul(f32(4, 5), f32(5, 3), f32(4, 3, 1))": "ValueError: matmul: out: (4, 3) ... 'a' ... 'b' ... not (4, 3, 1)",
    "matmul(f32(3, 4, 6, 5)[:, :3], f32(5, 3))": "ValueError: matmul: a: evenly spaced ... ; pass a.copy()",
    "gemm(f32(4, 5), f32(5))": "ValueError: gemm: b: 2 or 3 dimensions, not the shape (5,); matmul and gemv",
    "gemm(f32(4, 10)[:, ::2], f32(5, 3))": "ValueError: gemm: a: adjacent ... 8 bytes apart ... ; pass a.copy()",
    "gemm(c64(5, 4).T, c64(4, 3), op_a='C')":
        "ValueError: gemm: op_a: 'N' or 'T' ... transposed complex matrix ... not the str 'C' ... pass a copy",
    "gemm(c64(5, 4), c64(5, 3), c64(3, 4).T, op_a='C')":
        "ValueError: gemm: out: contiguous rows with op_a='C', like the complex ... 'a' ... not contiguous columns",
    "gemm(c64(4, 5).T, c64(3, 4), c64(3, 5).T, op_b='C')":
        "ValueError: gemm: out: contiguous rows with op_b='C', like the complex ... 'b' ... not contiguous columns",
    "gemm(f32(4, 5), f32(5, 3), f32(3, 4))": "ValueError: gemm: out: (4, 3) ... 'a' ... 'b' ... not (3, 4)",
    "gemm(f32(4, 5), f32(5, 3), f64(4, 3))": "TypeError: gemm: out: float32 ... 'a' ... not float64",
    "gemm(f32(4, 5), f32(5, 3), op_b='H')": "ValueError: gemm: op_b: 'N', 'T' or 'C' ... not the str 'H'",
    "gemm(f32(4, 5), f32(5, 3), alpha=1j)": "TypeError: gemm: alpha: real number ... float32 ... not the complex 1j",
    "gemm(f32(4, 5), f32(5, 3), alpha=10**400)": "ValueError: gemm: alpha: float32 ... not the int 10000",
    "gemm(f32(4, 5), f32(5, 3), alpha=1e300)": "ValueError: gemm: alpha: float32 ... not the float 1e+300",
    "gemm(f64(4, 5), f64(5, 3), compute='tf32')":
        "ValueError: gemm: compute: 'emulated' ... float64 ... not the str 'tf32'",
    "gemm(f32(4, 5), f32(5, 3), compute='fp8')": "ValueError: gemm: compute: None, 'tf32' ... not the str 'fp8'",
    "gemm(f32(4, 5), f32(5, 3), beta=1.0)":
        "ValueError: gemm: beta: 0 without 'out' ... not the float 1.0 ... pass out",
    "gemm(f32(2, 4, 5), f32(3, 5, 3))": "ValueError: gemm: b: 2 matrices ... 'a' ... not 3",
    "gemm((w := f64(8, 8))[:4, :4], w[2:6, :4], w[4:, :4])": "ValueError: gemm: out: not overlap 'b'",
    "gemm.plan(a := f64(4, 4), a, a)": "ValueError: gemm.plan: out: not overlap 'a'",
    "gemv(f64(4, 5), f64(4))": "ValueError: gemv: x: (5,) ... 'a' ... (4, 5) ... op='N' ... not (4,)",
    "gemv(f64(4, 5), f64(5), f64(5))": "ValueError: gemv: out: (4,) ... 'a' ... (4, 5) ... op='N' ... not (5,)",
    "gemv(f64(4, 5), f32(5))": "TypeError: gemv: x: float64 ... 'a' ... not float32",
    "gemv(of(f16, 4, 5), of(f16, 5))":
        "TypeError: gemv: a: float32 ... float64 ... complex64 ... complex128 ... not float16",
    "axpy(1.0, f64(4), f64(5))": "ValueError: axpy: y: (4,) ... 'x' ... not (5,)",
    "axpy(1.0, f64(2, 2), f64(2, 2))": "ValueError: axpy: x: 1 dimension ... not the shape (2, 2)",
    "axpy(1.0, (w := f64(10))[:6], w[4:])": "ValueError: axpy: y: not overlap 'x'",
    "scal(2.0, of(i32, 4))": "TypeError: scal: x: float16 ... bfloat16 ... float32 ... not int32",
    "dot(f64(4), f64(5))": "ValueError: dot: y: (4,) ... 'x' ... not (5,)",
    "dot(f64(4), f64(4), f64(2))": "ValueError: dot: out: (1,) ... not (2,)",
    "gemm(f32(4, 4), f32(4, 4), algorithm='best')":
        "ValueError: gemm: algorithm: 'heuristic' or 'search' ... not the str 'best'",
    "gemm_epilogue(f32(4, 4), f32(4, 4), f32(3))": "ValueError: gemm_epilogue: bias: (4,) ... 'b' ... not (3,)",
    "gemm_epilogue(f32(4, 4), f32(4, 4), f32(4), activation='tanh')":
        "ValueError: gemm_epilogue: activation: None, 'relu' or 'gelu' ... not the str 'tanh'",
    "gemm_epilogue(c64(4, 4), c64(4, 4))":
        "TypeError: gemm_epilogue: a: float16 ... bfloat16 ... float32 ... float64 ... not complex64",
    "gemm_epilogue(f32(4, 4), f32(3, 4), f32(4))":
        "ValueError: gemm_epilogue: b: 4 rows ... 'a' ... 4 columns ... not 3",
    "gemm_epilogue(f32(4, 5), f32(5, 3), aux=f32(4, 3))": "ValueError: gemm_epilogue: aux: None without an activation",
    "gemm_epilogue(f32(4, 5), f32(5, 3), activation='relu', aux=f32(4, 3))":
        "TypeError: gemm_epilogue: aux: uint8 for 'relu' ... not float32; empty_aux((4, 3), float32, 'relu') makes one",
    "gemm_epilogue(f32(4, 5), f32(5, 3), activation='relu', aux=of(np.uint8, 4, 3))":
        "ValueError: gemm_epilogue: aux: (4, 16) ... not (4, 3); empty_aux",
    "gemm_epilogue(f32(4, 5), f32(5, 3), activation='gelu', aux=f32(4, 3))":
        "ValueError: gemm_epilogue: aux: multiple of 8 elements ... not 3; empty_aux",
    "gemm_gradient(f32(4, 5), f32(5, 3), None, f32(4, 8))":
        "TypeError: gemm_gradient: activation: one of 'relu' or 'gelu', not None",
    "gemm_gradient(f32(4, 5), f32(5, 3), 'relu', f32(4, 8))": "TypeError: gemm_gradient: aux: uint8 ... not float32",
    "gemm_gradient(f32(4, 5), f32(5, 3), 'gelu', f32(4, 8)[:, :3], bias_gradient=f32(4))":
        "ValueError: gemm_gradient: bias_gradient: (3,) ... 'b' ... not (4,)",
    "gemm_sums(f32(4, 5), f32(5, 3), f32(4))": "ValueError: gemm_sums: sums: (3,) ... sums of 'b' ... not (4,)",
    "gemm_sums(f32(4, 5), f32(5, 3), f32(4), of='a')":
        "ValueError: gemm_sums: a: contiguous columns with of='a' ... not contiguous rows; pass x.T",
    "gemm_sums(f32(4, 5), f32(3, 5).T, f32(3))":
        "ValueError: gemm_sums: b: contiguous rows with of='b' ... not contiguous columns; pass b.copy()",
    "gemm_sums(f32(4, 5), f32(5, 3), f32(3), of='out')": "ValueError: gemm_sums: of: 'a' or 'b' ... not the str 'out'",
    "empty_aux((4, 3), 'f4', 'tanh')": "ValueError: empty_aux: activation: 'relu' or 'gelu' ... not the str 'tanh'",
    "scaled_gemm(f32(16, 16), f32(16, 16))":
        "TypeError: scaled_gemm: a: float8_e4m3 or float8_e5m2 ... not float32",
    "scaled_gemm(of(float8_e5m2, 16, 16), of(float8_e5m2, 16, 16))":
        "TypeError: scaled_gemm: b: float8_e4m3 ... 'a' ... not float8_e5m2",
    "scaled_gemm(f8(16, 16), f8(16, 16))":
        "ValueError: scaled_gemm: b: contiguous columns ... 8-bit ... not contiguous rows ... w.T",
    "scaled_gemm(f8(16, 24), f8(16, 24).T)": "ValueError: scaled_gemm: a: multiple of 16 elements ... not 24",
    "scaled_gemm(f8(16, 16), f8(3, 16).T)":
        "ValueError: scaled_gemm: b: rows of 'out' ... multiple of 16 bytes ... not 6 ... pad",
    "scaled_gemm(f8(16, 16), f8(16, 16).T, f32(16))":
        "ValueError: scaled_gemm: scale_b: same kind as 'scale_a'",
    "scaled_gemm(f8(16, 16), f8(16, 16).T, f32(7))":
        "ValueError: scaled_gemm: scale_a: (1,), (16,), (16, 1) or (1, 1) ... not (7,)",
    "scaled_gemm(f8(256, 256), f8(256, 256).T, f32(256, 2), f32(2, 256))":
        "ValueError: scaled_gemm: scale_a: contiguous columns ... not of shape (256, 2) with strides (8, 4)",
    "scaled_gemm(f8(256, 256), f8(256, 256).T, f32(2, 4)[:, :2], f32(2, 4)[:, :2].T)":
        "ValueError: scaled_gemm: scale_b: blocks of 128 elements ... 'scale_a'",
    "scaled_gemm(f8(16, 16), f8(16, 16).T, dtype='f8')":
        "TypeError: scaled_gemm: dtype: bfloat16, float16, float32 or float8_e4m3 ... not float64",
    "scaled_gemm(f8(16, 16), f8(16, 16).T, dtype='f4', bias=f32(16))":
        "TypeError: scaled_gemm: bias: bfloat16 ... float32 ... not float32",
    "scaled_gemm(f8(16, 16), f8(16, 16).T, amax=f32(1))": "ValueError: scaled_gemm: amax: None ... bfloat16",
    "scaled_gemm(f8(16, 16), f8(16, 16).T, s := f32(1), f32(1), dtype=float8_e4m3, amax=s)":
        "ValueError: scaled_gemm: amax: not overlap 'scale_a'",
    "scaled_gemm(f8(16, 16), f8(16, 16).T, out=(w := of(f16, 16, 16)), bias=w[0])":
        "ValueError: scaled_gemm: out: not overlap 'bias'",
    "to_float8([1.0], 'f4')": "TypeError: to_float8: dtype: float8_e4m3 or float8_e5m2 ... not float32",
    "nrm2(of(f16, 4))": "TypeError: nrm2: x: float32 ... float64 ... complex64 ... complex128 ... not float16",
    "nrm2(c64(4), c64(1))": "TypeError: nrm2: out: float32 ... complex64 ... not complex64",
    "iamax(f64(0))": "ValueError: iamax: x: at least one element ... not the shape (0,)",
    "ger(1.0, f64(4), f64(5), f64(5, 4))": "ValueError: ger: a: (4, 5) ... 'x' ... 'y' ... not (5, 4)",
    "symv(f64(4, 5), f64(4))": "ValueError: symv: a: square ... not of shape (4, 5)",
    "symm(f64(4, 4), f64(5, 4))": "ValueError: symm: b: 4 rows ... 'a' ... not (5, 4)",
    "symm(f64(4, 4), f64(4, 5), side='up')": "ValueError: symm: side: 'left' or 'right' ... not the str 'up'",
    "syrk(f64(4, 5), f64(5, 5))": "ValueError: syrk: out: (4, 4) ... 'a' ... not (5, 5)",
    "gemm_batched(f64(2, 4, 4), [f64(4, 4)])": "TypeError: gemm_batched: a: sequence of DeviceArrays ... DeviceArray",
    "gemm_batched([f64(4, 4), f64(4, 5)], [f64(4, 4)] * 2)":
        "ValueError: gemm_batched: a[1]: (4, 4) ... 'a[0]' ... not (4, 5)",
    "gemm_batched([f64(4, 4)], [f64(4, 4)] * 2)": "ValueError: gemm_batched: b: 1 matrices ... 'a' ... not 2",
    "fft(c64(3, 0))": "ValueError: fft: x: at least one ... not (3, 0)",
    "irfft(c64(1))": "ValueError: irfft: x: at least one ... not (1,) ... pass length=1",
    "fft(of(i32, 8))": "TypeError: fft: x: complex64 ... complex128 ... float32 ... not int32",
    "fft(c64(8), norm='scaled')": "ValueError: fft: norm: 'backward', 'ortho', 'forward' ... not the str 'scaled'",
    "irfft(c64(8), norm=2)": "TypeError: irfft: norm: 'backward', 'ortho', 'forward' ... not the int 2",
    "fft(c64(4, 4), axis=0, axes=(0, 1))": "ValueError: fft: axis: None where 'axes' is given ... not the int 0",
    "fft(f32(9)[1:].view(np.complex64))": "ValueError: fft: x: multiple of 8 bytes ... not at 0x",
    "fft(cuda.DeviceArray.borrow((w := c64(8)).pointer, (4,), np.complex64, strides=(0,), owner=w))":
        "ValueError: fft: x: elements that do not overlap ... (0,) bytes",
    "fft(c64(4, 4), axis=2)": "ValueError: fft: axis: from -2 to 1 ... 'x' ... not the int 2",
    "fft(c64(4, 4), axis=(0, 1))": "TypeError: fft: axis: an int ... not the tuple (0, 1)",
    "fft(x := f32(8), x.view(np.complex64))": "ValueError: fft: out: (8,) ... not (4,)",
    "rfft(c64(8))": "TypeError: rfft: x: float32 ... float64 ... float16 ... not complex64",
    "fft(c64(8), of(complex, 8))": "TypeError: fft: out: complex64 ... 'x' ... complex64 ... not complex128",
    "fft(c64(8), c64(9))": "ValueError: fft: out: (8,) ... 'x' ... (8,) ... axes=-1 ... not (9,)",
    "irfft(c64(5), length=7)": "ValueError: irfft: length: 8 or 9 ... 'x' ... not 7; ... first 4 elements of 'x'",
    "irfft(c64(8), f32(14), length=15)": "ValueError: irfft: length: 14 for 'out' ... (14,) ... not 15",
    "fft(c64(4, 4), axes=2)": "ValueError: fft: axes: from -2 to 1 ... 'x' ... not the int 2",
    "fft(c64(4, 4, 4), axes=(0, 2))":
        "ValueError: fft: axes: 1, 2 or 3 consecutive ... not (0, 2) ... ; ... one axis after the other",
    "fft(c64(8, 8), axes=(0, True))": "TypeError: fft: axes[1]: an int ... not the bool True",
    "fft(of(complex32, 6))": "ValueError: fft: x: powers of two ... not (6,)",
    "fft((w := c64(12))[:8], w[4:])": "ValueError: fft: out: not overlap 'x' ... same address",
    "spmv(eye(), f64(5))": "ValueError: spmv: x: (4,) ... 'a' ... (4, 4) ... op='N' ... not (5,)",
    "spmv(eye(), f32(4))": "TypeError: spmv: x: float64 ... 'a' ... not float32",
    "spmv(eye(), f64(4), f64(3))": "ValueError: spmv: out: (4,) ... 'a' ... (4, 4) ... op='N' ... not (3,)",
    "spmv(eye(), f64(8)[::2])": "ValueError: spmv: x: contiguous ... not of shape (4,) with strides (16,)",
    "spmv((m := eye()), f64(4), m.values)": "ValueError: spmv: out: not overlap 'a.values'",
    "spmm((m := eye()), f64(4, 1), m.values.reshape(4, 1))": "ValueError: spmm: out: not overlap 'a.values'",
    "spsv((m := eye()), f64(4), m.values)": "ValueError: spsv: out: not overlap 'a.values'",
    "spsm((m := eye()), f64(4, 1), m.values.reshape(4, 1))": "ValueError: spsm: out: not overlap 'a.values'",
    "spmv(eye(), f64(4), op='X')": "ValueError: spmv: op: 'N', 'T' or 'C' ... not the str 'X'",
    "gemvi(f64(3, 4), vector(5))": "ValueError: gemvi: x: 4 for ... 'a' ... (3, 4) ... op='N' ... not 5",
    "gemvi(f64(4, 4), vector(4), op='C')": "ValueError: gemvi: op: 'N' ... 'T' ... not the str 'C'",
    "gemvi(f32(4, 4), vector(4))": "TypeError: gemvi: a: float64 ... 'x' ... not float32",
    "spmm(eye(), f64(5, 2))": "ValueError: spmm: b: 4 rows ... 'a' ... (4, 4) ... op='N' ... not 5",
    "spmm(eye('sell'), f64(4, 2))": "ValueError: spmm: a: 'csr' ... 'coo' ... not 'sell'",
    "spgemm(eye(), eye('coo'))": "ValueError: spgemm: b: 'csr' ... not 'coo'",
    "sddmm(f64(4, 2), f64(3, 4), eye())": "ValueError: sddmm: b: 2 rows ... 'a' ... 2 columns ... not 3",
    "sddmm((a := f64(4, 2)), f64(2, 4), SparseMatrix('csr', (4, 4), a[:2].reshape(4), of(i32, 4), of(i32, 5)))":
        "ValueError: sddmm: out.values: not overlap 'a'",
    "sddmm(f64(4, 2), (b := f64(2, 4)), SparseMatrix('csr', (4, 4), b[1], of(i32, 4), of(i32, 5)))":
        "ValueError: sddmm: out.values: not overlap 'b'",
    "eye('dia')": "ValueError: SparseMatrix.from_host: format: 'csr' ... 'coo' ... 'sell' ... not the str 'dia'",
    "SparseMatrix('csr', (1, 4), f64(2), of(np.int64, 2), of(i32, 2))":
        "TypeError: SparseMatrix: indices: int32 ... not int64",
    "SparseMatrix('csr', (4, 4), f64(2), of(i32, 2), of(i32, 4))":
        "ValueError: SparseMatrix: offsets: (5,) ... format='csr' ... shape=(4, 4) ... not (4,)",
    "sparse_from_dense(of(i32, 2, 2))":
        "TypeError: sparse_from_dense: a: float32 ... float64 ... complex64 ... complex128 ... not int32",
    "solve_tridiagonal(f64(5, 2), f64(5, 2), f64(5, 2), f64(5, 2))":
        "ValueError: solve_tridiagonal: b: (systems, unknowns) ... at least ... 3 unknowns ... not the shape (5, 2)",
    "solve_tridiagonal(f64(37), f64(37), f64(37), f64(37))":
        "ValueError: solve_tridiagonal: b: (systems, unknowns) ... at least ... 3 unknowns ... not the shape (37,)",
    "solve_tridiagonal(*[of(i32, 5, 7)] * 4)":
        "TypeError: solve_tridiagonal: b: float32 ... float64 ... complex64 ... complex128 ... not int32",
    "solve_tridiagonal(f64(5, 7), f64(5, 6), f64(5, 7), f64(5, 7))":
        "ValueError: solve_tridiagonal: middle: (5, 7) ... 'b' ... not (5, 6)",
    "solve_tridiagonal(f64(5, 7), f64(5, 7), f32(5, 7), f64(5, 7))":
        "TypeError: solve_tridiagonal: upper: float64 ... 'b' ... not float32",
    "solve_tridiagonal(f64(5, 9)[:, :7], f64(5, 7), f64(5, 7), f64(5, 7))":
        "ValueError: solve_tridiagonal: lower: contiguous ... not of shape (5, 7) with strides (72, 8)",
    "solve_tridiagonal(f64(5, 7), f64(5, 7), u := f64(5, 7), f64(5, 7), u)":
        "ValueError: solve_tridiagonal: out: not overlap 'upper'",
    "solve(f64(3, 4), f64(3))": "ValueError: solve: a: square ... at least ... not of shape (3, 4)",
    "solve(f64(0, 0), f64(0))": "ValueError: solve: a: square ... at least ... not of shape (0, 0)",
    "solve(f64(3, 3), f64(4))": "ValueError: solve: b: (3,) ... (3, n) ... 'a' ... (3, 3) ... not (4,)",
    "solve(f64(3, 3), f32(3))": "TypeError: solve: b: float64 ... 'a' ... not float32",
    "solve(of(f16, 3, 3), f64(3))":
        "TypeError: solve: a: float32 ... float64 ... complex64 ... complex128 ... not float16",
    "solve(f64(2, 3, 4), f64(2, 3))": "ValueError: solve: a: square matrices ... not the shape (2, 3, 4)",
    "solve(f64(2, 3, 3), f64(3))": "ValueError: solve: b: (2, 3) ... (2, 3, n) ... 'a' ... (2, 3, 3) ... not (3,)",
    "solve(f64(3, 3), f64(3), precision='float64')":
        "ValueError: solve: precision: 'float32', 'float16' ... not the str 'float64'",
    "solve(f32(3, 3), f32(3), precision='float32')":
        "ValueError: solve: precision: lower ... 'a' ... float32 ... not the str 'float32'",
    "solve(f64(2, 3, 3), f64(2, 3), precision='tf32')":
        "ValueError: solve: precision: None for a batch ... not the str 'tf32'",
    "solve(f64(3, 3), f64(3), precision='tf32', positive=True)":
        "ValueError: solve: precision: None with positive=True ... not the str 'tf32'",
    "lstsq(f64(3, 4), f64(3), rcond=0.1)":
        "ValueError: lstsq: rcond: None with method='qr', not the float 0.1; pass method='svd'",
    "lstsq(f64(2, 3, 4), f64(2, 3))": "ValueError: lstsq: a: as many rows ... not the shape (2, 3, 4)",
    "inv(f64(3, 4))": "ValueError: inv: a: square ... not of shape (3, 4)",
    "lu_factor(of(f16, 3, 3))": "TypeError: lu_factor: a: float32 ... not float16",
    "lu_factor(cuda.full((1, 1), 2.0)).solve(f64(2))": "ValueError: LuFactors.solve: b: (1,) ... not (2,)",
    "cholesky(f64(3, 6)[:, ::2])": "ValueError: cholesky: a: adjacent ... 16 bytes apart ... ; pass a.copy()",
    "qr(f64(3, 4))": "ValueError: qr: a: at least ... as many rows ... (3, 4); Q is that of qr(a[:, :len(a)]), and R",
    "lstsq(f64(3, 4), f64(3))": "ValueError: lstsq: a: at least ... as many rows ... (3, 4); pass method='svd'",
    "svd(f64(3, 3), method='jacobi')": "ValueError: svd: method: 'qr' ... 'polar' ... not the str 'jacobi'",
    "svd(f64(0, 3))": "ValueError: svd: a: at least ... not the shape (0, 3)",
    "solve_triangular(f64(3, 3), f64(3), op='X')":
        "ValueError: solve_triangular: op: 'N', 'T' or 'C' ... not the str 'X'",
    "host('dice')": "ValueError: Generator: kind: 'xorwow' ... 'mrg32k3a' ... 'philox' ... not the str 'dice'",
    "host(7)": "TypeError: Generator: kind: name of a kind of generator ... not the int 7; pass a seed as seed=",
    "host(seed=-1)": "ValueError: Generator: seed: an int from 0 to 18446744073709551615 ... not the int -1",
    "host('sobol', 7)":
        "ValueError: Generator: seed: 0 with kind='sobol' ... not the int 7; ... random shifts ... no seed",
    "host('mt19937', offset=3)": "ValueError: Generator: offset: 0 with kind='mt19937' ... not the int 3",
    "host().skip_to(-1)": "ValueError: Generator.skip_to: offset: an int from 0 to ... not the int -1",
    "host('mt19937').skip_to(3)": "ValueError: Generator.skip_to: offset: 0 with kind='mt19937' ... not the int 3",
    "SparseMatrix.from_host(sparse.eye_array(4, dtype=int))":
        "TypeError: SparseMatrix.from_host: matrix: float32 ... not int64; matrix.astype(np.float64)",
    "spsv(eye('sell'), f64(4))": "ValueError: spsv: a: 'csr' ... 'coo' ... not 'sell'",
    "spsv(eye(), f64(5))": "ValueError: spsv: b: (4,) ... 'a' ... (4, 4) ... not (5,)",
    "spsv(eye(), f32(4))": "TypeError: spsv: b: float64 ... 'a' ... not float32",
    "spsv(eye(), f64(8)[::2])": "ValueError: spsv: b: contiguous ... strides (16,)",
    "spsv(eye(), (w := f64(6))[:4], w[2:])": "ValueError: spsv: out: not overlap 'b'",
    "spsv(eye(), f64(4), lower='upper')": "TypeError: spsv: lower: a bool ... not the str 'upper'",
    "spsm(eye(), f64(5, 2))": "ValueError: spsm: b: 4 rows ... 'a' ... not 5",
    "spsm(eye(), f64(4, 2), f64(4, 3))": "ValueError: spsm: out: (4, 2) ... 'b' ... not (4, 3)",
    "spsm(sparse_from_dense(f64(4, 5)), f64(4, 2))": "ValueError: spsm: a: square ... not of shape (4, 5)",
    "sparse_convert(eye(), 'sell')": "ValueError: sparse_convert: format: 'csr', 'csc' or 'coo' ... not the str 'sell'",
    "sparse_sort(eye('sell'))": "ValueError: sparse_sort: a: 'csr', 'csc' or 'coo' ... not 'sell'",
    "cuda.to_device(sparse.eye_array(4))":
        "TypeError: to_device: host: dense ... not an object of type dia_array; ... SparseMatrix.from_host",
    "SparseMatrix(sparse.eye_array(4))":
        "TypeError: SparseMatrix: format: 'csr' ... not an object of type dia_array; SparseMatrix.from_host(matrix)",
    "sparse_to_dense(eye(), f64(4, 5))": "ValueError: sparse_to_dense: out: (4, 4) ... 'a' ... not (4, 5)",
    "spgemm.plan(eye(), sparse_from_dense(f64(3, 4)))": "ValueError: spgemm.plan: b: 4 rows ... 'a' ... not 3",
    "rfft(f32(2, 8), c64(5))":
        "ValueError: rfft: out: 2 dimensions ... 'x' ... (2, 8) ... axes=-1 ... not the shape (5,)",
    "irfft(c64(2, 5), f32(8))": "ValueError: irfft: out: 2 dimensions ... 'x' ... (2, 5) ... not the shape (8,)",
    "fft.plan(c64(8), c64(9))": "ValueError: fft.plan: out: (8,) ... not (9,)",
    "normal(size=4, dtype='i4')": "TypeError: normal: dtype: float32 or float64 ... not int32",
    "uniform()": "TypeError: uniform: size: given, unless 'out' is; pass the size of a new array",
    "normal(1000)": "TypeError: normal: size: given, unless 'out' is; 1000 ... 'mean'; pass size=1000",
    "uniform(3, 500)":
        "TypeError: uniform: size: given, unless 'out' is; 3 ... 'low' and 500 ... 'high'; pass size=(3, 500)",
    "normal(10**5000)": "TypeError: normal: size: given, unless 'out' is; pass the size of a new array",
    "dot(f64(4), f64(4), empty(1))": "TypeError: dot: out: a DeviceArray ... ; cudart_py.empty makes one",
    "dot(empty(4), f64(4))": "TypeError: dot: x: a DeviceArray ... ; cudart_py.to_device makes one",
    "gemv(f64(4, 4), f64(4, 4))": "ValueError: gemv: x: 1 dimension, not the shape (4, 4); gemm multiplies matrices",
    "spmv(eye(), f64(4, 4))": "ValueError: spmv: x: 1 dimension, not the shape (4, 4); spmm",
    "spmv(eye(), f64(4, 1))": "ValueError: spmv: x: 1 dimension, not the shape (4, 1); pass x.reshape(-1)",
    "spmv(eye(), f64(4), f64(4, 1))": "ValueError: spmv: out: shape (4,) ... not (4, 1)",
    "spmm(eye(), f64(4))": "ValueError: spmm: b: 2 dimensions, not the shape (4,); spmv",
    "spsv(eye(), f64(4, 2))": "ValueError: spsv: b: 1 dimension, not the shape (4, 2); spsm",
    "spsv(eye(), f64(1, 4))": "ValueError: spsv: b: 1 dimension, not the shape (1, 4); pass b.reshape(-1)",
    "spsm(eye(), f64(4))": "ValueError: spsm: b: 2 dimensions, not the shape (4,); spsv",
    "solve(f32(4, 4), c64(4))": "TypeError: solve: b: float32 like 'a', not complex64; convert 'a' to complex64",
    "spmv(eye(), of(complex, 4))": "TypeError: spmv: x: float64 like 'a', not complex128; convert 'a' to complex128",
    "dot(c64(4), c64(4), of(complex, 1))": "TypeError: dot: out: complex64 like 'x', not complex128",
    "gemm(eye(), f64(4))": "TypeError: gemm: a: a DeviceArray ... SparseMatrix; spmv or spmm takes",
    "svd(eye())": "TypeError: svd: a: a DeviceArray ... SparseMatrix; sparse_to_dense takes",
    "cuda.zeros(2, 3)": "TypeError: zeros: dtype: a dtype, not the int 3; pass a shape of several sizes as a tuple",
    "matmul(eye(), f64(4))": "TypeError: matmul: a: a DeviceArray ... SparseMatrix; spmv or spmm takes",
    "solve(eye(), f64(4))": "TypeError: solve: a: a DeviceArray ... SparseMatrix; SparseSolver takes",
    "spmv(sparse.eye_array(4), f64(4))": "TypeError: spmv: a: a SparseMatrix ... ; SparseMatrix.from_host(a) makes one",
    "spmv(f64(4, 4), f64(4))": "TypeError: spmv: a: a SparseMatrix ... ; gemv multiplies a dense matrix",
    "scal(f64(1), f64(3))": "TypeError: scal: alpha: a number ... ; float(alpha) copies it to the host",
    "irfft(c64(5), 8)": "TypeError: irfft: out: a DeviceArray, not the int 8; pass it as length=",
    "rfft(f32(5), 8)": "TypeError: rfft: out: a DeviceArray, not the int 8; ... zeros(n)",
    "rfft(c64(5))": "TypeError: rfft: x: float32, float64 or float16, not complex64; fft transforms complex elements",
    "irfft(f64(5))": "TypeError: irfft: x: complex64 ... not float64; ifft transforms real elements",
    "fft(of(i32, 5))": "TypeError: fft: x: complex64 ... not int32; to_device(x.to_host().astype(np.float64))",
    "svd(f64(5))": "ValueError: svd: a: 2 or 3 dimensions, not the shape (5,)",
    "lstsq(f64(5), f64(5))": "ValueError: lstsq: a: 2 or 3 dimensions, not the shape (5,)",
    "eigh(f64(1, 1, 5, 5))": "ValueError: eigh: a: 2 or 3 dimensions, not the shape (1, 1, 5, 5)",
    "solve_triangular(f64(2, 5, 5), f64(2, 5))":
        "ValueError: solve_triangular: a: 2 dimensions, not the shape (2, 5, 5)",
    "lstsq(f64(2, 5, 3), f64(2, 5), method='svd')":
        "ValueError: lstsq: a: single matrix with method='svd', not of shape (2, 5, 3); pass one matrix after",
    "spsv(eye(), f64(4), False)": "TypeError: spsv: out: a DeviceArray, not the bool False; pass lower=False",
    "rfft(f32(5), axis=1)": "ValueError: rfft: axis: from -1 to 0 ... (5,), not the int 1",
    "irfft(c64(5), length=10)": "ValueError: irfft: length: 8 or 9 ... (5,), not 10; ... zeros of length 6",
    "dot(f64(4, 4), f64(4, 4))": "ValueError: dot: x: 1 dimension ... ; matmul multiplies matrices",
    "SparseSolver(eye('csc'))": "ValueError: SparseSolver: a: 'csr' ... not 'csc'; sparse_convert(a, 'csr')",
    "SparseVector(4, f64(2), f64(2))":
        "TypeError: SparseVector: indices: int32 ... not float64; ... astype(np.int32)",
    "uniform(size=4, out=f32(4))": "ValueError: uniform: size: None where 'out' is given ... not the int 4",
    "host(dimensions=3)": "ValueError: Generator: dimensions: 1 with kind='philox' ... not the int 3",
    "host(ordering='random')":
        "ValueError: Generator: ordering: 'best' ... 'default' ... 'seeded' ... not the str 'random'",
    "host().uniform(empty(4, i32))": "TypeError: Generator.uniform: out: float32 ... float64 ... not int32",
    "host().uniform(empty(8)[::2])":
        "ValueError: Generator.uniform: out: contiguous ... not of shape (4,) with strides (16,)",
    "Generator().normal(4)":
        "TypeError: Generator.normal: out: array to fill ... not the int 4 ... pass cudart_py.empty",
    "Generator().uniform((2, 3))":
        "TypeError: Generator.uniform: out: array to fill ... not the tuple (2, 3) ... pass cudart_py.empty",
    "Generator().uniform(empty(4))":
        "TypeError: Generator.uniform: out: a DeviceArray ... not a NumPy array of dtype float64 ... ; cudart_py.empty",
    "host().normal(empty(3))":
        "ValueError: Generator.normal: out: even ... not 3 ... fill an array of 4 and take a slice",
    "normal(out=f32(3, 5))": "ValueError: normal: out: even ... not 15 ... fill an array of 16 and take a slice",
    "normal((3, 5))": "TypeError: normal: mean: a number ... not the tuple (3, 5); pass a shape as size=",
    "exponential(0, 4)": "ValueError: exponential: scale: positive ... not the int 0",
    "uniform(-3e38, 3e38, 4)":
        "ValueError: uniform: high: close to 'low', which is -3e+38 ... float32 ... not the float 3e+38",
    "uniform(2, 1, 4)": "ValueError: uniform: high: at least 'low', which is 2.0 ... not the float 1.0",
    "poisson([2, 3])": "TypeError: poisson: rate: a number ... not the list [2, 3]; pass a shape as size=",
    "host('sobol', dimensions=3).uniform(empty(4))": "ValueError: Generator.uniform: out: 3 elements ... not 4",
    "host('sobol64', dimensions=2).uniform(empty((10, 2)))":
        "ValueError: Generator.uniform: out: 2 rows ... dimensions=2 ... not the shape (10, 2)",
    "host('sobol').uniform(empty((4, 2)))":
        "ValueError: Generator.uniform: out: have 1 row, ... dimensions=1 ... not the shape (4, 2)",
    "host().normal(empty(4), 0, -1)": "ValueError: Generator.normal: deviation: positive ... not the int -1",
    "host().poisson(empty(4, np.uint32), 0)":
        "ValueError: Generator.poisson: rate: above 0 ... 400000 ... not the int 0",
    "host().poisson(empty(4, np.uint32), 400_000.5)":
        "ValueError: Generator.poisson: rate: above 0 ... 400000 ... not the float 400000.5",
    "host().poisson(empty(4, np.uint32), np.inf)":
        "ValueError: Generator.poisson: rate: above 0 ... 400000 ... not the float inf",
}  # fmt: skip  # each call is beside its error
QUEUES = {
    "cublas": ("gemm_ex", "dgemv", "axpy_ex", "scal_ex", "dot_ex"),
    "cublasLt": ("matmul",),
    "cufft": ("exec_c2c", "exec_r2c", "exec_c2r", "xt_exec"),
    "cusparse": ("sp_mv", "sp_mm", "sddmm", "sp_sv_solve", "sp_sm_solve", "csr2csc_ex2"),
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_wrong_is_named_before_anything_is_queued(device, record, call):
    queued = [record(name, *functions) for name, functions in QUEUES.items()]
    with pytest.raises((TypeError, ValueError)) as error:
        eval(call, dict(NAMES))
    kind, called, name, facts = REFUSED[call].split(": ", 3)
    assert error.typename == kind
    text = str(error.value)
    assert text.startswith(f"{called}: argument {name!r} must ")
    assert re.search(".*".join(map(re.escape, facts.split(" ... "))), text), text
    assert not any(queued)


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("blas.products", "gemm(f32(4, 5), f32(6, 3))"),
        ("blas.products", "gemm.plan(f32(4, 5), f32(5, 3), compute='fp8')"),
        ("outputs", "gemv(f64(4, 5), f64(5), alpha='x')"),
        ("fourier.calls", "fft(c64(4, 4, 4), axes=(0, 2))"),
        ("fourier.calls", "irfft(c64(4, 10)[:, ::2], axes=None)"),
        ("outputs", "spmm(eye(), f64(4, 2), alpha='x')"),
        ("random_numbers.functions", "normal(0, -1, 4)"),
        ("random_numbers.functions", "uniform(size=4, dtype='i4')"),
    ],
)
def test_no_output_is_allocated_for_a_call_that_is_refused(device, monkeypatch, module, call):
    def refuse(*arguments, **options):
        raise AssertionError("an output was allocated")

    libraries.uniform(size=1)  # makes the thread's generator
    monkeypatch.setattr(f"cudart_py.libraries.{module}.empty", refuse)
    with pytest.raises((TypeError, ValueError)):
        eval(call, dict(NAMES))


@pytest.mark.parametrize(("a", "x", "converts"), [(np.float64, np.float32, True), (np.float64, np.complex128, False)])
def test_a_conversion_is_proposed_unless_it_loses_imaginary_parts(device, a, x, converts):
    with pytest.raises(TypeError, match=f"'x' must have dtype float64 like 'a', not {np.dtype(x)}") as error:
        libraries.gemv(cuda.zeros((3, 3), a), cuda.zeros(3, x))
    assert ("astype" in str(error.value)) == converts


@pytest.fixture(scope="module")
def world():
    return World()


FUNCTIONS = {
    name: target for name, target in cases.find_targets().items() if name.partition(".")[0] in libraries.__all__
}
WRONG = (
    "None", "True", "1.5", "(1+2j)", "'x'", "[]", "(1, 2)", "object", "class Stream", "closed Stream", "stream",
    "closed array", "device array", "strided device array", "complex array", "float32", "dtype",
)  # fmt: skip  # a list of labels


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_argument_of_the_wrong_kind_is_named_with_its_call(device, world, name):
    """The same calls as the argument fuzzer makes at random."""
    target = FUNCTIONS[name]
    found = [
        finding
        for slot in target.slots
        for finding in cases.call_with_each(
            target, world, slot, ["closed"] if slot == "self" else WRONG, random.Random(0)
        )
    ]
    assert not found

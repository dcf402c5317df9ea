"""Dense solvers on the device: every result against LAPACK, residuals, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.libraries.failures import NotPositiveDefiniteError, SingularMatrixError
from cudart_py.libraries.solvers.factors import eigh, lstsq, qr, svd
from cudart_py.libraries.solvers.linear import cholesky, solve, solve_triangular

pytestmark = pytest.mark.needs("libraries")

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


def numbers(rng, shape, dtype):
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def positive(rng, n, dtype):
    a = numbers(rng, (n, n), dtype)
    return a @ a.conj().T + n * np.eye(n, dtype=dtype)


def same(got, expected, dtype):
    return np.linalg.norm(got - expected) <= 200 * np.finfo(dtype).eps * max(np.linalg.norm(expected), 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [None, 1, 3])
def test_solve_is_numpys(device, rng, dtype, columns):
    a = positive(rng, 6, dtype) + numbers(rng, (6, 6), dtype)
    b = numbers(rng, 6 if columns is None else (6, columns), dtype)
    x = solve(cuda.to_device(a), cuda.to_device(b)).to_host()
    assert x.shape == b.shape
    assert same(a @ x, b, dtype)


def test_solve_changes_neither_operand(device, rng):
    a, b = numbers(rng, (5, 5), np.float64), numbers(rng, (5, 2), np.float64)
    operands = cuda.to_device(a), cuda.to_device(b)
    solve(*operands)
    assert np.array_equal(operands[0].to_host(), a)
    assert np.array_equal(operands[1].to_host(), b)


def test_solve_takes_a_window(device, rng):
    a = numbers(rng, (9, 9), np.float64)
    b = numbers(rng, (9, 9), np.float64)
    x = solve(cuda.to_device(a)[2:7, 1:6], cuda.to_device(b)[:5, 3:5])
    assert np.allclose(a[2:7, 1:6] @ x.to_host(), b[:5, 3:5])


@pytest.mark.parametrize("dtype", DTYPES)
def test_solve_of_a_positive_matrix_reads_its_lower_triangle(device, rng, dtype):
    a, b = positive(rng, 6, dtype), numbers(rng, (6, 2), dtype)
    x = solve(cuda.to_device(np.tril(a)), cuda.to_device(b), positive=True).to_host()
    assert same(a @ x, b, dtype)


def test_a_singular_matrix_is_named_with_its_pivot(device):
    a = np.diag([1.0, 2.0, 0.0, 4.0])
    with pytest.raises(SingularMatrixError, match="a is singular: pivot 2 of its elimination is zero") as error:
        solve(cuda.to_device(a), cuda.zeros(4))
    assert error.value.pivot == 2
    assert isinstance(error.value, cuda.CudaError)
    assert isinstance(error.value, np.linalg.LinAlgError)


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky_is_numpys(device, rng, dtype):
    a = positive(rng, 7, dtype)
    factor = cholesky(cuda.to_device(a)).to_host()
    assert same(factor, np.linalg.cholesky(a), dtype)
    assert not np.triu(factor, 1).any()


def test_a_matrix_that_is_not_positive_definite_is_named_with_its_minor(device):
    a = np.diag([1.0, 2.0, -1.0, 4.0])
    with pytest.raises(NotPositiveDefiniteError, match="its leading minor of order 3 is not positive") as error:
        cholesky(cuda.to_device(a))
    assert error.value.minor == 3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", "NTC")
@pytest.mark.parametrize("lower", [True, False])
def test_triangular_systems_are_solved_both_ways(device, rng, dtype, op, lower):
    a = numbers(rng, (5, 5), dtype) + 5 * np.eye(5, dtype=dtype)
    triangle = np.tril(a) if lower else np.triu(a)
    turned = {"N": triangle, "T": triangle.T, "C": triangle.conj().T}[op]
    b = numbers(rng, (5, 2), dtype)
    x = solve_triangular(cuda.to_device(a), cuda.to_device(b), lower=lower, op=op).to_host()
    assert same(turned @ x, b, dtype)


def test_a_unit_triangle_does_not_read_its_diagonal(device, rng):
    a = np.tril(numbers(rng, (5, 5), np.float64), -1)
    b = numbers(rng, 5, np.float64)
    x = solve_triangular(cuda.to_device(a), cuda.to_device(b), unit=True).to_host()
    assert np.allclose((a + np.eye(5)) @ x, b)


def test_a_triangle_with_a_zero_on_its_diagonal_is_singular(device):
    with pytest.raises(SingularMatrixError, match="its diagonal is zero in row 1"):
        solve_triangular(cuda.to_device(np.diag([1.0, 0.0, 2.0])), cuda.zeros(3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_qr_multiplies_back(device, rng, dtype):
    a = numbers(rng, (8, 5), dtype)
    q, r = (part.to_host() for part in qr(cuda.to_device(a)))
    assert q.shape == (8, 5)
    assert same(q @ r, a, dtype)
    assert same(q.conj().T @ q, np.eye(5), dtype)
    assert not np.tril(r, -1).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [None, 3])
def test_lstsq_is_numpys(device, rng, dtype, columns):
    a = numbers(rng, (9, 4), dtype)
    b = numbers(rng, 9 if columns is None else (9, columns), dtype)
    x = lstsq(cuda.to_device(a), cuda.to_device(b)).to_host()
    assert same(x, np.linalg.lstsq(a, b)[0], dtype)


def test_lstsq_names_the_column_that_depends_on_others(device, rng):
    a = numbers(rng, (9, 4), np.float64)
    a[:, 2] = a[:, 0] + a[:, 1]
    with pytest.raises(SingularMatrixError, match="a has not full rank: column 2") as error:
        lstsq(cuda.to_device(a), cuda.zeros(9))
    assert error.value.pivot == 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["qr", "polar"])
@pytest.mark.parametrize("shape", [(8, 5), (5, 8), (6, 6)])
def test_svd_is_numpys(device, rng, dtype, method, shape):
    a = numbers(rng, shape, dtype)
    u, s, vh = (part.to_host() for part in svd(cuda.to_device(a), method=method))
    assert (u.shape, s.shape, vh.shape) == ((shape[0], min(shape)), (min(shape),), (min(shape), shape[1]))
    assert same(u * s @ vh, a, dtype)
    assert same(s, np.linalg.svd(a, compute_uv=False), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigh_is_numpys(device, rng, dtype):
    a = positive(rng, 6, dtype)
    values, vectors = (part.to_host() for part in eigh(cuda.to_device(np.tril(a))))
    assert same(values, np.linalg.eigvalsh(a), dtype)
    assert same(a @ vectors, vectors * values, dtype)


def matrix(*shape, dtype=np.float64):
    return cuda.zeros(shape, dtype)


BAD = {
    "not square": (lambda: solve(matrix(3, 4), matrix(3)), r"a has shape \(3, 4\); it must be square"),
    "empty": (lambda: solve(matrix(0, 0), matrix(0)), r"a has shape \(0, 0\)"),
    "right-hand side": (lambda: solve(matrix(3, 3), matrix(4)), r"b has shape \(4,\); a of shape \(3, 3\) makes it"),
    "dtypes": (lambda: solve(matrix(3, 3), matrix(3, dtype=np.float32)), "b has dtype float32, and a float64"),
    "half": (lambda: solve(matrix(3, 3, dtype=np.float16), matrix(3)), "a has dtype float16"),
    "gaps": (lambda: cholesky(matrix(3, 6)[:, ::2]), "a has 16 bytes from column to column"),
    "wide": (lambda: qr(matrix(3, 4)), r"a has shape \(3, 4\); it must have"),
    "wide fit": (lambda: lstsq(matrix(3, 4), matrix(3)), r"a has shape \(3, 4\)"),
    "method": (lambda: svd(matrix(3, 3), method="jacobi"), "argument 'method' must be one of"),
    "nothing": (lambda: svd(matrix(0, 3)), r"a has shape \(0, 3\)"),
    "operation": (
        lambda: solve_triangular(matrix(3, 3), matrix(3), op="X"),
        "op is one of 'N', 'T', 'C'",
    ),
    "positive": (lambda: solve(matrix(3, 3), matrix(3), positive="no"), "positive must be a bool, not str"),
    "lower": (lambda: solve_triangular(matrix(3, 3), matrix(3), lower="U"), "lower must be a bool, not str"),
    "unit": (lambda: solve_triangular(matrix(3, 3), matrix(3), unit=1), "unit must be a bool, not int"),
    "host": (lambda: eigh(np.eye(3)), "a must be a DeviceArray, not ndarray"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named(device, case):
    call, text = BAD[case]
    with pytest.raises((TypeError, ValueError), match=text):
        call()

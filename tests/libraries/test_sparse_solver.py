"""Direct solutions of sparse systems in stages: residuals in extended precision, and what is refused."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries as lib

sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed (the extra cpu)")

pytestmark = [pytest.mark.needs("libraries"), pytest.mark.needs("cudss")]

N = 60


@pytest.fixture
def matrix(rng, numbers):
    """Return a function that makes a sparse matrix whose diagonal dominates."""

    def make(dtype):
        places = sparse.random_array((N, N), density=0.05, rng=rng, format="csr")
        found = places.astype(dtype)
        found.data = numbers(found.nnz, dtype)
        return (found + 5 * sparse.eye_array(N, dtype=dtype)).tocsr()

    return make


def near(a, x, b):
    """Check the residual, relative to the right-hand sides."""
    residual = a.toarray().astype(np.clongdouble) @ x - b
    return np.linalg.norm(residual.astype(complex)) <= 200 * np.finfo(b.dtype).eps * np.linalg.norm(b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("refinements", [0, 2])
def test_a_system_is_solved_again_and_with_new_values(device, matrix, numbers, dtype, refinements):
    a = matrix(dtype)
    ours = lib.SparseMatrix.from_host(a)
    with lib.SparseSolver(ours, refinements=refinements) as solver:
        solver.analyze()
        solver.factorize()
        assert solver.factor_elements >= N
        for columns in ((), (1,), (4,)):
            b = numbers((N, *columns), dtype)
            x = solver.solve(cuda.to_device(b)).to_host()
            assert x.shape == b.shape
            assert near(a, x, b)
        other = a.copy()
        other.data = a.data * np.linspace(1, 2, a.nnz).astype(dtype)
        solver.refactorize(cuda.to_device(other.data))
        assert near(other, solver.solve(cuda.to_device(b)).to_host(), b)
        assert np.array_equal(ours.values.to_host(), a.data)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("triangle", ["lower", "upper"])
def test_a_positive_definite_matrix_needs_one_triangle(device, matrix, numbers, dtype, triangle):
    a = matrix(dtype)
    a = (a @ a.conj().T).tocsr()
    half = (sparse.tril if triangle == "lower" else sparse.triu)(a).tocsr()
    b = numbers((N, 2), dtype)
    for stored in (half, a):  # elements of the other triangle are ignored
        solver = lib.SparseSolver(lib.SparseMatrix.from_host(stored), kind="positive", triangle=triangle)
        assert near(a, solver.solve(cuda.to_device(b)).to_host(), b)


def test_a_matrix_without_factors_is_named(device):
    indefinite = sparse.diags_array([1.0, -1.0, 2.0]).tocsr()
    solver = lib.SparseSolver(lib.SparseMatrix.from_host(indefinite), kind="positive")
    with pytest.raises(lib.NotPositiveDefiniteError, match=r"^SparseSolver.factorize: the matrix is not positive"):
        solver.factorize()
    singular = sparse.csr_array((np.array([1.0, 0.0, 2.0]), [0, 1, 2], [0, 1, 2, 3]))
    with pytest.warns(lib.IllConditionedWarning, match="1 pivot was zero") as caught:
        lib.SparseSolver(lib.SparseMatrix.from_host(singular)).solve(cuda.full(3, 1.0))
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("matrix", "count"),
    [
        (np.ones((4, 4)), 3),
        (np.kron(np.eye(5), np.full((3, 3), 2.0)), 10),
        (sparse.csr_array((np.zeros(64), np.arange(64), np.arange(65))), 64),
    ],
    ids=["rank 1", "five blocks of rank 1", "zero"],
)
def test_the_replaced_pivots_are_counted(device, matrix, count):
    """As many as the order exceeds the rank. The solution is finite, though it has no correct digits."""
    solver = lib.SparseSolver(lib.SparseMatrix.from_host(sparse.csr_array(matrix)))
    with pytest.warns(lib.IllConditionedWarning, match=rf"{count} pivots were zero to within rounding error"):
        x = solver.solve(cuda.full(matrix.shape[0], 1.0)).to_host()
    assert np.isfinite(x).all()


@pytest.mark.parametrize("kind", ["symmetric", "hermitian", "positive"])
def test_a_matrix_that_stores_only_the_other_triangle_is_refused(device, matrix, kind):
    a = matrix(np.float64)
    a = (a @ a.T).tocsr()
    for half, triangle, other in ((sparse.triu(a), "lower", "upper"), (sparse.tril(a), "upper", "lower")):
        solver = lib.SparseSolver(lib.SparseMatrix.from_host(half.tocsr()), kind=kind, triangle=triangle)
        with pytest.raises(ValueError, match=f"^SparseSolver: argument 'triangle' must be '{other}' for 'a'"):
            solver.factorize()
    diagonal = sparse.diags_array(np.arange(1.0, 5)).tocsr()
    x = lib.SparseSolver(lib.SparseMatrix.from_host(diagonal), kind=kind).solve(cuda.full(4, 1.0))
    assert np.allclose(x.to_host(), 1 / np.arange(1, 5))


def test_what_is_wrong_is_named_and_a_closed_solver_is_refused(device, matrix):
    a = lib.SparseMatrix.from_host(matrix(np.float64))
    solver = lib.SparseSolver(a)
    with pytest.raises(ValueError, match=r"^SparseSolver.solve: argument 'b' must have shape \(60,\) or \(60, k\)"):
        solver.solve(cuda.zeros(N + 1))
    with pytest.raises(TypeError, match=r"^SparseSolver.solve: argument 'b' must have dtype float64"):
        solver.solve(cuda.zeros(N, np.float32))
    with pytest.raises(ValueError, match=r"^SparseSolver.refactorize: argument 'values' must have shape"):
        solver.refactorize(cuda.zeros(3))
    with pytest.raises(ValueError, match="^SparseSolver: argument 'kind' must be one of 'general'"):
        lib.SparseSolver(a, kind="triangular")
    with pytest.raises(ValueError, match="^SparseSolver: argument 'a' must be square"):
        lib.SparseSolver(lib.SparseMatrix.from_host(sparse.csr_array(np.ones((3, 4)))))
    solver.close()
    with pytest.raises(ValueError, match=r"^SparseSolver.solve: this SparseSolver is closed"):
        solver.solve(cuda.zeros(N))


def test_a_solver_whose_new_values_have_no_factors_does_not_solve_with_the_old_ones(device):
    a = lib.SparseMatrix.from_host(sparse.diags_array([1.0, 2.0, 3.0]).tocsr())
    right = cuda.full(3, 6.0)
    with lib.SparseSolver(a, kind="positive") as solver:
        assert np.allclose(solver.solve(right).to_host(), [6, 3, 2])
        with pytest.raises(lib.NotPositiveDefiniteError, match=r"^SparseSolver\.refactorize"):
            solver.refactorize(cuda.to_device(np.array([1.0, -2.0, 3.0])))
        with pytest.raises(lib.NotPositiveDefiniteError):
            solver.solve(right)
        solver.refactorize(cuda.to_device(np.array([2.0, 2.0, 3.0])))
        assert np.allclose(solver.solve(right).to_host(), [3, 3, 2])


def test_a_closed_array_of_the_matrix_is_named(device, matrix):
    a = lib.SparseMatrix.from_host(matrix(np.float64))
    solver = lib.SparseSolver(a)
    a.values.close()
    with pytest.raises(ValueError, match=r"^SparseSolver\.analyze: argument 'values' must be open"):
        solver.analyze()
    with pytest.raises(ValueError, match=r"^SparseSolver\.factorize: argument 'values' must be open"):
        solver.solve(cuda.full(N, 1.0))

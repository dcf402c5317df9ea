"""Batches of small systems and factorizations, factors that solve many systems, inverses, and refined solutions."""

import warnings

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries as lib

pytestmark = pytest.mark.needs("libraries")

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
COUNT, N = 7, 6


def near(got, expected, dtype, factor=300):
    """Compare in units of the precision, relative to the norm of the expected values."""
    return np.linalg.norm(got - expected) <= factor * np.finfo(dtype).eps * max(np.linalg.norm(expected), 1)


def hermitian(x):
    return x.conj().swapaxes(-1, -2)


@pytest.fixture
def definite(numbers):
    """Return a function that makes a batch of positive definite matrices."""

    def make(dtype, count=COUNT):
        a = numbers((count, N, N), dtype)
        return a @ hermitian(a) + N * np.eye(N, dtype=dtype)

    return make


@every_dtype
def test_a_batch_has_cholesky_factors(device, definite, dtype):
    a = definite(dtype)
    factors = lib.cholesky(cuda.to_device(np.tril(a))).to_host()
    assert near(factors @ hermitian(factors), a, dtype)
    assert not np.triu(factors, 1).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 5, 31, 32, 33])
def test_small_matrices_have_numpys_cholesky_factors(device, rng, dtype, n):
    """The largest matrices of the package's own kernel have 32 rows. It reads no elements above the diagonal."""
    whole = np.full((COUNT, n + 2, n + 3), np.nan)
    x = rng.standard_normal((COUNT, n, n))
    a = x @ x.swapaxes(1, 2) + n * np.eye(n)
    whole[:, 1:-1, 2:-1] = np.where(np.tri(n), a, np.nan)
    factors = lib.cholesky(cuda.to_device(whole.astype(dtype))[:, 1:-1, 2:-1]).to_host()
    assert near(factors, np.linalg.cholesky(a), dtype, 20 * n)


@every_dtype
@pytest.mark.parametrize("columns", [(), (1,), (3,)])
@pytest.mark.parametrize("positive", [True, False])
def test_a_batch_of_systems_is_solved(device, numbers, definite, dtype, columns, positive):
    a = definite(dtype) if positive else definite(dtype) + numbers((COUNT, N, N), dtype)
    b = numbers((COUNT, N, *columns), dtype)
    operands = cuda.to_device(np.tril(a) if positive else a), cuda.to_device(b)
    x = lib.solve(*operands, positive=positive).to_host()
    assert x.shape == b.shape
    shape = (COUNT, N, -1)
    assert near(a @ x.reshape(shape), b.reshape(shape), dtype)
    assert np.array_equal(operands[1].to_host(), b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 31, 32, 33])
def test_rows_of_small_systems_are_interchanged(device, rng, dtype, n):
    """Zeros on the diagonal require interchanges; the largest systems of the package's own kernel have 32 unknowns."""
    exact = rng.integers(-9, 10, (COUNT, n))
    a = rng.standard_normal((COUNT, n, n)).astype(dtype)
    a = a * (1 - np.eye(n, dtype=dtype)) if n > 1 else a
    b = np.einsum("kij,kj->ki", a.astype(np.float64), exact)
    x = lib.solve(cuda.to_device(a), cuda.to_device(b.astype(dtype))).to_host()
    bound = 100 * n * np.finfo(dtype).eps * np.linalg.cond(a.astype(np.float64))
    assert (np.linalg.norm(x - exact, axis=1) <= bound * np.linalg.norm(exact, axis=1)).all()


def test_a_batch_is_taken_from_windows_of_larger_matrices(device, numbers):
    whole = numbers((5, 9, 9))
    a, b = cuda.to_device(whole)[1:4, 2:8, 1:7], cuda.to_device(whole)[:3, :6, 4:6]
    assert np.allclose(whole[1:4, 2:8, 1:7] @ lib.solve(a, b).to_host(), whole[:3, :6, 4:6])


@every_dtype
def test_a_batch_has_orthogonal_factors_and_least_squares(device, numbers, dtype):
    a, b = numbers((COUNT, 9, 4), dtype), numbers((COUNT, 9, 2), dtype)
    q, r = (part.to_host() for part in lib.qr(cuda.to_device(a)))
    assert near(q @ r, a, dtype)
    assert near(hermitian(q) @ q, np.broadcast_to(np.eye(4), (COUNT, 4, 4)), dtype)
    assert not np.tril(r, -1).any()
    x = lib.lstsq(cuda.to_device(a), cuda.to_device(b)).to_host()
    assert near(hermitian(a) @ (a @ x - b), 0 * x, dtype)  # the normal equations


@every_dtype
@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (32, 32), (40, 5)])
def test_a_batch_has_singular_values(device, numbers, dtype, shape):
    a = numbers((3, *shape), dtype)
    u, s, vh = (part.to_host() for part in lib.svd(cuda.to_device(a)))
    assert near((u * s[:, None]) @ vh, a, dtype, 1000)
    assert near(s, np.linalg.svd(a, compute_uv=False), dtype, 1000)


@every_dtype
def test_a_batch_has_eigenvalues(device, definite, dtype):
    a = definite(dtype)
    values, vectors = (part.to_host() for part in lib.eigh(cuda.to_device(np.tril(a))))
    assert near(a @ vectors, vectors * values[:, None], dtype)
    assert near(values, np.linalg.eigvalsh(a), dtype)


def test_the_matrix_of_a_batch_that_fails_is_named(device):
    broken = np.stack([np.eye(3), np.diag([1.0, 2.0, 0.0]), np.diag([1.0, -1.0, 1.0])])
    with pytest.raises(lib.SingularMatrixError, match="^solve: matrix 1 of 'a' is singular: pivot 2") as error:
        lib.solve(cuda.to_device(broken), cuda.zeros((3, 3)))
    assert error.value.pivot == 2
    with pytest.raises(lib.NotPositiveDefiniteError, match="^cholesky: matrix 1 .* minor of order 3"):
        lib.cholesky(cuda.to_device(broken))
    with pytest.raises(lib.NotPositiveDefiniteError, match="^solve: matrix 1 .* minor of order 3"):
        lib.solve(cuda.to_device(broken), cuda.zeros((3, 3)), positive=True)
    with pytest.raises(lib.SingularMatrixError, match="^lstsq: matrix 0 of 'a' does not have full rank: column 1"):
        lib.lstsq(cuda.to_device(np.ones((2, 5, 2))), cuda.zeros((2, 5)))


def test_a_single_column_of_a_window_is_solved(device, numbers):
    whole = numbers((5, 6, 4))
    a = numbers((5, 6, 6)) + 6 * np.eye(6)
    for count in (1, 5):
        x = lib.solve(cuda.to_device(a[:count]), cuda.to_device(whole)[:count, :, 2:3])
        assert np.allclose(x.to_host(), np.linalg.solve(a[:count], whole[:count, :, 2:3]))


def test_no_right_hand_sides_have_no_solutions(device):
    for solve, a in ((lib.solve, cuda.zeros((3, 3))), (lib.lstsq, cuda.zeros((5, 3)))):
        assert solve(a, cuda.empty((a.shape[0], 0))).shape == (3, 0)
        batch = cuda.zeros((2, *a.shape))
        assert solve(batch, cuda.empty((2, a.shape[0], 0))).shape == (2, 3, 0)
    assert lib.lstsq(cuda.empty((0, 5, 3)), cuda.empty((0, 5))).shape == (0, 3)


def test_an_empty_batch_has_empty_results(device):
    empty = cuda.empty((0, 4, 3))
    assert [part.shape for part in lib.qr(empty)] == [(0, 4, 3), (0, 3, 3)]
    assert [part.shape for part in lib.svd(empty)] == [(0, 4, 3), (0, 3), (0, 3, 3)]
    assert lib.cholesky(cuda.empty((0, 3, 3))).shape == (0, 3, 3)
    assert lib.inv(cuda.empty((0, 3, 3))).shape == (0, 3, 3)


@every_dtype
@pytest.mark.parametrize("batch", [(), (COUNT,)])
def test_factors_solve_systems_again_and_inverses_multiply_to_one(device, numbers, dtype, batch):
    a = numbers((*batch, N, N), dtype) + N * np.eye(N, dtype=dtype)
    factors = lib.lu_factor(cuda.to_device(a))
    for op, turned in {"N": a, "T": a.swapaxes(-1, -2), "C": hermitian(a)}.items():
        b = numbers((*batch, N, 2), dtype)
        assert near(turned @ factors.solve(cuda.to_device(b), op=op).to_host(), b, dtype)
    assert near(a @ factors.solve(cuda.to_device(b[..., 0].copy())).to_host()[..., None], b[..., :1], dtype)
    assert near(a @ lib.inv(cuda.to_device(a)).to_host(), np.broadcast_to(np.eye(N), a.shape), dtype)
    if not batch:
        lu, order = factors.lu.T.to_host().T, np.arange(N)
        for row, other in enumerate(factors.pivots.to_host() - 1):
            order[[row, other]] = order[[other, row]]
        assert near((np.tril(lu, -1) + np.eye(N)) @ np.triu(lu), a[order], dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_transposed_operands_are_solved(device, numbers, definite, dtype):
    a, b = definite(dtype, 1)[0] + numbers((N, N), dtype), numbers((2, N), dtype)
    turned, right = cuda.to_device(a).T, cuda.to_device(b).T
    assert near(a.T @ lib.solve(turned, right).to_host(), b.T, dtype)
    assert near(a.T @ lib.lu_factor(turned).solve(right).to_host(), b.T, dtype)
    assert near(a.T @ lib.inv(turned).to_host(), np.eye(N), dtype)
    assert near(a.T @ lib.lstsq(turned, right).to_host(), b.T, dtype, 2000)
    q, r = lib.qr(turned)
    assert near(q.to_host() @ r.to_host(), a.T, dtype)
    u, s, vh = (part.to_host() for part in lib.svd(turned))
    assert near(u * s @ vh, a.T, dtype)
    triangle = np.triu(a) + N * np.eye(N, dtype=dtype)
    x = lib.solve_triangular(cuda.to_device(triangle).T, right)
    assert near(triangle.T @ x.to_host(), b.T, dtype)


def hilbert(n):
    places = np.arange(n)
    return 1 / (places[:, None] + places + 1)


def test_an_inverse_without_correct_digits_is_warned_about(device, numbers):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lib.inv(cuda.to_device(hilbert(6)))
    words = "^inv: 'a' is ill-conditioned: its condition number is about"
    with pytest.warns(lib.IllConditionedWarning, match=words) as caught:
        lib.inv(cuda.to_device(hilbert(14)))
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.raises(lib.SingularMatrixError, match="^inv: 'a' is singular: pivot 1"):
        lib.inv(cuda.to_device(np.diag([1.0, 0.0, 2.0])))


@every_dtype
@pytest.mark.parametrize("shape", [(9, 4), (4, 9)])
def test_the_least_squares_solution_of_smallest_norm_is_numpys(device, numbers, dtype, shape):
    a, b = numbers(shape, dtype), numbers((shape[0], 2), dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = lib.lstsq(cuda.to_device(a), cuda.to_device(b), method="svd").to_host()
    assert near(x, np.linalg.lstsq(a, b)[0], dtype, 2000)
    a[:, 2] = a[:, 0] - a[:, 1]
    cutoff = 1e-4 if np.finfo(dtype).bits == 32 else 1e-10
    expected, _, rank, _ = np.linalg.lstsq(a, b[:, 0], rcond=cutoff)
    if rank == min(shape):
        return
    words = f"^lstsq: 'a' has the rank {rank}, not {min(shape)}"
    with pytest.warns(lib.IllConditionedWarning, match=words) as caught:
        x = lib.lstsq(cuda.to_device(a), cuda.to_device(b[:, 0].copy()), method="svd", rcond=cutoff).to_host()
    assert [warning.filename for warning in caught] == [__file__]
    assert near(x, expected, dtype, 2000)


def test_a_least_squares_solution_may_overflow_whatever_numpys_error_settings_are(device):
    a, b = cuda.to_device(np.diag([1e-300, 1e-300])), cuda.to_device(np.array([1e300, 1.0]))
    with np.errstate(all="raise"):
        x = lib.lstsq(a, b, method="svd").to_host()
    assert x[0] == np.inf


@pytest.mark.parametrize(
    ("dtype", "precision"),
    [
        (np.float64, "float32"),
        (np.float64, "float16"),
        (np.float64, "bfloat16"),
        (np.float64, "tf32"),
        (np.float32, "float16"),
        (np.complex128, "float32"),
        (np.complex64, "bfloat16"),
    ],
)
def test_a_refined_solution_has_the_precision_of_the_matrix(device, numbers, dtype, precision):
    a, b = numbers((40, 40), dtype) + 40 * np.eye(40, dtype=dtype), numbers((40, 3), dtype)
    x = lib.solve(cuda.to_device(a), cuda.to_device(b), precision=precision).to_host()
    assert near(a.astype(np.clongdouble) @ x, b, dtype, 100)


def test_a_refinement_that_does_not_converge_is_replaced_with_a_warning(device, numbers):
    (left, _), (right, _) = (np.linalg.qr(numbers((96, 96))) for _ in range(2))
    a = cuda.to_device(left * np.geomspace(1, 1e-18, 96) @ right)
    with pytest.warns(lib.IllConditionedWarning, match=r"^solve: .* factors in float32 did not converge") as caught:
        assert lib.solve(a, cuda.to_device(numbers(96)), precision="float32").shape == (96,)
    assert [warning.filename for warning in caught] == [__file__]
    singular = cuda.to_device(np.diag([1.0, 0.0, 3.0]))
    with pytest.warns(lib.IllConditionedWarning), pytest.raises(lib.SingularMatrixError, match="pivot 1"):
        lib.solve(singular, cuda.zeros(3), precision="float32")


def test_the_qr_factors_of_a_batch_take_as_many_allocations_as_those_of_one_matrix(device, definite, monkeypatch):
    lib.qr(cuda.to_device(definite(np.float64)))  # which also creates cuSOLVER's handle
    allocate, made = cuda.raw.cuMemAllocAsync, []
    monkeypatch.setattr(cuda.raw, "cuMemAllocAsync", lambda *each: made.append(each) or allocate(*each))
    counts = []
    for count in (1, 2, COUNT):
        a = cuda.to_device(definite(np.float64, count))
        made.clear()
        q, r = lib.qr(a)
        counts.append(len(made))
        assert near((q.to_host() @ r.to_host()), a.to_host(), np.float64)
    assert counts[0] > 0
    assert len({*counts}) == 1

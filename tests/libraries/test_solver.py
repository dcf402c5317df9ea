"""Dense and tridiagonal solvers on the device: every result against LAPACK, and residuals."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries as lib
from cudart_py.libraries.solvers.linear import Work

pytestmark = pytest.mark.needs("libraries")

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])


@pytest.fixture
def positive(numbers):
    """Return a function that makes a positive definite matrix."""

    def make(n, dtype):
        a = numbers((n, n), dtype)
        return a @ a.conj().T + n * np.eye(n, dtype=dtype)

    return make


def same(got, expected, dtype):
    return np.linalg.norm(got - expected) <= 200 * np.finfo(dtype).eps * max(np.linalg.norm(expected), 1)


@every_dtype
@pytest.mark.parametrize("columns", [(), (1,), (3,)])
def test_solve_is_numpys_and_changes_neither_operand(device, numbers, positive, dtype, columns):
    a = positive(6, dtype) + numbers((6, 6), dtype)
    b = numbers((6, *columns), dtype)
    operands = cuda.to_device(a), cuda.to_device(b)
    x = lib.solve(*operands).to_host()
    assert x.shape == b.shape
    assert same(a @ x, b, dtype)
    assert all(np.array_equal(array.to_host(), host) for array, host in zip(operands, (a, b), strict=True))


def test_solve_takes_a_window(device, numbers):
    a, b = numbers((2, 9, 9))
    x = lib.solve(cuda.to_device(a)[2:7, 1:6], cuda.to_device(b)[:5, 3:5])
    assert np.allclose(a[2:7, 1:6] @ x.to_host(), b[:5, 3:5])


@every_dtype
def test_cholesky_is_numpys_and_solve_of_a_positive_matrix_reads_its_lower_triangle(device, numbers, positive, dtype):
    a, b = positive(6, dtype), numbers((6, 2), dtype)
    x = lib.solve(cuda.to_device(np.tril(a)), cuda.to_device(b), positive=True).to_host()
    assert same(a @ x, b, dtype)
    factor = lib.cholesky(cuda.to_device(a)).to_host()
    assert same(factor, np.linalg.cholesky(a), dtype)
    assert not np.triu(factor, 1).any()


def test_a_matrix_that_has_no_solution_is_named_with_the_place(device, numbers):
    with pytest.raises(lib.SingularMatrixError, match="^solve: 'a' is singular: pivot 2 of its elimination") as error:
        lib.solve(cuda.to_device(np.diag([1.0, 2.0, 0.0, 4.0])), cuda.zeros(4))
    assert error.value.pivot == 2
    assert isinstance(error.value, cuda.CudaError)
    assert isinstance(error.value, np.linalg.LinAlgError)
    with pytest.raises(lib.SingularMatrixError, match="^solve_triangular: 'a' is singular: .* zero in row 1"):
        lib.solve_triangular(cuda.to_device(np.diag([1.0, 0.0, 2.0])), cuda.zeros(3))
    a = numbers((9, 4))
    a[:, 2] = a[:, 0] + a[:, 1]
    with pytest.raises(lib.SingularMatrixError, match="^lstsq: 'a' does not have full rank: column 2") as error:
        lib.lstsq(cuda.to_device(a), cuda.zeros(9))
    assert error.value.pivot == 2
    zeros, indefinite = cuda.zeros(4), cuda.to_device(np.diag([1.0, 2.0, -1.0, 4.0]))
    calls = {"cholesky": lambda: lib.cholesky(indefinite), "solve": lambda: lib.solve(indefinite, zeros, positive=True)}
    for name, call in calls.items():
        words = f"^{name}: 'a' is not positive definite: its leading minor of order 3 is not positive"
        with pytest.raises(lib.NotPositiveDefiniteError, match=words) as error:
            call()
        assert (error.value.minor, error.value.call) == (3, name)


@pytest.mark.parametrize(
    ("symbol", "call"),
    [
        ("Xgetrs", lambda a: lib.solve(a, cuda.zeros(2))),
        ("Xpotrs", lambda a: lib.solve(a, cuda.zeros(2), positive=True)),
        ("Dorgqr", lib.qr),
        ("Dormqr", lambda a: lib.lstsq(a, cuda.zeros(2))),
        ("Xgesvd", lib.svd),
        ("Xgesvdp", lambda a: lib.svd(a, method="polar")),
    ],
)
def test_a_status_names_the_function_that_ran(device, monkeypatch, symbol, call):
    original, name = Work.status, symbol[0].lower() + symbol[1:]

    def verdict(work, function):
        if function == name:
            work.info.fill(-2, stream=work.stream)
        return original(work, function)

    monkeypatch.setattr(Work, "status", verdict)
    with pytest.raises(cuda.errors.InvalidValueError, match=f"^cusolverDn{symbol}: argument 2 of") as error:
        call(cuda.to_device(np.eye(2)))
    assert error.value.call == f"cusolverDn{symbol}"


@every_dtype
@pytest.mark.parametrize("op", "NTC")
@pytest.mark.parametrize("lower", [True, False])
def test_triangular_systems_are_solved_both_ways(device, numbers, dtype, op, lower):
    a, b = numbers((5, 5), dtype) + 5 * np.eye(5, dtype=dtype), numbers((5, 2), dtype)
    triangle = np.tril(a) if lower else np.triu(a)
    turned = {"N": triangle, "T": triangle.T, "C": triangle.conj().T}[op]
    x = lib.solve_triangular(cuda.to_device(a), cuda.to_device(b), lower=lower, op=op).to_host()
    assert same(turned @ x, b, dtype)
    # `unit` means a diagonal of ones; the stored one is not read.
    x = lib.solve_triangular(cuda.to_device(a), cuda.to_device(b), lower=lower, op=op, unit=True).to_host()
    assert same((turned - np.diag(np.diag(turned)) + np.eye(5, dtype=dtype)) @ x, b, dtype)


@every_dtype
def test_qr_multiplies_back(device, numbers, dtype):
    a = numbers((8, 5), dtype)
    q, r = (part.to_host() for part in lib.qr(cuda.to_device(a)))
    assert q.shape == (8, 5)
    assert same(q @ r, a, dtype)
    assert same(q.conj().T @ q, np.eye(5), dtype)
    assert not np.tril(r, -1).any()


@every_dtype
@pytest.mark.parametrize("columns", [(), (3,)])
def test_lstsq_is_numpys(device, numbers, dtype, columns):
    a, b = numbers((9, 4), dtype), numbers((9, *columns), dtype)
    x = lib.lstsq(cuda.to_device(a), cuda.to_device(b)).to_host()
    assert same(x, np.linalg.lstsq(a, b)[0], dtype)


@every_dtype
@pytest.mark.parametrize("method", ["qr", "polar"])
@pytest.mark.parametrize("shape", [(8, 5), (5, 8), (6, 6)])
def test_svd_is_numpys(device, numbers, dtype, method, shape):
    a = numbers(shape, dtype)
    u, s, vh = (part.to_host() for part in lib.svd(cuda.to_device(a), method=method))
    assert (u.shape, s.shape, vh.shape) == ((shape[0], min(shape)), (min(shape),), (min(shape), shape[1]))
    assert same(u * s @ vh, a, dtype)
    assert same(s, np.linalg.svd(a, compute_uv=False), dtype)


@every_dtype
def test_eigh_is_numpys(device, positive, dtype):
    a = positive(6, dtype)
    values, vectors = (part.to_host() for part in lib.eigh(cuda.to_device(np.tril(a))))
    assert same(values, np.linalg.eigvalsh(a), dtype)
    assert same(a @ vectors, vectors * values, dtype)


@pytest.fixture
def systems(numbers):
    """Return a function that makes the three diagonals of diagonally dominant matrices, and right-hand sides."""

    def make(unknowns, dtype=np.float64):
        lower, middle, upper, b = numbers((4, 5, unknowns), dtype)
        lower[:, 0] = upper[:, -1] = 0
        return lower, middle + 8, upper, b

    return make


def residual(lower, middle, upper, b, x):
    """Return the largest absolute residual of a row, computed in extended precision."""
    x = np.pad(x.astype(np.clongdouble), ((0, 0), (1, 1)))
    return np.abs(lower * x[:, :-2] + middle * x[:, 1:-1] + upper * x[:, 2:] - b).max()


@every_dtype
@pytest.mark.parametrize("unknowns", [3, 37, 255])
def test_every_row_of_every_tridiagonal_system_holds(device, systems, dtype, unknowns):
    hosts = systems(unknowns, dtype)
    lower, middle, upper, b = arrays = [cuda.to_device(host) for host in hosts]
    x = lib.solve_tridiagonal(*arrays).to_host()
    assert residual(*hosts, x) < (1e-5 if np.finfo(dtype).bits == 32 else 1e-13)
    assert all(np.array_equal(array.to_host(), host) for array, host in zip(arrays, hosts, strict=True))
    assert lib.solve_tridiagonal(lower, middle, upper, b, b) is b
    assert np.array_equal(b.to_host(), x)


def test_a_graph_solves_tridiagonal_systems_for_what_its_arrays_hold_now(device, systems):
    lower, middle, upper, b = systems(37)
    arrays = [cuda.to_device(host) for host in (lower, middle, upper, b)]
    stream = cuda.Stream()
    out = lib.solve_tridiagonal(*arrays, stream=stream)  # library functions need a first call outside a capture
    with stream.capture() as graph:
        lib.solve_tridiagonal(*arrays, out, stream=stream)
    arrays[3].copy_from(2 * b)
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert residual(lower, middle, upper, 2 * b, out.to_host()) < 1e-13
    assert lib.solve_tridiagonal(*[cuda.empty((0, 5), np.float32) for _ in range(4)]).shape == (0, 5)


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("the diagonals are wrong on purpose")
@pytest.mark.parametrize(("diagonal", "place"), [("dl", "first"), ("du", "last")])
def test_an_element_outside_of_a_tridiagonal_matrix_that_is_not_zero_is_reported(device, systems, diagonal, place):
    lower, middle, upper, b = systems(5)
    (lower if diagonal == "dl" else upper)[2:, 0 if diagonal == "dl" else -1] = 3
    arrays = [cuda.to_device(host) for host in (lower, middle, upper, b)]
    said = f"the {place} element of each system in {diagonal} must be zero, but that of system 2 is 3.0"
    with pytest.warns(cuda.errors.SimulatorWarning, match=said):
        x = lib.solve_tridiagonal(*arrays).to_host()
    assert residual(lower, middle, upper, b, x) < 1e-13

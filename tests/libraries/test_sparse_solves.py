"""Triangular systems with sparse matrices, against SciPy and dense solutions in higher precision."""

import gc

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.libraries import SparseMatrix, spsm, spsv

sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed (the extra cpu)")

pytestmark = pytest.mark.needs("libraries")

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)
N = 37


@pytest.fixture
def matrix(rng, numbers):
    """Return a function that makes a matrix with both triangles and a large diagonal."""

    def make(dtype=np.float64):
        kept = np.where(rng.random((N, N)) < 0.2, numbers((N, N), dtype), 0)
        return (kept + 8 * np.diag(1 + rng.random(N))).astype(dtype)

    return make


def triangle(host, op="N", *, lower=True, unit=False):
    part = np.tril(host) if lower else np.triu(host)
    if unit:
        part = part - np.diag(np.diag(part)) + np.eye(N)
    return {"N": part, "T": part.T, "C": part.conj().T}[op]


def assert_solves(part, x, b):
    """The residual of a substitution is a few rounding errors of the products in each row."""
    wide = np.clongdouble if part.dtype.kind == "c" else np.longdouble
    residual = abs(part.astype(wide) @ x.astype(wide) - b)
    bound = (N + 2) * np.finfo(x.dtype).eps * (abs(part) @ abs(x) + abs(b))
    assert np.all(residual <= bound)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", "NTC")
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(("format", "unit"), [("csr", False), ("coo", True)])
def test_solves_use_one_triangle(device, numbers, matrix, dtype, op, lower, format, unit):
    host, vector, several = matrix(dtype) / 8, numbers(N, dtype), numbers((N, 7), dtype)
    a = SparseMatrix.from_host(sparse.csr_array(host), format)
    options = {"lower": lower, "unit": unit, "op": op}
    part = triangle(host, op, lower=lower, unit=unit)
    assert_solves(part, spsv(a, cuda.to_device(vector), **options).to_host(), vector)
    window = cuda.to_device(several)[:, 1:6]
    assert_solves(part, spsm(a, window, alpha=2.0, **options).to_host(), 2 * several[:, 1:6])


def test_a_matrix_is_analysed_once_for_a_triangle_and_solves_in_place(device, record, numbers, matrix):
    host, b = matrix(), numbers((N, 4))
    a = SparseMatrix.from_host(sparse.csr_array(host))
    calls = record("cusparse", "sp_sv_analysis", "sp_sm_analysis")
    for lower in (True, False, True):
        x = cuda.to_device(b[:, 0].copy())
        assert spsv(a, x, x, lower=lower) is x
        assert_solves(triangle(host, lower=lower), x.to_host(), b[:, 0])
    for columns in (2, 1, 4, 3):
        x = cuda.to_device(b[:, :columns].copy())
        spsm(a, x, x)
        assert_solves(triangle(host), x.to_host(), b[:, :columns])
    assert [name for name, _ in calls] == ["sp_sv_analysis"] * 2 + ["sp_sm_analysis"] * 2


def test_changed_values_count_after_refresh(device, numbers, matrix):
    host, b = sparse.csr_array(matrix()), numbers((N, 3))
    a = SparseMatrix.from_host(host)
    place, column = cuda.to_device(b), cuda.to_device(b[:, 0].copy())
    spsv(a, column), spsm(a, place)
    a.values.copy_from(3 * host.data)
    assert_solves(triangle(host.toarray()), spsv(a, column).to_host(), b[:, 0])
    a.refresh()
    assert_solves(triangle(3 * host.toarray()), spsv(a, column).to_host(), b[:, 0])
    assert_solves(triangle(3 * host.toarray()), spsm(a, place).to_host(), b)


def test_a_solve_becomes_part_of_a_graph(device, numbers, matrix):
    host, b = matrix(), numbers(N)
    with cuda.Stream() as stream:
        a = SparseMatrix.from_host(sparse.csr_array(host), stream=stream)
        x, out = cuda.to_device(b, stream=stream), cuda.empty(N, stream=stream)
        with pytest.raises(cuda.errors.CaptureError, match="a solve with this matrix allocates"), stream.capture():
            spsv(a, x, out, stream=stream)
        spsv(a, x, out, stream=stream)
        with stream.capture() as graph:
            spsv(a, x, out, stream=stream)
        x.copy_from(2 * b, stream=stream)
        del a
        gc.collect()
        graph.instantiate().launch(stream)
        assert_solves(triangle(host), out.to_host(stream=stream), 2 * b)


@pytest.mark.needs("profile")
def test_a_triangle_without_a_diagonal_is_reported(device, matrix):
    host = matrix()
    host[5, 5] = 0
    words = "SpSV.*row 5 of the triangle has no element on"
    with cuda.sanitizer("warn"), pytest.warns(cuda.errors.SimulatorWarning, match=words):
        spsv(SparseMatrix.from_host(sparse.csr_array(host)), cuda.full(N, 1.0)).to_host()


def test_descriptors_of_solves_are_given_back(device, record, matrix):
    made = record(
        "cusparse", "create_csr", "create_dn_vec", "create_dn_mat", "sp_sv_create_descr", "sp_sm_create_descr"
    )
    given_back = record(
        "cusparse", "destroy_sp_mat", "destroy_dn_vec", "destroy_dn_mat", "sp_sv_destroy_descr", "sp_sm_destroy_descr"
    )
    a = SparseMatrix.from_host(sparse.csr_array(matrix()))
    spsv(a, cuda.zeros(N))
    spsm(a, cuda.zeros((N, 2)))
    del a
    gc.collect()
    assert len(given_back) == len(made) > 0

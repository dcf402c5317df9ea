"""Sparse matrices on the device: every product against SciPy, and what is refused."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.libraries.sparse.matrix import SparseMatrix, SparseVector
from cudart_py.libraries.sparse.products import gemvi, spdot, spmm, spmv
from cudart_py.libraries.sparse.sparse_results import sddmm, sparse_from_dense, spgemm

sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed (the extra cpu)")

pytestmark = pytest.mark.needs("libraries")

FORMATS = ("csr", "coo", "sell")
DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


def random_matrix(rng, shape, dtype=np.float64, density=0.3):
    dense = np.where(rng.random(shape) < density, rng.standard_normal(shape), 0).astype(dtype)
    if np.dtype(dtype).kind == "c":
        dense = dense * (1 + 2j)
    return sparse.csr_array(dense)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_spmv_is_scipys_product_in_every_format(device, rng, format, dtype):
    host = random_matrix(rng, (37, 21), dtype)
    x = rng.standard_normal(21).astype(dtype)
    a = SparseMatrix.from_host(host, format, slice_size=8)
    assert np.allclose(spmv(a, cuda.to_device(x)).to_host(), host @ x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", "NTC")
def test_spmv_turns_scales_and_adds(device, rng, op):
    host = random_matrix(rng, (9, 9), np.complex128)
    x, y = rng.standard_normal((2, 9)) + 0j
    turned = {"N": host, "T": host.T, "C": host.conj().T}[op]
    out = cuda.to_device(y)
    spmv(SparseMatrix.from_host(host), cuda.to_device(x), out, alpha=2.0, beta=3.0, op=op)
    assert np.allclose(out.to_host(), 2 * turned @ x + 3 * y)


def test_a_matrix_is_prepared_once_for_an_operation(device, record, rng):
    calls = record("cusparse", "sp_mv_preprocess")
    a, x = SparseMatrix.from_host(random_matrix(rng, (9, 9))), cuda.zeros(9)
    for op in ("N", "N", "T", "N"):
        spmv(a, x, op=op)
    assert len(calls) == 2


def test_changed_values_count_in_the_next_product(device, rng):
    host = random_matrix(rng, (9, 9))
    a, x = SparseMatrix.from_host(host), cuda.full(9, 1.0)
    spmv(a, x)
    a.values.copy_from(2 * host.data)
    assert np.allclose(spmv(a, x).to_host(), 2 * host.sum(axis=1))


@pytest.mark.parametrize("format", ["csr", "coo"])
@pytest.mark.parametrize("op", "NT")
def test_spmm_is_scipys_product(device, rng, format, op):
    host = random_matrix(rng, (8, 6))
    turned = host if op == "N" else host.T
    b = rng.standard_normal((turned.shape[1], 10))
    got = spmm(SparseMatrix.from_host(host, format), cuda.to_device(b)[:, 2:7], op=op)
    assert np.allclose(got.to_host(), turned @ b[:, 2:7])


def test_spgemm_is_scipys_product(device, rng):
    first, second = random_matrix(rng, (8, 6)), random_matrix(rng, (6, 9))
    got = spgemm(SparseMatrix.from_host(first), SparseMatrix.from_host(second), alpha=2.0)
    assert np.allclose(got.to_host().toarray(), 2 * (first @ second).toarray())


def test_sddmm_is_the_product_where_the_result_stores_something(device, rng):
    pattern = random_matrix(rng, (8, 9))
    a, b = rng.standard_normal((8, 4)), rng.standard_normal((4, 9))
    out = SparseMatrix.from_host(pattern)
    sddmm(cuda.to_device(a), cuda.to_device(b), out, beta=1.0)
    stored = pattern.toarray() != 0
    assert np.allclose(out.to_host().toarray(), stored * (a @ b) + pattern.toarray())


@pytest.mark.parametrize("format", FORMATS)
def test_a_matrix_that_stores_nothing_takes_part_in_products(device, rng, format):
    nothing = SparseMatrix.from_host(sparse.csr_array((8, 6)), format)
    out = cuda.to_device(np.full(8, np.nan))
    spmv(nothing, cuda.to_device(rng.standard_normal(6)), out)
    assert not out.to_host().any()


def test_a_matrix_that_stores_nothing_is_the_result_of_products(device, rng):
    nothing = sparse.csr_array((8, 6))
    a, b = rng.standard_normal((8, 4)), rng.standard_normal((4, 6))
    out = SparseMatrix.from_host(nothing)
    sddmm(cuda.to_device(a), cuda.to_device(b), out)
    assert out.to_host().nnz == 0
    other = SparseMatrix.from_host(random_matrix(rng, (6, 9)))
    assert spgemm(SparseMatrix.from_host(nothing), other).to_host().nnz == 0
    assert sparse_from_dense(cuda.zeros((8, 6))).count == 0


def test_a_dense_matrix_becomes_sparse(device, rng):
    dense = random_matrix(rng, (7, 9)).toarray()
    found = sparse_from_dense(cuda.to_device(dense))
    assert np.array_equal(found.to_host().toarray(), dense)
    assert found.count == np.count_nonzero(dense)


def test_zeros_become_a_matrix_without_elements(device):
    found = sparse_from_dense(cuda.zeros((4, 5)))
    assert found.count == 0
    assert not found.to_host().toarray().any()


def test_spdot_is_the_sum_of_products(device, rng):
    indices = np.array([1, 4, 7], np.int32)
    values, y = rng.standard_normal(3), rng.standard_normal(9)
    x = SparseVector(9, cuda.to_device(indices), cuda.to_device(values))
    assert spdot(x, cuda.to_device(y)) == pytest.approx(values @ y[indices])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", "NT")
def test_gemvi_multiplies_a_window_and_a_sparse_vector(device, rng, dtype, op):
    whole = cuda.to_device(random_matrix(rng, (9, 11), dtype, density=1.0).toarray())
    a = whole[1:8, 2:9]
    indices = np.array([0, 2, 6], np.int32)
    values, y = (rng.standard_normal(size).astype(dtype) for size in (3, 7))
    out = cuda.to_device(y)
    x = SparseVector(7, cuda.to_device(indices), cuda.to_device(values))
    assert gemvi(a, x, out, alpha=2.0, beta=-1.0, op=op) is out
    host = a.to_host() if op == "N" else a.to_host().T
    assert np.allclose(out.to_host(), 2 * host[:, indices] @ values - y, rtol=1e-4, atol=1e-5)


def test_gemvi_with_a_vector_of_zeros_is_zero(device):
    x = SparseVector(5, cuda.empty(0, np.int32), cuda.empty(0, np.float64))
    assert not gemvi(cuda.full((4, 5), 1.0), x).to_host().any()


def test_slices_hold_rows_side_by_side(device):
    host = sparse.csr_array(np.array([[1.0, 2, 0], [0, 3, 0], [0, 0, 0], [4, 5, 6]]))
    a = SparseMatrix.from_host(host, "sell", slice_size=2)
    assert a.offsets.to_host().tolist() == [0, 4, 10]
    assert a.values.to_host().tolist() == [1, 3, 2, 0, 0, 4, 0, 5, 0, 6]
    assert a.indices.to_host().tolist() == [0, 1, 1, -1, -1, 0, -1, 1, -1, 2]


def square(format="csr"):
    return SparseMatrix.from_host(sparse.eye_array(4, format="csr"), format)


def vector(size):
    return SparseVector(size, cuda.zeros(1, np.int32), cuda.zeros(1))


BAD = {
    "vector": (lambda: spmv(square(), cuda.zeros(5)), r"x has shape \(5,\); a of shape \(4, 4\)"),
    "dtype": (lambda: spmv(square(), cuda.zeros(4, np.float32)), "x has dtype float32, and a float64"),
    "output": (lambda: spmv(square(), cuda.zeros(4), cuda.zeros(3)), r"out has shape \(3,\)"),
    "gaps": (lambda: spmv(square(), cuda.zeros(8)[::2]), r"x has strides \(16,\)"),
    "dense": (lambda: spmv(cuda.zeros((4, 4)), cuda.zeros(4)), "a must be a SparseMatrix, not DeviceArray"),
    "operation": (lambda: spmv(square(), cuda.zeros(4), op="X"), "op is one of 'N', 'T', 'C', not the str 'X'"),
    "gemvi": (
        lambda: gemvi(cuda.zeros((3, 4)), vector(5)),
        r"x has size 5; a of shape \(3, 4\) with op='N' makes it 4",
    ),
    "gemvi's operation": (
        lambda: gemvi(cuda.zeros((4, 4)), vector(4), op="C"),
        "op is one of 'N', 'T', not the str 'C'",
    ),
    "gemvi's vector": (lambda: gemvi(cuda.zeros((4, 4)), cuda.zeros(4)), "x must be a SparseVector, not DeviceArray"),
    "gemvi's dtype": (lambda: gemvi(cuda.zeros((4, 4), np.float32), vector(4)), "a has dtype float32, and x float64"),
    "spmm": (lambda: spmm(square(), cuda.zeros((5, 2))), "b has 5 rows"),
    "spmm's format": (lambda: spmm(square("sell"), cuda.zeros((4, 2))), "a has the format 'sell'; this takes csr, coo"),
    "spgemm": (lambda: spgemm(square(), square("coo")), "b has the format 'coo'"),
    "sddmm": (lambda: sddmm(cuda.zeros((4, 2)), cuda.zeros((3, 4)), square()), "b has 3 rows, and a 2 columns"),
    "format": (lambda: square("dia"), "'format' must be one of 'csr', 'coo', 'sell', not the str 'dia'"),
    "indices": (
        lambda: SparseMatrix("csr", (1, 4), cuda.zeros(2), cuda.zeros(2, np.int64), cuda.zeros(2, np.int32)),
        "indices has dtype int64",
    ),
    "offsets": (
        lambda: SparseMatrix("csr", (4, 4), cuda.zeros(2), cuda.zeros(2, np.int32), cuda.zeros(4, np.int32)),
        r"offsets has shape \(4,\); the format csr of shape \(4, 4\) makes it \(5,\)",
    ),
    "integers": (lambda: sparse_from_dense(cuda.zeros((2, 2), np.int32)), "a has dtype int32"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named_before_anything_is_queued(device, record, case):
    calls = record("cusparse", "sp_mv")
    call, text = BAD[case]
    with pytest.raises((TypeError, ValueError), match=text):
        call()
    assert calls == []


def test_a_matrix_whose_values_are_closed_is_named(device):
    a = square()
    a.values.close()
    with pytest.raises(ValueError, match=r"a\.values is closed"):
        spmv(a, cuda.zeros(4))


def test_descriptors_are_given_back(device, record, rng):
    made = record("cusparse", "create_csr", "create_dn_vec", "create_dn_mat", "sp_gemm_create_descr")
    given_back = record("cusparse", "destroy_sp_mat", "destroy_dn_vec", "destroy_dn_mat", "sp_gemm_destroy_descr")
    a = SparseMatrix.from_host(random_matrix(rng, (9, 9)))
    spmv(a, cuda.zeros(9))
    spmm(a, cuda.zeros((9, 2)))
    spgemm(a, a)
    del a
    gc.collect()
    assert len(given_back) == len(made) > 0

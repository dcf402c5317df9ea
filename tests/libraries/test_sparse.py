"""Sparse matrices on the device: every product against SciPy."""

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


@pytest.fixture
def matrix(rng, numbers):
    """Return a function that makes a sparse matrix on the host."""
    return lambda shape, dtype=np.float64: sparse.csr_array(
        np.where(rng.random(shape) < 0.3, numbers(shape, dtype), dtype(0))
    )


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_spmv_is_scipys_product_in_every_format(device, numbers, matrix, format, dtype):
    host, x = matrix((37, 21), dtype), numbers(21, dtype)
    a = SparseMatrix.from_host(host, format, slice_size=8)
    assert np.allclose(spmv(a, cuda.to_device(x)).to_host(), host @ x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", "NTC")
def test_spmv_turns_scales_and_adds(device, numbers, matrix, op):
    host = matrix((9, 7), np.complex128)
    turned = {"N": host, "T": host.T, "C": host.conj().T}[op]
    y, x = (numbers(size, np.complex128) for size in turned.shape)
    out = cuda.to_device(y)
    spmv(SparseMatrix.from_host(host), cuda.to_device(x), out, alpha=2.0, beta=3.0, op=op)
    assert np.allclose(out.to_host(), 2 * turned @ x + 3 * y)


def test_a_matrix_is_prepared_once_for_an_operation_and_changed_values_count(device, record, matrix):
    calls, host = record("cusparse", "sp_mv_preprocess"), matrix((9, 9))
    a, x = SparseMatrix.from_host(host), cuda.full(9, 1.0)
    for op in ("N", "N", "T", "N"):
        spmv(a, x, op=op)
    a.values.copy_from(2 * host.data)
    assert np.allclose(spmv(a, x).to_host(), 2 * host.sum(axis=1))
    assert len(calls) == 2
    a.values.close()
    with pytest.raises(ValueError, match=r"spmv: argument 'a\.values' must be open"):
        spmv(a, x)


@pytest.mark.parametrize("format", ["csr", "coo"])
@pytest.mark.parametrize("op", "NT")
def test_spmm_is_scipys_product(device, numbers, matrix, format, op):
    host = matrix((8, 6))
    turned = host if op == "N" else host.T
    b = numbers((turned.shape[1], 10))
    got = spmm(SparseMatrix.from_host(host, format), cuda.to_device(b)[:, 2:7], op=op)
    assert np.allclose(got.to_host(), turned @ b[:, 2:7])


def test_spgemm_and_sddmm_are_scipys_products(device, numbers, matrix):
    first, second, pattern = matrix((8, 6)), matrix((6, 9)), matrix((8, 9))
    got = spgemm(SparseMatrix.from_host(first), SparseMatrix.from_host(second), alpha=2.0)
    assert np.allclose(got.to_host().toarray(), 2 * (first @ second).toarray())
    a, b, out = numbers((8, 4)), numbers((4, 9)), SparseMatrix.from_host(pattern)
    sddmm(cuda.to_device(a), cuda.to_device(b), out, beta=1.0)
    stored = pattern.toarray() != 0
    assert np.allclose(out.to_host().toarray(), stored * (a @ b) + pattern.toarray())


def test_a_graph_keeps_the_operands_of_a_captured_sddmm_alive(device, numbers, matrix):
    a, b, pattern = numbers((8, 4)), numbers((4, 9)), matrix((8, 9))
    left, right, out = cuda.to_device(a), cuda.to_device(b), SparseMatrix.from_host(pattern)
    with cuda.Stream() as stream:
        sddmm(left, right, out, stream=stream)  # library functions need a first call outside a capture
        with stream.capture() as graph:
            sddmm(left, right, out, stream=stream)
        del left, right
        gc.collect()
        others = [cuda.full(shape, np.nan) for shape in ((8, 4), (4, 9)) for _ in range(4)]  # would reuse freed memory
        out.values.fill(0.0)
        device.synchronize()
        graph.instantiate().launch(stream)
        stream.synchronize()
        assert len(others) == 8
    assert np.allclose(out.to_host().toarray(), (pattern.toarray() != 0) * (a @ b))


def test_a_copy_on_the_host_waits_for_the_stream_that_it_is_given(device, numbers, matrix):
    a, b, pattern = numbers((8, 4)), numbers((4, 9)), matrix((8, 9))
    left, right, out = cuda.to_device(a), cuda.to_device(b), SparseMatrix.from_host(pattern)
    device.synchronize()
    with cuda.Stream(non_blocking=True) as stream:
        sddmm(left, right, out, stream=stream)
        assert np.allclose(out.to_host(stream=stream).toarray(), (pattern != 0).toarray() * (a @ b))


@pytest.mark.parametrize("format", FORMATS)
def test_a_matrix_that_stores_nothing_takes_part_in_products(device, matrix, format):
    nothing = SparseMatrix.from_host(sparse.csr_array((8, 6)), format)
    out = cuda.full(8, np.nan)
    spmv(nothing, cuda.zeros(6), out)
    assert not out.to_host().any()
    if format == "csr":
        sddmm(cuda.zeros((8, 4)), cuda.zeros((4, 6)), nothing)
        assert nothing.to_host().nnz == 0
        assert spgemm(nothing, SparseMatrix.from_host(matrix((6, 9)))).to_host().nnz == 0


def test_a_dense_matrix_becomes_sparse(device, matrix):
    for dense in (matrix((7, 9)).toarray(), np.zeros((4, 5))):
        found = sparse_from_dense(cuda.to_device(dense))
        assert np.array_equal(found.to_host().toarray(), dense)
        assert found.count == np.count_nonzero(dense)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", "NT")
def test_sparse_vectors_multiply_a_window_and_a_dense_vector(device, numbers, dtype, op):
    a = cuda.to_device(numbers((9, 11), dtype))[1:8, 2:9]
    indices, values, y = np.array([0, 2, 6], np.int32), numbers(3, dtype), numbers(7, dtype)
    out = cuda.to_device(y)
    x = SparseVector(7, cuda.to_device(indices), cuda.to_device(values))
    assert spdot(x, out) == pytest.approx(values @ y[indices], rel=1e-4, abs=1e-5)
    assert gemvi(a, x, out, alpha=2.0, beta=-1.0, op=op) is out
    host = a.to_host() if op == "N" else a.to_host().T
    assert np.allclose(out.to_host(), 2 * host[:, indices] @ values - y, rtol=1e-4, atol=1e-5)
    nothing = SparseVector(5, cuda.empty(0, np.int32), cuda.empty(0, np.float64))
    assert not gemvi(cuda.full((4, 5), 1.0), nothing).to_host().any()


def test_descriptors_are_given_back(device, record, matrix):
    made = record("cusparse", "create_csr", "create_dn_vec", "create_dn_mat", "sp_gemm_create_descr")
    given_back = record("cusparse", "destroy_sp_mat", "destroy_dn_vec", "destroy_dn_mat", "sp_gemm_destroy_descr")
    a = SparseMatrix.from_host(matrix((9, 9)))
    spmv(a, cuda.zeros(9))
    spmm(a, cuda.zeros((9, 2)))
    spgemm(a, a)
    del a
    gc.collect()
    assert len(given_back) == len(made) > 0


def test_products_in_two_streams_share_no_buffer(device, matrix, numbers, record):
    """The buffer is filled in the stream of the first product, for which another stream does not wait."""
    calls, host, x = record("cusparse", "sp_mv"), matrix((9, 7)), numbers(7)
    a, vector = SparseMatrix.from_host(host), cuda.to_device(x)
    device.synchronize()
    with cuda.Stream(non_blocking=True) as first, cuda.Stream(non_blocking=True) as second:
        for stream in (first, second, first):
            assert np.allclose(spmv(a, vector, stream=stream).to_host(stream=stream), host @ x)
    buffers = [arguments[-1] for _, arguments in calls]
    assert buffers[0] == buffers[2] != buffers[1]


def test_what_int32_indices_cannot_count_is_refused(device):
    """Indices and offsets of such matrices would wrap around."""
    wide = sparse.coo_array(([1.0], ([0], [2**40])), shape=(1, 2**40 + 1))
    with pytest.raises(ValueError, match="'matrix' must have at most 2147483647 rows and columns"):
        SparseMatrix.from_host(wide)
    with pytest.raises(ValueError, match="'shape' must have at most 2147483647 rows and columns"):
        SparseMatrix("csr", (1, 2**31), cuda.zeros(1), cuda.zeros(1, np.int32), cuda.zeros(2, np.int32))
    row = sparse.csr_array((np.ones(2**12), np.arange(2**12), [0, 2**12]))
    with pytest.raises(ValueError, match="'matrix' must store at most 2147483647 elements with format='sell'"):
        SparseMatrix.from_host(row, "sell", slice_size=2**20)  # pads the row with 2^20 - 1 others
    with pytest.raises(ValueError, match="'count' must be an int from 1 to 1, not the int 0"):
        SparseMatrix("csr", (1, 1), cuda.zeros(1), cuda.zeros(1, np.int32), cuda.zeros(2, np.int32), count=0)

"""Conversions between sparse formats, transposes and sorting, against SciPy."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.libraries import (
    SparseMatrix,
    sparse_convert,
    sparse_sort,
    sparse_to_dense,
    sparse_transpose,
    spmm,
    spmv,
)

sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed (the extra cpu)")

pytestmark = pytest.mark.needs("libraries")

FORMATS = ("csr", "csc", "coo")


@pytest.fixture
def host(rng, numbers):
    """Return a matrix with empty rows and columns."""
    kept = np.where(rng.random((19, 13)) < 0.3, numbers((19, 13)), 0)
    kept[[0, 7]], kept[:, 12] = 0, 0
    return sparse.csr_array(kept)


def parts(matrix):
    """Return the arrays of a matrix on the host."""
    return [array.to_host().tolist() for array in (matrix.values, matrix.indices, matrix.offsets)]


def shuffled(matrix, rng, dtype=np.float64):
    """Return a device matrix with its elements in a random order within each row, or in any order."""
    order = rng.permutation(matrix.nnz)
    if matrix.format != "coo":
        order = order[
            np.argsort(np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))[order], kind="stable")
        ]
    given = (matrix.data, *(matrix.coords[::-1] if matrix.format == "coo" else (matrix.indices,)))
    arrays = [part[order] for part in given]
    if matrix.format != "coo":
        arrays.append(matrix.indptr)
    values, *places = arrays
    device = [cuda.to_device(values.astype(dtype)), *(cuda.to_device(place.astype(np.int32)) for place in places)]
    return SparseMatrix(matrix.format, matrix.shape, *device)


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_every_format_becomes_every_other(device, host, source, target):
    a = SparseMatrix.from_host(host, source)
    found = sparse_convert(a, target)
    assert found.format == target
    assert parts(found) == parts(SparseMatrix.from_host(host, target))
    assert found.values.pointer != a.values.pointer


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_elements_are_sorted_and_transposed_and_made_dense(device, rng, host, format, dtype):
    a = shuffled(host.asformat(format), rng, dtype)
    expected = SparseMatrix.from_host(host.astype(dtype), format)
    assert parts(a) != parts(expected)
    assert parts(sparse_sort(a)) == parts(expected)
    assert parts(sparse_transpose(a)) == parts(SparseMatrix.from_host(host.astype(dtype).T.tocsr(), format))
    out = cuda.full((19, 15), 7, dtype)
    sparse_to_dense(a, out[:, 1:14])
    assert np.array_equal(out.to_host(), np.pad(host.toarray().astype(dtype), ((0, 0), (1, 1)), constant_values=7))


@pytest.mark.parametrize("format", FORMATS)
def test_a_matrix_without_elements_is_converted(device, format):
    empty = SparseMatrix.from_host(sparse.csr_array((4, 3)), format)
    for target in FORMATS:
        assert parts(sparse_convert(empty, target)) == parts(SparseMatrix.from_host(sparse.csr_array((4, 3)), target))
    assert sparse_transpose(empty).shape == (3, 4)
    assert not sparse_to_dense(sparse_sort(empty)).to_host().any()


def test_conversions_are_refused_during_a_capture(device, host):
    with cuda.Stream() as stream:
        a = SparseMatrix.from_host(host, stream=stream)
        for call in (sparse_sort, sparse_transpose, lambda a, stream: sparse_convert(a, "csc", stream=stream)):
            with (
                pytest.raises(
                    cuda.errors.CaptureError,
                    match="converts or sorts",
                ),
                stream.capture(),
            ):
                call(a, stream=stream)


@pytest.mark.parametrize("op", "NT")
def test_columns_take_part_in_products(device, numbers, host, op):
    a = SparseMatrix.from_host(host, "csc")
    turned = host if op == "N" else host.T
    x, b = numbers(turned.shape[1]), numbers((turned.shape[1], 5))
    assert np.allclose(spmv(a, cuda.to_device(x), op=op).to_host(), turned @ x)
    assert np.allclose(spmm(a, cuda.to_device(b), op=op).to_host(), turned @ b)
    assert (a.to_host() != host).nnz == 0

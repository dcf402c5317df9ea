"""Matrices with NaN or infinity: the result says so, or the call raises an error, and the next call works."""

import warnings

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries as lib

pytestmark = pytest.mark.needs("libraries")

N = 4


@pytest.fixture(params=[np.nan, np.inf], ids=["nan", "inf"])
def spoiled(request, numbers):
    """Return a function that draws a matrix with a NaN or an infinity at an index."""

    def draw(shape, index):
        matrix = numbers(shape)
        matrix[index] = request.param
        return matrix

    return draw


@pytest.mark.parametrize("index", [(0, 0), (0, 1), (2, 1)])
def test_least_squares_by_svd_raise_a_linalgerror_as_in_numpy(device, spoiled, index):
    a = spoiled((5, 2), index)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.lstsq(a, np.ones(5))
    with pytest.raises(lib.NotConvergedError, match=r"^lstsq: \d of 2 singular values of 'a' did not converge"):
        lib.lstsq(cuda.to_device(a), cuda.full(5, 1.0), method="svd")


@pytest.mark.parametrize("shape", [(5, 2), (3, 5, 2)])
def test_least_squares_by_qr_return_nan(device, spoiled, shape):
    """A NaN is not a column that depends on others."""
    a = spoiled(shape, (*[1] * (len(shape) - 2), 2, 1))
    x = lib.lstsq(cuda.to_device(a), cuda.full(shape[:-1], 1.0)).to_host()
    spoiled_ones = np.zeros(x.shape, bool)
    spoiled_ones[(*[1] * (len(shape) - 2),)] = True
    assert np.array_equal(np.isnan(x), spoiled_ones)


@pytest.mark.parametrize("function", ["svd", "eigh"])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_a_decomposition_without_a_result_is_a_linalgerror(device, spoiled, function, batch):
    a = spoiled((N, N), (2, 1))
    try:
        parts = getattr(lib, function)(cuda.to_device(np.broadcast_to(a, (*batch, N, N)).copy()))
    except lib.NotConvergedError:
        pass
    else:
        assert not all(np.isfinite(part.to_host()).all() for part in parts)


@pytest.mark.needs("cudss")
@pytest.mark.parametrize("kind", ["general", "symmetric", "positive"])
def test_a_sparse_system_has_no_finite_solution(device, spoiled, kind):
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed (the extra cpu)")
    a = lib.SparseMatrix.from_host(sparse.csr_array(spoiled((N, N), (1, 1))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lib.IllConditionedWarning)  # also correct for an infinity
        try:
            x = lib.SparseSolver(a, kind=kind).solve(cuda.full(N, 1.0)).to_host()
        except np.linalg.LinAlgError:
            pass
        else:
            assert not np.isfinite(x).all()
    cuda.current_device().synchronize()


def test_a_column_that_is_zero_is_not_said_to_depend_on_others(device):
    a = np.ones((3, 2))
    a[:, 0] = 0
    for shape in ((3, 2), (2, 3, 2)):
        with pytest.raises(lib.SingularMatrixError, match="column 0 is zero") as caught:
            lib.lstsq(cuda.to_device(np.broadcast_to(a, shape).copy()), cuda.full(shape[:-1], 1.0))
        assert caught.value.pivot == 0

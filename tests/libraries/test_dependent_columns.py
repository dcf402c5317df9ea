"""`lstsq` reports the columns that depend on others, whatever the scales of the columns."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries as lib

pytestmark = [
    pytest.mark.needs("libraries"),
    pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128]),
]

batched = pytest.mark.parametrize("batch", [(), (3,)])


@pytest.fixture
def scales(rng):
    """Return a function that draws one factor per column, from 1e-12 to 1e12."""
    return lambda columns, dtype: (10 ** rng.uniform(-12, 12, columns)).astype(dtype)


def fit(a, b):
    return lib.lstsq(cuda.to_device(a), cuda.to_device(b)).to_host()


def precise_fit(a, b):
    """Solve in double precision, with columns of the norm 1; return the solution and how sensitive it is to rounding.

    That is Wedin's factor (Higham, Accuracy and Stability of Numerical Algorithms, theorem 20.1), which grows with the
    residual.
    """
    wide = np.result_type(a.dtype, np.float64)
    norms = np.linalg.norm(a.astype(wide), axis=0)
    scaled = a.astype(wide) / norms
    terms, condition = np.linalg.lstsq(scaled, b.astype(wide))[0], np.linalg.cond(scaled)
    residual = np.linalg.norm(b - scaled @ terms) / (np.linalg.norm(scaled, 2) * np.linalg.norm(terms))
    return terms / norms, condition * (2 + (condition + 1) * residual)


def check(x, a, b):
    """Compare the terms x_j norm(a_j) of a solution with the precise ones."""
    expected, sensitivity = precise_fit(a, b)
    norms = np.linalg.norm(a.astype(expected.dtype), axis=0)
    error = np.linalg.norm((x - expected) * norms) / np.linalg.norm(expected * norms)
    assert error < 20 * sensitivity * np.finfo(a.dtype).eps


@batched
def test_columns_of_very_different_scales_are_independent(device, numbers, scales, dtype, batch):
    a, b = numbers((*batch, 20, 5), dtype) * scales((*batch, 1, 5), dtype), numbers((*batch, 20), dtype)
    for x, matrix, right in zip(fit(a, b).reshape(-1, 5), a.reshape(-1, 20, 5), b.reshape(-1, 20), strict=True):
        check(x, matrix, right)


@batched
def test_a_polynomial_of_degree_5_is_fitted_over_a_thousand(device, numbers, dtype, batch):
    t = np.linspace(0, 1000, 1000)
    a = np.broadcast_to(np.vander(t, 6), (*batch, 1000, 6)).astype(dtype)
    b = (np.polyval([1, -2, 3, -4, 5, -6], t / 1000) + 1e-3 * numbers(1000)).astype(dtype)
    for x in fit(a, np.broadcast_to(b, a.shape[:-1]).copy()).reshape(-1, 6):
        check(x, a.reshape(-1, 1000, 6)[0], b)


def test_orthogonal_columns_are_independent(device, dtype):
    assert np.allclose(fit(np.diag([1e17, 1]).astype(dtype), np.array([1e17, 2], dtype)), [1, 2])


@batched
@pytest.mark.parametrize("shape", [(3, 2), (20, 5), (100, 70)])
def test_a_dependent_column_is_found_at_every_scale(device, rng, numbers, scales, dtype, batch, shape):
    a, place = numbers((*batch, *shape), dtype), shape[1] - 1
    dependent = a[-1:] if batch else a[None]
    dependent[..., place] = dependent[..., :place] @ rng.standard_normal(place)
    a *= scales((*batch, 1, shape[1]), dtype)
    matrix = "matrix 2 of 'a'" if batch else "'a'"
    with pytest.raises(lib.SingularMatrixError, match=f"^lstsq: {matrix} .*: column {place} depends") as error:
        fit(a, np.ones(a.shape[:-1], dtype))
    assert error.value.pivot == place


@batched
def test_a_column_of_zeros_is_named(device, numbers, dtype, batch):
    a = numbers((*batch, 6, 2), dtype)
    a[..., 0] = 0
    with pytest.raises(lib.SingularMatrixError, match="column 0 is zero, to within rounding error$"):
        fit(a, np.ones(a.shape[:-1], dtype))

"""The conjugate gradients of the guide end with a solution or with an error that says why there is none."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries

sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed (the extra cpu)")

pytestmark = pytest.mark.needs("libraries")

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "libraries.md"
N = 30


@pytest.fixture
def solve(device):
    """Return the function of the guide, for a SciPy matrix and a NumPy vector."""
    (source,) = re.findall(r"^def conjugate_gradients.*?\n\n\n", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    names: dict[str, Any] = {"cuda": cuda, "libraries": libraries, "np": np}
    exec(source, names)

    def call(matrix, b, precondition=lambda s, r: r, **options):
        s = libraries.SparseMatrix.from_host(sparse.csr_array(matrix))
        x, steps = names["conjugate_gradients"](s, cuda.to_device(b), lambda r: precondition(s, r), **options)
        return x.to_host(), steps

    return call


@pytest.fixture
def laplace():
    return sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(N, N)).tocsr()


def test_a_positive_definite_system_is_solved(solve, laplace, rng):
    b = rng.random(N)
    x, steps = solve(laplace, b)
    assert np.allclose(laplace @ x, b)
    assert 0 < steps <= 2 * N
    assert solve(laplace, np.zeros(N)) == (pytest.approx(np.zeros(N)), 0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_element_that_is_not_finite_is_an_error(solve, laplace, value):
    for matrix, b in ((laplace, np.ones(N)), (laplace.copy(), np.ones(N))):
        (b if matrix is laplace else matrix.data)[3] = value
        with pytest.raises(ValueError, match="not finite$"):
            solve(matrix, b)


@pytest.mark.parametrize("diagonal", [[1.0, -1.0], [0.0, 0.0], [-1.0, -2.0]])
def test_a_matrix_that_is_not_positive_definite_is_an_error(solve, diagonal):
    with pytest.raises(ValueError, match="not positive definite"):
        solve(sparse.diags_array(diagonal), np.ones(2))


def test_a_preconditioner_that_is_not_symmetric_ends(solve, laplace, rng):
    with pytest.raises((RuntimeError, ValueError), match=r"after 50 steps|not positive definite"):
        solve(laplace, rng.random(N), lambda s, r: libraries.spsv(s, r, lower=True), most=50)


def test_too_few_steps_are_an_error_with_the_residual(solve, laplace, rng):
    with pytest.raises(RuntimeError, match=r"^the residual is still \d\.\de[+-]\d\d after 5 steps$"):
        solve(laplace, rng.random(N), most=5)

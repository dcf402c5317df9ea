"""Tridiagonal systems, many at once: against NumPy in higher precision, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.libraries.sparse.tridiagonal import solve_tridiagonal

pytest.importorskip("scipy", reason="SciPy is not installed (the extra cpu)")

pytestmark = pytest.mark.needs("libraries")


def systems(rng, shape=(5, 37), dtype=np.float64):
    """Return the diagonals of matrices with dominant diagonals, and right sides."""
    lower, middle, upper, b = rng.standard_normal((4, *shape)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        lower, b = lower * (1 + 2j), b * (2 - 1j)
    lower[:, 0] = upper[:, -1] = 0
    return lower, middle + 8, upper, b


def residual(lower, middle, upper, b, x):
    """Return the largest difference of a row's sides."""
    x = np.pad(x.astype(np.clongdouble), ((0, 0), (1, 1)))
    return np.abs(lower * x[:, :-2] + middle * x[:, 1:-1] + upper * x[:, 2:] - b).max()


@pytest.mark.parametrize(("dtype", "most"), [("f4", 1e-5), ("f8", 1e-13), ("c8", 1e-5), ("c16", 1e-13)])
@pytest.mark.parametrize("unknowns", [3, 37, 255])
def test_every_row_of_every_system_holds(device, rng, dtype, most, unknowns):
    hosts = systems(rng, (5, unknowns), dtype)
    x = solve_tridiagonal(*map(cuda.to_device, hosts))
    assert residual(*hosts, x.to_host()) < most


def test_the_right_sides_are_kept_unless_the_result_replaces_them(device, rng):
    lower, middle, upper, b = map(cuda.to_device, systems(rng))
    before = b.to_host()
    x = solve_tridiagonal(lower, middle, upper, b).to_host()
    assert np.array_equal(b.to_host(), before)
    assert solve_tridiagonal(lower, middle, upper, b, b) is b
    assert np.array_equal(b.to_host(), x)


def test_the_matrices_are_kept(device, rng):
    hosts = systems(rng)
    arrays = [cuda.to_device(host) for host in hosts]
    solve_tridiagonal(*arrays)
    assert all(np.array_equal(array.to_host(), host) for array, host in zip(arrays, hosts, strict=True))


def test_a_graph_solves_for_what_its_arrays_hold_now(device, rng):
    lower, middle, upper, b = systems(rng)
    arrays = [cuda.to_device(host) for host in (lower, middle, upper, b)]
    stream = cuda.Stream()
    out = solve_tridiagonal(*arrays, stream=stream)  # once outside, as every function of a library
    with stream.capture() as graph:
        solve_tridiagonal(*arrays, out, stream=stream)
    arrays[3].copy_from(2 * b)
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert residual(lower, middle, upper, 2 * b, out.to_host()) < 1e-13


def test_no_systems_are_solved_at_once(device):
    arrays = [cuda.empty((0, 5), np.float32) for _ in range(4)]
    assert solve_tridiagonal(*arrays).shape == (0, 5)


@pytest.mark.parametrize(
    ("place", "replaced", "error", "message"),
    [
        (3, np.zeros((5, 2)), ValueError, r"b has shape \(5, 2\); it is \(systems, unknowns\), with 3"),
        (3, np.zeros(37), ValueError, r"b has shape \(37,\)"),
        (3, np.zeros((5, 37), np.int32), TypeError, "b has dtype int32"),
        (1, np.zeros((5, 36)), ValueError, r"middle has shape \(5, 36\); b makes it \(5, 37\)"),
        (2, np.zeros((5, 37), np.float32), TypeError, "upper has dtype float32, and b float64"),
    ],
)
def test_what_does_not_fit_is_refused(device, rng, place, replaced, error, message):
    arrays = [cuda.to_device(host) for host in systems(rng)]
    arrays[place] = cuda.to_device(replaced)
    with pytest.raises(error, match=message):
        solve_tridiagonal(*arrays)


def test_gaps_are_refused(device, rng):
    _, middle, upper, b = map(cuda.to_device, systems(rng))
    wide = cuda.zeros((5, 40))
    with pytest.raises(ValueError, match="lower has strides"):
        solve_tridiagonal(wide[:, :37], middle, upper, b)


def test_a_result_over_a_matrix_is_refused(device, rng):
    lower, middle, upper, b = map(cuda.to_device, systems(rng))
    with pytest.raises(ValueError, match="out overlaps upper"):
        solve_tridiagonal(lower, middle, upper, b, upper)

"""Norms, the largest element, rank-1 updates, symmetric products, and batches of pointers, against NumPy."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries as lib

pytestmark = pytest.mark.needs("libraries")

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])


def near(got, expected, dtype):
    return np.linalg.norm(got - expected) <= 50 * np.finfo(dtype).eps * np.linalg.norm(expected)


def sizes(x):
    return np.abs(x.real) + np.abs(x.imag)


@every_dtype
@pytest.mark.parametrize("step", [1, 3])
def test_norms_and_the_largest_element_are_numpys(device, numbers, dtype, step):
    host = numbers(35, dtype)
    x, part = cuda.to_device(host)[::step], host[::step].astype(np.clongdouble)
    assert near(float(lib.nrm2(x)), np.linalg.norm(part.astype(complex)), dtype)
    assert near(float(lib.asum(x)), float(sizes(part).sum()), dtype)
    assert lib.nrm2(x).dtype == np.finfo(dtype).dtype
    assert lib.iamax(x) == sizes(host[::step]).argmax()


def test_a_norm_does_not_overflow(device):
    assert float(lib.nrm2(cuda.full(4, 1e200))) == pytest.approx(2e200)
    assert float(lib.nrm2(cuda.empty(0))) == 0
    assert lib.iamax(cuda.to_device(np.array([1, -5, 5, 2], np.float16))) == 1


@every_dtype
def test_an_outer_product_is_added(device, numbers, dtype):
    x, y, a = numbers(7, dtype), numbers(10, dtype), numbers((7, 5), dtype)
    for target in (cuda.to_device(a), cuda.to_device(np.ascontiguousarray(a.T)).T):
        assert lib.ger(0.5, cuda.to_device(x), cuda.to_device(y)[::2], target) is target
        expected = a + 0.5 * np.multiply.outer(x, y[::2])
        assert near(np.ascontiguousarray(target.T.to_host().T), expected, dtype)


@every_dtype
@pytest.mark.parametrize("lower", [True, False])
def test_symmetric_products_read_and_write_one_triangle(device, numbers, dtype, lower):
    half = np.tril if lower else np.triu
    a = numbers((6, 6), dtype)
    a = a + a.T
    stored = half(a) + np.where(half(np.ones((6, 6))), 0, np.nan).astype(dtype)
    x, b, c = numbers(6, dtype), numbers((6, 4), dtype), numbers((6, 4), dtype)
    one_triangle = cuda.to_device(stored)
    assert near(lib.symv(one_triangle, cuda.to_device(x), lower=lower).to_host(), a @ x, dtype)
    out = cuda.to_device(c)
    lib.symm(one_triangle, cuda.to_device(b), out, lower=lower, alpha=2, beta=-1)
    assert near(out.to_host(), 2 * (a @ b) - c, dtype)
    right = cuda.to_device(np.ascontiguousarray(b.T))
    assert near(lib.symm(one_triangle, right, side="right", lower=lower).to_host(), b.T @ a, dtype)
    assert near(lib.syrk(cuda.to_device(b), lower=lower).to_host(), half(b @ b.T), dtype)
    assert near(lib.syrk(cuda.to_device(b), lower=lower, op="T").to_host(), half(b.T @ b), dtype)


def test_matrices_that_lie_anywhere_are_multiplied_in_one_call(device, numbers, record):
    calls = record("cublas", "gemm_batched_ex")
    a, b, c = ([numbers(shape) for _ in range(4)] for shape in ((5, 3), (6, 3), (6, 5)))
    first, second, out = (list(map(cuda.to_device, hosts)) for hosts in (a, b, c))
    got = lib.gemm_batched(first, second, op_b="T")
    assert all(np.allclose(r.to_host(), x @ y.T) for r, x, y in zip(got, a, b, strict=True))
    assert lib.gemm_batched(first, second, [o.T for o in out], op_b="T", alpha=2.0, beta=3.0)[0].shape == (5, 6)
    assert all(np.allclose(r.to_host().T, 2 * x @ y.T + 3 * z.T) for r, x, y, z in zip(out, a, b, c, strict=True))
    assert len(calls) == 2
    assert lib.gemm_batched([], []) == []


def test_an_output_of_a_batch_must_not_be_an_operand_of_another_product(device, numbers):
    hosts = numbers((6, 4, 4))
    w = cuda.to_device(hosts)
    for outputs, words in (
        ([w[4], w[1]], r"'out\[1\]' must not overlap 'a\[1\]'"),
        ([w[3], w[4]], r"'out\[0\]' must not overlap 'b\[1\]'"),
        ([w[4], w[4]], r"'out\[1\]' must not overlap 'out\[0\]'"),
    ):
        with pytest.raises(ValueError, match=f"gemm_batched: argument {words}"):
            lib.gemm_batched([w[0], w[1]], [w[2], w[3]], outputs)
    for target in (cuda.zeros((4, 8)), cuda.zeros((8, 4)).T):  # blocks of columns, whose memory is interleaved
        lib.gemm_batched([w[0], w[1]], [w[2], w[3]], [target[:, :4], target[:, 4:]])
        products = np.concatenate([hosts[0] @ hosts[2], hosts[1] @ hosts[3]], axis=1)
        assert np.allclose(np.ascontiguousarray(target.T.to_host().T), products)
        with pytest.raises(ValueError, match=r"'out\[1\]' must not overlap 'out\[0\]'"):
            lib.gemm_batched([w[0], w[1]], [w[2], w[3]], [target[:, :4], target[:, 3:7]])


def test_a_batch_of_pointers_is_not_captured(device):
    a = [cuda.zeros((3, 3))]
    with cuda.Stream() as stream:
        lib.gemm_batched(a, a, stream=stream)
        with pytest.raises(cuda.errors.CaptureError, match=r"^gemm_batched: .* from the host"), stream.capture():
            lib.gemm_batched(a, a, stream=stream)

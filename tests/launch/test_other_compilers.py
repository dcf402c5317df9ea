"""PTX that numba-cuda and Triton generated from Python, recorded by `other_compilers`."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda

DATA = Path(__file__).parent / "data"


def only_kernel(image):
    module = cuda.load(image)
    (name,) = module.kernels
    return module[name]


def numba_kernel(name):
    return only_kernel((DATA / f"numba_{name}.ptx").read_bytes())


def numba_array(array):
    """Return the kernel arguments that represent one array in numba's ABI."""
    described = (array.size, array.itemsize, array, *array.shape, *array.strides)
    return [np.uint64(0), np.uint64(0), *(x if x is array else np.int64(x) for x in described)]


def launch_triton(name, grid, *arguments):
    """Launch a kernel with the recorded configuration; the last two pointers are null: no scratch memory is used."""
    text = (DATA / f"triton_{name}.ptx").read_text()
    threads, shared = map(int, re.match(r"// (\d+) threads a block, (\d+) bytes of shared memory", text).groups())
    only_kernel(text.encode())[grid, threads, shared](*arguments, np.uint64(0), np.uint64(0))


def test_numba_adds_a_multiple(device, rng):
    x, y = rng.normal(size=(2, 1000)).astype(np.float32)
    out = cuda.to_device(y)
    numba_kernel("scaled_sum")[8, 128](np.float32(0.5), *numba_array(cuda.to_device(x)), *numba_array(out))
    # The product with a power of two is exact, so it does not matter whether it is fused.
    np.testing.assert_array_equal(out.to_host(), np.float32(0.5) * x + y)


def test_numba_adds_up_in_shared_memory(device, rng):
    x = rng.normal(size=1000)
    total = cuda.zeros(1, np.float64)
    numba_kernel("block_sums")[8, 128](*numba_array(cuda.to_device(x)), *numba_array(total))
    np.testing.assert_allclose(total.to_host()[0], math.fsum(x), rtol=0, atol=1e-12)


def test_numba_computes_functions(device, rng):
    x = rng.uniform(-3, 3, 500)
    out = cuda.full(500, np.nan)
    numba_kernel("functions")[4, 128](*numba_array(cuda.to_device(x)), *numba_array(out))
    expected = [
        math.erf(v) + math.lgamma(1.5 + v * v) + math.pow(abs(v) + 0.5, v) + math.sin(9e5 * v) for v in x.tolist()
    ]
    np.testing.assert_allclose(out.to_host(), expected, rtol=1e-13, atol=1e-13)


def test_numba_sorts_in_local_memory(device, rng):
    x = rng.integers(-1000, 1000, (70, 16), np.int32)
    out = cuda.full((70, 16), -7, np.int32)
    numba_kernel("sorted_rows")[2, 64](*numba_array(cuda.to_device(x)), *numba_array(out))
    np.testing.assert_array_equal(out.to_host(), np.sort(x, axis=1))


def test_numba_shuffles_and_votes(device, rng):
    x = rng.integers(-1000, 1000, 192, np.int32)
    out = cuda.full((6, 2), -7, np.int32)
    numba_kernel("warp_sums")[2, 96](*numba_array(cuda.to_device(x)), *numba_array(out))
    warps = x.reshape(6, 32)
    np.testing.assert_array_equal(out.to_host(), np.stack([warps.sum(axis=1), (warps > 0).sum(axis=1)], axis=1))


def test_triton_normalises_rows(device, rng):
    x = rng.normal(size=(7, 181)).astype(np.float32)
    out = cuda.full((7, 181), np.nan, np.float32)
    launch_triton("softmax", 7, out, cuda.to_device(x), np.int32(181))
    powers = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(out.to_host(), powers / powers.sum(axis=1, keepdims=True), rtol=3e-6)


def test_triton_scans_and_counts(device, rng):
    x = rng.integers(0, 1000, 200, np.int32)
    sums, counts = cuda.full(200, -7, np.int32), cuda.zeros(8, np.int32)
    launch_triton("scan_and_count", 1, cuda.to_device(x), sums, counts, np.int32(200))
    np.testing.assert_array_equal(sums.to_host(), np.cumsum(x))
    np.testing.assert_array_equal(counts.to_host(), np.bincount(x % 8, minlength=8))


@pytest.mark.parametrize(
    ("name", "dtype", "error"),
    # TF32 has 11 bits, so each factor of a product has a relative error of up to 2**-11. Halves are exact.
    [("product_of_halves", np.float16, 2.0**-23), ("product_of_singles", np.float32, 2.0**-10)],
)
def test_triton_multiplies_with_tensor_cores(device, rng, name, dtype, error):
    rows, columns, inner = 70, 45, 83
    a, b = (rng.normal(size=shape).astype(dtype) for shape in ((rows, inner), (inner, columns)))
    out = cuda.full((rows, columns), np.nan, np.float32)
    sizes = (np.int32(rows), np.int32(columns), np.int32(inner))
    launch_triton(name, (3, 2), cuda.to_device(a), cuda.to_device(b), out, *sizes)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    allowed = (error + inner * 2.0**-23) * (np.abs(wide_a) @ np.abs(wide_b))
    assert (np.abs(out.to_host() - wide_a @ wide_b) <= allowed).all()


def test_triton_computes_attention_by_groups_of_warps(device, rng):
    heads, count, depth = 2, 70, 64
    q, k, v = rng.normal(size=(3, heads, count, depth)).astype(np.float16)
    out = cuda.full((heads, count, depth), np.nan, np.float32)
    sizes = (np.int32(count), np.float32(1 / 8))
    launch_triton("attention", (2, heads), *map(cuda.to_device, (q, k, v)), out, *sizes)
    score = np.einsum("hid,hjd->hij", q.astype(np.float64), k.astype(np.float64)) / 8
    score[:, np.triu(np.ones((count, count), np.bool_), 1)] = -np.inf
    weight = np.exp(score - score.max(axis=-1, keepdims=True))
    expected = weight @ v.astype(np.float64) / weight.sum(axis=-1, keepdims=True)
    # The kernel rounds the weights, at most 1, to halves.
    np.testing.assert_allclose(out.to_host(), expected, rtol=0, atol=2.0**-11 * np.abs(v.astype(np.float64)).max())

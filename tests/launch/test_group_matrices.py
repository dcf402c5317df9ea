"""Products of the matrices of four warps (``wgmma``), of which the operands lie in shared memory."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda

HERE = Path(__file__).parent
# c = c0 - a b, in steps of 16 along the depth. Each bit of `wrong` leaves out one thing.
KERNEL = """
#include "group_matrices.cuh"
#include <cuda_fp16.h>
__device__ void fill(__half *to, int rows, const __half *from, int depth)
{
    for (int i = threadIdx.x; i < rows * 16; i += 128) to[place(i / 16, i % 16)] = from[i / 16 * depth + i % 16];
}
extern "C" __global__ void product(float *c, const __half *a, const __half *b, int depth, int wrong)
{
    __shared__ alignas(128) __half left[64 * 16], right[16 * 16];
    float d[8];
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    for (int i = 0; i < 8; i++) d[i] = c[(row + i / 2 % 2 * 8) * 16 + column + i / 4 * 8 + i % 2];
    for (int first = 0; first < depth; first += 16) {
        fill(left, 64, a + first, depth);
        fill(right, 16, b + first, depth);
        if (!(wrong & 1)) cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
        if (!(wrong & 2)) __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply(d, descriptor(left), descriptor(right), 1);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (!(wrong & 4)) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 8; i++) c[(row + i / 2 % 2 * 8) * 16 + column + i / 4 * 8 + i % 2] = d[i];
}
// One thread copies matrices to two buffers in turn, and one thread of the other four warps says when each is free.
// Each piece of `in` is a left and a right matrix, laid out for the descriptors.
extern "C" __global__ void ring(float *c, const __half *in, int pieces, int wrong)
{
    constexpr int bytes = (64 + 16) * 16 * 2;
    __shared__ alignas(128) __half buffers[2][bytes / 2];
    __shared__ alignas(8) uint64_t full[2], empty[2];
    namespace ptx = cuda::ptx;
    if (threadIdx.x < 2) {
        ptx::mbarrier_init(&full[threadIdx.x], 1);
        ptx::mbarrier_init(&empty[threadIdx.x], 1);
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        for (int i = 0; i < pieces && threadIdx.x == 128; i++) {
            while (!ptx::mbarrier_try_wait_parity(&empty[i % 2], (i / 2 & 1) ^ 1)) {}
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[i % 2], bytes);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, buffers[i % 2], in + i * (bytes / 2), bytes,
                               &full[i % 2]);
        }
        return;
    }
    float d[8] = {};
    for (int i = 0; i < pieces; i++) {
        while (!ptx::mbarrier_try_wait_parity(&full[i % 2], i / 2 & 1)) {}
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply(d, descriptor(buffers[i % 2]), descriptor(buffers[i % 2] + 64 * 16), 1);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (!(wrong & 1)) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (threadIdx.x == 37) ptx::mbarrier_arrive(&empty[i % 2]);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    for (int i = 0; i < 8; i++) c[(row + i / 2 % 2 * 8) * 16 + column + i / 4 * 8 + i % 2] = d[i];
}
// Only some rows of the matrices are there, and only their products are stored.
extern "C" __global__ void part(float *c, const __half *in, int rows)
{
    __shared__ alignas(128) __half buffer[(64 + 16) * 16];
    for (int i = threadIdx.x; i < 80 * 16; i += 128)
        if (i < rows * 16 || i >= 64 * 16) buffer[i] = in[i];
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    __syncthreads();
    float d[8] = {};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    multiply(d, descriptor(buffer), descriptor(buffer + 64 * 16), 1);
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    for (int i = 0; i < 8; i++)
        if (row + i / 2 % 2 * 8 < rows || rows == 0)
            c[(row + i / 2 % 2 * 8) * 16 + column + i / 4 * 8 + i % 2] = d[i];
}
// The four warps fill the matrices themselves, each thread behind its own wait.
extern "C" __global__ void refill(float *c, const __half *in, int pieces, int wrong)
{
    __shared__ alignas(128) __half buffer[(64 + 16) * 16];
    float d[8] = {};
    for (int i = 0; i < pieces; i++) {
        for (int j = threadIdx.x; j < 80 * 16; j += 128) buffer[j] = in[i * 80 * 16 + j];
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply(d, descriptor(buffer), descriptor(buffer + 64 * 16), 1);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (!(wrong & 1)) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    for (int i = 0; i < 8; i++) c[(row + i / 2 % 2 * 8) * 16 + column + i / 4 * 8 + i % 2] = d[i];
}
"""


@pytest.fixture(scope="module")
def kernels():
    with cuda.Device(0):
        return cuda.compile(KERNEL, include=[HERE], arch="sm_90a", options=["--diag-suppress=20054"])


@pytest.fixture
def product(kernels):
    return kernels["product"]


@pytest.mark.parametrize("depth", [16, 48])
def test_a_product_is_subtracted(device, product, rng, depth):
    a, b = (rng.normal(size=(rows, depth)).astype(np.float16) for rows in (64, 16))
    before = rng.normal(size=(64, 16)).astype(np.float32)
    c = cuda.to_device(before)
    product[1, 128](c, cuda.to_device(a), cuda.to_device(b), depth, 0)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64).T
    # Products of halves are exact, and each step rounds its sum; the hardware truncates what it adds.
    allowed = depth * 2.0**-22 * (np.abs(before) + np.abs(wide_a) @ np.abs(wide_b))
    assert (np.abs(c.to_host() - (before - wide_a @ wide_b)) <= allowed).all()


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("the kernel is wrong on purpose")
@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (1, "and no fence.proxy.async lies between"),
        (2, "nothing puts one before the other"),
        (4, "from which wgmma reads for block (0, 0, 0)"),
    ],
)
def test_a_mistake_beside_a_product_is_found(device, product, rng, wrong, text):
    a, b = (cuda.to_device(rng.normal(size=(rows, 48)).astype(np.float16)) for rows in (64, 16))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        product[1, 128](cuda.zeros((64, 16), np.float32), a, b, 48, wrong)
        device.synchronize()
    assert any(text in str(one.message) for one in caught), [str(one.message) for one in caught]


def laid_out(matrix):
    """Return a matrix with 16 columns as `place` has it."""
    return matrix.reshape(-1, 8, 2, 8).swapaxes(1, 2).reshape(-1)


@pytest.mark.parametrize(("name", "threads"), [("ring", 160), ("refill", 128)])
def test_the_wait_of_one_thread_frees_the_matrices_of_four_warps(device, kernels, rng, name, threads):
    a, b = (rng.integers(-8, 9, (5, rows, 16)).astype(np.float16) for rows in (64, 16))
    pieces = np.stack([np.concatenate([laid_out(left), laid_out(right)]) for left, right in zip(a, b, strict=True)])
    c = cuda.zeros((64, 16), np.float32)
    kernels[name][1, threads](c, cuda.to_device(pieces), 5, 0)
    # The kernels' `multiply` subtracts. Products of small numbers are exact.
    products = a.astype(np.float32) @ b.astype(np.float32).swapaxes(1, 2)
    np.testing.assert_array_equal(c.to_host(), -products.sum(axis=0))


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("the kernel is wrong on purpose")
@pytest.mark.parametrize(("name", "threads"), [("ring", 160), ("refill", 128)])
def test_matrices_freed_before_the_wait_are_found(device, kernels, name, threads):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernels[name][1, threads](cuda.zeros((64, 16), np.float32), cuda.zeros((5, 80, 16), np.float16), 5, 1)
        device.synchronize()
    text = "from which wgmma reads for block (0, 0, 0)"
    assert any(text in str(one.message) for one in caught), [str(one.message) for one in caught]


@pytest.mark.parametrize("rows", [8, 40])
def test_rows_that_nobody_wrote_do_no_harm_to_others(device, kernels, rng, rows):
    a, b = (rng.integers(-8, 9, (count, 16)).astype(np.float16) for count in (64, 16))
    c = cuda.zeros((64, 16), np.float32)
    kernels["part"][1, 128](c, cuda.to_device(np.concatenate([laid_out(a), laid_out(b)])), rows)
    expected = -(a.astype(np.float32) @ b.astype(np.float32).T)
    np.testing.assert_array_equal(c.to_host(), np.where(np.arange(64)[:, None] < rows, expected, 0))


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("the kernel is wrong on purpose")
def test_the_product_of_a_matrix_that_nobody_wrote_is_found(device, kernels):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernels["part"][1, 128](cuda.zeros((64, 16), np.float32), cuda.zeros((80, 16), np.float16), 0)
        device.synchronize()
    text = "uninitialised value reaches a store: it was read at kernel.cu"
    assert any(text in str(one.message) for one in caught), [str(one.message) for one in caught]

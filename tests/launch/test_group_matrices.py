"""Matrix products by warpgroups of four warps (``wgmma``), whose operands are in shared memory."""

from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from tests.simulator.checks.reports import found

HERE = Path(__file__).parent
# Each bit of `wrong` leaves out one required step. The left and right matrices are adjacent, as the descriptors say.
COMPILE_OPTIONS = {"include": [HERE], "arch": "sm_90a", "options": ["--diag-suppress=20054"]}
KERNELS = """
#include "group_matrices.cuh"
#include <cuda_fp16.h>
namespace ptx = cuda::ptx;
constexpr int left_size = 64 * 16, size = (64 + 16) * 16;
// The index in the result of the element that a thread holds as its number `i`.
__device__ int result(int i)
{
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i / 2 % 2 * 8;
    return row * 16 + threadIdx.x % 4 * 2 + i / 4 * 8 + i % 2;
}
__device__ void wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
__device__ void begin(float (&d)[8], const __half *matrices)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    multiply(d, descriptor(matrices), descriptor(matrices + left_size), 1);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
__device__ void fill(__half *to, int rows, const __half *from, int depth)
{
    for (int i = threadIdx.x; i < rows * 16; i += 128) to[place(i / 16, i % 16)] = from[i / 16 * depth + i % 16];
}
// c = c0 - a b, in steps of 16 along the depth.
extern "C" __global__ void product(float *c, const __half *a, const __half *b, int depth, int wrong)
{
    __shared__ alignas(128) __half matrices[size];
    float d[8];
    for (int i = 0; i < 8; i++) d[i] = c[result(i)];
    for (int first = 0; first < depth; first += 16) {
        fill(matrices, 64, a + first, depth);
        fill(matrices + left_size, 16, b + first, depth);
        if (!(wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
        if (!(wrong & 2)) __syncthreads();
        begin(d, matrices);
        if (!(wrong & 4)) wait();
        __syncthreads();
    }
    wait();
    for (int i = 0; i < 8; i++) c[result(i)] = d[i];
}
// One thread copies matrices to two buffers in turn, and one thread of the other four warps says when each is free.
extern "C" __global__ void ring(float *c, const __half *in, int pieces, int wrong)
{
    __shared__ alignas(128) __half buffers[2][size];
    __shared__ alignas(8) uint64_t full[2], empty[2];
    if (threadIdx.x < 2) {
        ptx::mbarrier_init(&full[threadIdx.x], 1);
        ptx::mbarrier_init(&empty[threadIdx.x], 1);
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        for (int i = 0; i < pieces && threadIdx.x == 128; i++) {
            while (!ptx::mbarrier_try_wait_parity(&empty[i % 2], (i / 2 & 1) ^ 1)) {}
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[i % 2], 2 * size);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, buffers[i % 2], in + i * size, 2 * size,
                               &full[i % 2]);
        }
        return;
    }
    float d[8] = {};
    for (int i = 0; i < pieces; i++) {
        while (!ptx::mbarrier_try_wait_parity(&full[i % 2], i / 2 & 1)) {}
        begin(d, buffers[i % 2]);
        if (!(wrong & 1)) wait();
        if (threadIdx.x == 37) ptx::mbarrier_arrive(&empty[i % 2]);
        wait();
    }
    for (int i = 0; i < 8; i++) c[result(i)] = d[i];
}
// Only some rows of the matrices are there, and only their products are stored.
extern "C" __global__ void part(float *c, const __half *in, int rows)
{
    __shared__ alignas(128) __half buffer[size];
    for (int i = threadIdx.x; i < size; i += 128)
        if (i < rows * 16 || i >= left_size) buffer[i] = in[i];
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    float d[8] = {};
    begin(d, buffer);
    wait();
    for (int i = 0; i < 8; i++)
        if (result(i) < rows * 16 || rows == 0) c[result(i)] = d[i];
}
// The four warps fill the matrices themselves, each thread behind its own wait.
extern "C" __global__ void refill(float *c, const __half *in, int pieces, int wrong)
{
    __shared__ alignas(128) __half buffer[size];
    float d[8] = {};
    for (int i = 0; i < pieces; i++) {
        for (int j = threadIdx.x; j < size; j += 128) buffer[j] = in[i * size + j];
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        begin(d, buffer);
        if (!(wrong & 1)) wait();
    }
    wait();
    for (int i = 0; i < 8; i++) c[result(i)] = d[i];
}
"""


@pytest.mark.parametrize("depth", [16, 48])
def test_a_product_is_subtracted(device, kernels, rng, depth):
    a, b = (rng.normal(size=(rows, depth)).astype(np.float16) for rows in (64, 16))
    before = rng.normal(size=(64, 16)).astype(np.float32)
    c = cuda.to_device(before)
    kernels["product"][1, 128](c, cuda.to_device(a), cuda.to_device(b), depth, 0)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64).T
    # Products of halves are exact. Each step rounds its sum, and the hardware truncates the addends.
    allowed = depth * 2.0**-22 * (np.abs(before) + np.abs(wide_a) @ np.abs(wide_b))
    assert (np.abs(c.to_host() - (before - wide_a @ wide_b)) <= allowed).all()


def laid_out(matrix):
    """Return a matrix of 16 columns in the layout of the kernel's `place`: 8 x 8 core matrices."""
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


@pytest.mark.parametrize("rows", [8, 40])
def test_rows_that_nobody_wrote_do_no_harm_to_others(device, kernels, rng, rows):
    a, b = (rng.integers(-8, 9, (count, 16)).astype(np.float16) for count in (64, 16))
    c = cuda.zeros((64, 16), np.float32)
    kernels["part"][1, 128](c, cuda.to_device(np.concatenate([laid_out(a), laid_out(b)])), rows)
    expected = -(a.astype(np.float32) @ b.astype(np.float32).T)
    np.testing.assert_array_equal(c.to_host(), np.where(np.arange(64)[:, None] < rows, expected, 0))


READ = "from which wgmma reads for block (0, 0, 0)"


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("the kernel is wrong on purpose")
@pytest.mark.parametrize(
    ("name", "threads", "numbers", "text"),
    [
        ("product", 128, (48, 1), "with no fence.proxy.async in between"),
        ("product", 128, (48, 2), "nothing orders the two accesses"),
        ("product", 128, (48, 4), READ),
        ("ring", 160, (5, 1), READ),
        ("refill", 128, (5, 1), READ),
        ("part", 128, (0,), "uninitialised value reaches a store: it was read at kernel.cu"),
    ],
)
def test_a_mistake_beside_a_product_is_found(device, kernels, name, threads, numbers, text):
    matrices = cuda.zeros((5, 80, 16), np.float16)
    pointers = (matrices, matrices) if name == "product" else (matrices,)
    texts = found(kernels[name][1, threads], cuda.zeros((64, 16), np.float32), *pointers, *numbers)
    assert any(text in one for one in texts), texts

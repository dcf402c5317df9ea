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
"""


@pytest.fixture(scope="module")
def product():
    with cuda.Device(0):
        return cuda.compile(KERNEL, include=[HERE], arch="sm_90a")["product"]


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

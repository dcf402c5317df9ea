"""A barrier in memory orders what was done before its arrivals, and nothing that was only done before another's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import cudart_py as cuda

pytestmark = [pytest.mark.needs("profile"), pytest.mark.unsanitized("the kernels are wrong on purpose")]

# Each kernel is right with `wrong` 0; every other number is one mistake.
KERNELS = """
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

// Warp 0 fills a ring of three buffers from rows, which the other warps add up.
extern "C" __global__ void ring(int *out, const int *in, int wrong) {
    __shared__ int s[3][32];
    __shared__ block_barrier full[3], empty[3];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rows = 12;
    if (threadIdx.x == 0)
        for (int stage = 0; stage < 3; stage++) {
            init(full + stage, 32);
            init(empty + stage, blockDim.x - (wrong == 2 ? 64 : 32));
        }
    __syncthreads();
    if (warp == 0) {
        for (int row = 0; row < rows; row++) {
            // 1: no wait for one of the buffers
            if (row >= 3 && !(wrong == 1 && row % 3 == 1)) empty[row % 3].wait_parity((row / 3 - 1) & 1);
            s[row % 3][lane] = in[row * 32 + lane];
            (void)full[row % 3].arrive();
        }
        return;
    }
    int sum = 0;
    for (int row = 0; row < rows; row++) {
        full[row % 3].wait_parity((row / 3) & 1);
        if (wrong == 3) (void)empty[row % 3].arrive();   // 3: an arrival before the read
        sum += s[row % 3][lane];
        // 2: a warp that doesn't arrive, the last one, whose reads are remembered
        if (wrong != 3 && !(wrong == 2 && warp == 3)) (void)empty[row % 3].arrive();
    }
    out[threadIdx.x] = sum;
}

// Warp 0 arrives for the second phase, which isn't complete, before warp 1 has waited for the first.
extern "C" __global__ void next_phase(int *out, const int *in, int wrong) {
    __shared__ int s[32];
    __shared__ block_barrier bar, later;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        init(&bar, 64);
        init(&later, 32);
    }
    __syncthreads();
    (void)bar.arrive();
    if (warp == 0) {
        bar.wait_parity(0);
        s[lane] = in[lane];
        (void)bar.arrive();
        (void)later.arrive();
    } else {
        if (wrong != 1) later.wait_parity(0);
        for (int nap = 0; nap < 9; nap++) __nanosleep(1);
        bar.wait_parity(0);
        out[lane] = s[31 - lane];
    }
}

// From warp to warp, each by a barrier of its own.
extern "C" __global__ void chain(int *out, const int *in, int wrong) {
    __shared__ int s[32];
    __shared__ block_barrier bar[4];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x < 4) init(bar + threadIdx.x, 32);
    __syncthreads();
    if (warp == 0) s[lane] = in[lane];
    if (warp > 0 && !(wrong == 1 && warp == 1)) bar[warp - 1].wait_parity(0);   // 1: a link is missing
    (void)bar[warp].arrive();
    if (warp == 3) out[lane] = s[31 - lane];
}

// A barrier, then a named barrier of two warps, then a barrier.
extern "C" __global__ void named_between(int *out, const int *in, int wrong) {
    __shared__ int s[32];
    __shared__ block_barrier bar[2];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x < 2) init(bar + threadIdx.x, 32);
    __syncthreads();
    if (warp == 0) {
        s[lane] = in[lane];
        (void)bar[0].arrive();
    } else if (warp == 1) {
        bar[0].wait_parity(0);
        asm volatile("bar.sync 1, 64;" ::: "memory");
    } else if (warp == 2) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        (void)bar[1].arrive();
    } else {
        bar[1].wait_parity(0);
        out[lane] = s[31 - lane];
    }
}

// What warp 0 wrote goes by a barrier to warp 1, by a flag to warp 2, and by a barrier to warp 3.
extern "C" __global__ void flag_between(int *out, const int *in, int wrong) {
    __shared__ int s[32];
    __shared__ int flag;
    __shared__ block_barrier bar[2];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) flag = 0;
    if (threadIdx.x < 2) init(bar + threadIdx.x, 32);
    __syncthreads();
    cuda::atomic_ref<int, cuda::thread_scope_block> said(flag);
    if (warp == 0) {
        s[lane] = in[lane];
        (void)bar[0].arrive();
    } else if (warp == 1) {
        bar[0].wait_parity(0);
        __syncwarp();
        if (lane == 0) said.store(1, cuda::memory_order_release);
    } else if (warp == 2) {
        if (lane == 0)
            while (!said.load(cuda::memory_order_acquire)) {}
        __syncwarp();
        (void)bar[1].arrive();
    } else {
        bar[1].wait_parity(0);
        out[lane] = s[31 - lane];
    }
}

// What other blocks have released comes to warp 0 by an atomic, and to warp 1 by a barrier.
extern "C" __global__ void other_blocks(int *out, const int *in, int wrong) {
    __shared__ block_barrier bar;
    int *values = out + 64, *count = out + 512;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) init(&bar, 32);
    __syncthreads();
    if (warp == 0) {
        values[blockIdx.x * 32 + lane] = in[blockIdx.x * 32 + lane];
        __threadfence();
        atomicAdd(count, 1);
        while (atomicAdd(count, 0) < 32 * gridDim.x) {}
        __threadfence();
        (void)bar.arrive();
    } else {
        bar.wait_parity(0);
        int sum = 0;
        for (int block = 0; block < gridDim.x; block++) sum += values[block * 32 + 31 - lane];
        if (blockIdx.x == 0) out[lane] = sum;
    }
}
"""
SHAPES = {
    "ring": (1, 128),
    "next_phase": (1, 64),
    "chain": (1, 128),
    "named_between": (1, 128),
    "flag_between": (1, 128),
    "other_blocks": (3, 64),
}
WRONG = [
    ("ring", 1, "writes 4 bytes of shared memory"),
    ("ring", 2, "writes 4 bytes of shared memory"),
    ("ring", 3, "writes 4 bytes of shared memory"),
    ("next_phase", 1, "writes 4 bytes of shared memory"),
    ("chain", 1, "reads 4 bytes of shared memory"),
]  # fmt: skip  # rows of a table


@pytest.fixture(scope="module")
def kernels():
    with cuda.Device(0):
        return cuda.compile(KERNELS)


def found(device, kernels, name, wrong):
    out, given = cuda.zeros(1024, np.int32), np.arange(1, 1025, dtype=np.int32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernels[name][SHAPES[name]](out, cuda.to_device(given), wrong)
        device.synchronize()
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("name", SHAPES)
def test_what_barriers_put_in_order_is_no_race(device, kernels, name):
    assert found(device, kernels, name, 0) == []


@pytest.mark.parametrize(("name", "wrong", "text"), WRONG)
def test_what_they_do_not_put_in_order_is_a_race(device, kernels, name, wrong, text):
    warnings = found(device, kernels, name, wrong)
    assert any(f"race: it {text}" in warning for warning in warnings), warnings


# --- addresses without a barrier

WILD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry wild(.param .u64 address) {{
    .reg .b64 %rd<3>;
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [address];
    {instruction};
    ret;
}}
"""


@pytest.fixture
def forgotten():
    """Give the device up after the test, since its context is lost."""
    yield
    cuda.reset()


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("address", [512, 0xFFF8, (1 << 31) - 8, (1 << 47) + (1 << 30), (1 << 63) - 8])
@pytest.mark.parametrize(
    "instruction",
    [
        "mbarrier.init.shared.b64 [%rd1], 1",
        "mbarrier.init.b64 [%rd1], 1",
        "mbarrier.arrive.shared.b64 %rd2, [%rd1]",
        "cp.async.mbarrier.arrive.shared.b64 [%rd1]",
    ],
)
def test_a_barrier_at_a_wild_address_is_a_fault(device, instruction, address):
    kernel = cuda.load(WILD.format(instruction=instruction).encode())["wild"]
    kernel[1, 32](np.uint64(address))
    with pytest.raises(cuda.IllegalAddressError):
        device.synchronize()

"""Mistakes with bulk copies are found; what is in order is no mistake."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import cudart_py as cuda

pytestmark = [pytest.mark.needs("profile"), pytest.mark.unsanitized("the kernels are wrong on purpose")]

# Each kernel is right with `wrong` 0; each bit of `wrong` leaves out one thing.
KERNELS = """
#include <cuda/barrier>
#include <cuda/ptx>
namespace ptx = cuda::ptx;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

// Copy 64 numbers, and arrive at the barrier that counts their bytes.
__device__ void fetch(int *to, const int *from, block_barrier &bar) {
    cuda::device::memcpy_async_tx(to, from, cuda::aligned_size_t<16>(256), bar);
    (void)cuda::device::barrier_arrive_tx(bar, 1, 256);
}

extern "C" __global__ void fetched(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    __shared__ block_barrier bar;
    if (threadIdx.x == 0) init(&bar, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        fetch(s, in, bar);
        if (wrong & 1) out[64] = s[5];
    }
    if (!(wrong & 2)) bar.wait_parity(0);
    out[threadIdx.x] = s[63 - threadIdx.x];
}

// Only one thread waits, and a barrier passes that on.
extern "C" __global__ void waited_by_one(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    __shared__ block_barrier bar;
    if (threadIdx.x == 0) init(&bar, 1);
    __syncthreads();
    if (threadIdx.x == 0) fetch(s, in, bar);
    if (threadIdx.x == 40 && !(wrong & 1)) bar.wait_parity(0);
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}

// A wait at a barrier where the copying thread has arrived since says nothing of the copy.
extern "C" __global__ void waited_elsewhere(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    __shared__ block_barrier bar, other;
    s[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        init(&other, 1);
    }
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        fetch(s, in, bar);
        (void)other.arrive();
    }
    if (wrong & 1) other.wait_parity(0);
    else bar.wait_parity(0);
    out[threadIdx.x] = s[63 - threadIdx.x];
}

// The warp that copies waits; the other one only knows that the copy has begun.
extern "C" __global__ void waited_by_one_warp(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    __shared__ block_barrier bar, begun;
    if (threadIdx.x == 0) {
        init(&bar, 32);
        init(&begun, 64);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) cuda::memcpy_async(s, in, cuda::aligned_size_t<16>(256), bar);
        __syncwarp();
        (void)begun.arrive();
        bar.arrive_and_wait();
    } else {
        begun.arrive_and_wait();
        if (!(wrong & 1)) bar.wait_parity(0);
        out[threadIdx.x] = s[63 - threadIdx.x];
    }
}

// The same buffer is filled twice.
extern "C" __global__ void refilled(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    __shared__ block_barrier bar;
    if (threadIdx.x == 0) init(&bar, 1);
    __syncthreads();
    int sum = 0;
    for (int round = 0; round < 2; round++) {
        if (threadIdx.x == 0) fetch(s, in + 64 * round, bar);
        bar.wait_parity(round);
        sum += s[63 - threadIdx.x];
        if (!(wrong & 1)) __syncthreads();
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void stored(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    for (int round = 0; round < 2; round++) {
        s[threadIdx.x] = in[64 * round + threadIdx.x];
        if (!(wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
        if (!(wrong & 2)) __syncthreads();
        if (threadIdx.x == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + 64 * round, s, 256);
            ptx::cp_async_bulk_commit_group();
            if (!(wrong & 4)) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
        }
        if (!(wrong & 8)) __syncthreads();
    }
}

// The thread that copies executes the proxy fence, behind the barrier.
extern "C" __global__ void fenced_by_the_copier(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        if (!(wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, s, 256);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}

// A thread that neither stores nor copies executes the proxy fence, between two barriers.
extern "C" __global__ void fenced_by_a_third(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    if (threadIdx.x < 32) s[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x == 40 && (wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 40 && !(wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
    if (!(wrong & 2)) __syncthreads();
    if (threadIdx.x == 50) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, s, 128);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}

// One thread of a warp executes it for the others, and a barrier in memory tells the one that copies.
extern "C" __global__ void fenced_by_one_of_a_warp(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[32];
    __shared__ alignas(8) uint64_t bar;
    if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 1);
    __syncthreads();
    if (threadIdx.x < 32) {
        s[threadIdx.x] = in[threadIdx.x];
        if (threadIdx.x == 3 && (wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
        __syncwarp();
        if (threadIdx.x == 3 && !(wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
        if (threadIdx.x == 3) ptx::mbarrier_arrive(&bar);
    } else if (threadIdx.x == 32) {
        while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, s, 128);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}

// All threads of a warp arrive at a barrier in memory, and one of the other warp fences behind its wait there.
extern "C" __global__ void fenced_behind_a_wait(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[32];
    __shared__ alignas(8) uint64_t stored, fenced;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&stored, 32);
        ptx::mbarrier_init(&fenced, 1);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        s[threadIdx.x] = in[threadIdx.x];
        ptx::mbarrier_arrive(&stored);
        if (threadIdx.x == 0) {
            while (!ptx::mbarrier_try_wait_parity(&fenced, 0)) {}
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, s, 128);
            ptx::cp_async_bulk_commit_group();
            ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
        }
    } else if (threadIdx.x == 32) {
        if (wrong & 1) ptx::fence_proxy_async(ptx::space_shared);
        while (!ptx::mbarrier_try_wait_parity(&stored, 0)) {}
        if (!(wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
        ptx::mbarrier_arrive(&fenced);
    }
}

// The fence is one for a cluster's shared memory alone.
extern "C" __global__ void fenced_for_the_cluster(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    if (!(wrong & 1))
        ptx::fence_proxy_async_generic_sync_restrict(ptx::sem_release, ptx::space_shared, ptx::scope_cluster);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, s, 256);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}

// A proxy fence is no memory fence.
extern "C" __global__ void announced(int *out, const int *in, int wrong) {
    __shared__ int value, flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        value = in[0];
        if (wrong & 1) ptx::fence_proxy_async();
        else __threadfence_block();
        atomicExch(&flag, 1);
    } else if (threadIdx.x == 32) {
        while (!atomicAdd(&flag, 0)) {}
        __threadfence_block();
        out[0] = value;
    }
}

// Two buffers: of the groups of copies the last one may still read.
extern "C" __global__ void alternating(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[2][64];
    for (int round = 0; round < 6; round++) {
        if (threadIdx.x == 0) {
            if (wrong & 1) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<2>());
            else ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>());
        }
        __syncthreads();
        s[round % 2][threadIdx.x] = in[threadIdx.x] + round;
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (threadIdx.x == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + 64 * round, s[round % 2], 256);
            ptx::cp_async_bulk_commit_group();
        }
    }
    if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

// What a copy has brought, another takes away, without a store between them.
extern "C" __global__ void through(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    __shared__ block_barrier bar;
    if (threadIdx.x != 0) return;
    init(&bar, 1);
    fetch(s, in, bar);
    if (!(wrong & 1)) bar.wait_parity(0);
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, s, 256);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}
"""
NAMES = (
    "fetched",
    "waited_by_one",
    "waited_elsewhere",
    "waited_by_one_warp",
    "refilled",
    "stored",
    "fenced_by_the_copier",
    "fenced_by_a_third",
    "fenced_by_one_of_a_warp",
    "fenced_behind_a_wait",
    "fenced_for_the_cluster",
    "announced",
    "alternating",
    "through",
)
UNWAITED = (
    r"which block \(0, 0, 0\), thread \(0, 0, 0\) fills by cp.async.bulk at kernel.cu:\d+.*, and no wait at the copy's "
    r"barrier at 0x\w+ \(0 bytes into \w+::bar\) comes before"
)
UNREAD = r"from which cp.async.bulk reads for block \(0, 0, 0\), thread \(0, 0, 0\), which hasn't waited for it"
UNFENCED = r"which block \(0, 0, 0\), thread \(\d+, 0, 0\) wrote at .*, and no fence.proxy.async lies between"
UNORDERED = "and nothing puts one before the other"
WRONG = [
    ("fetched", 1, UNWAITED),
    ("fetched", 2, UNWAITED),
    ("waited_by_one", 1, UNWAITED),
    ("waited_elsewhere", 1, UNWAITED),
    ("waited_by_one_warp", 1, UNWAITED),
    ("refilled", 1, UNORDERED),
    ("stored", 1, UNFENCED),
    ("stored", 2, UNORDERED),
    ("stored", 4, UNREAD),
    ("stored", 8, "and nothing puts that thread's wait for it before this"),
    ("fenced_by_the_copier", 1, UNFENCED),
    ("fenced_by_a_third", 1, UNFENCED),
    ("fenced_by_a_third", 2, UNFENCED),
    ("fenced_by_one_of_a_warp", 1, UNFENCED),
    ("fenced_behind_a_wait", 1, UNFENCED),
    ("fenced_for_the_cluster", 1, UNFENCED),
    ("announced", 1, UNORDERED),
    ("alternating", 1, UNREAD),
    ("through", 1, UNWAITED),
]


@pytest.fixture(scope="module")
def kernels():
    with cuda.Device(0):
        return cuda.compile(KERNELS, options=["--diag-suppress=20054"])


def found(device, kernel, wrong):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel[1, 64](cuda.zeros(6 * 64, np.int32), cuda.to_device(np.arange(128, dtype=np.int32)), wrong)
        device.synchronize()
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_in_order_is_no_mistake(device, kernels, name):
    assert found(device, kernels[name], 0) == []


@pytest.mark.parametrize(("name", "wrong", "text"), WRONG)
def test_a_mistake_is_found(device, kernels, name, wrong, text):
    texts = found(device, kernels[name], wrong)
    assert any(re.search(text, one) for one in texts), texts

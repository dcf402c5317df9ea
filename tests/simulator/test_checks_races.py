"""Races are found at their line, and what barriers, fences and atomics put in order is none."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import cudart_py as cuda

pytestmark = [pytest.mark.needs("profile"), pytest.mark.unsanitized]

SOURCE = r"""
#include <cooperative_groups.h>
extern "C" __global__ void no_barrier(float* out, const float* in) {
    __shared__ float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = tile[255 - threadIdx.x];                    // BUG no_barrier
}
extern "C" __global__ void loop_without_second_barrier(float* out, const float* in, int n) {
    __shared__ float tile[64];
    float sum = 0;
    for (int i = 0; i < n; i++) {
        tile[threadIdx.x] = in[i * 64 + threadIdx.x];              // BUG loop_without_second_barrier
        __syncthreads();
        sum += tile[63 - threadIdx.x];
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void histogram_read_too_early(int* out, const int* in) {
    __shared__ int bins[32];
    if (threadIdx.x < 32) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[in[threadIdx.x] & 31], 1);
    if (threadIdx.x < 32) out[threadIdx.x] = bins[threadIdx.x];    // BUG histogram_read_too_early
}
extern "C" __global__ void warp_without_sync(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[threadIdx.x ^ 1];                         // BUG warp_without_sync
}
extern "C" __global__ void neighbour_block(float* x) {
    int i = blockIdx.x * 64 + threadIdx.x;
    float left = x[i == 0 ? 0 : i - 1];
    x[i] = left + 1;                                               // BUG neighbour_block
}
extern "C" __global__ void same_place(int* out) {
    out[threadIdx.x] = blockIdx.x;                                 // BUG same_place
}
extern "C" __global__ void same_instruction(int* out) {
    out[threadIdx.x / 2] = threadIdx.x;                            // BUG same_instruction
}
extern "C" __global__ void counter_without_atomic(int* counter) {
    counter[0] = counter[0] + 1;                                   // BUG counter_without_atomic
}

template <bool FENCE> __device__ void last_block(float* out, float* partial, const float* in, unsigned* count) {
    __shared__ float sums[64];
    __shared__ bool last;
    sums[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) {
        if (threadIdx.x < s) sums[threadIdx.x] += sums[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sums[0];
        if (FENCE) __threadfence();
        last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        float sum = 0;
        for (int i = threadIdx.x; i < gridDim.x; i += 64) sum += partial[i];   // BUG last_block_without_fence
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int s = 32; s > 0; s /= 2) {
            if (threadIdx.x < s) sums[threadIdx.x] += sums[threadIdx.x + s];
            __syncthreads();
        }
        if (threadIdx.x == 0) *out = sums[0];
    }
}
extern "C" __global__ void last_block_without_fence(float* out, float* partial, const float* in, unsigned* count) {
    last_block<false>(out, partial, in, count);
}
extern "C" __global__ void last_block_reduction(float* out, float* partial, const float* in, unsigned* count) {
    last_block<true>(out, partial, in, count);
}
extern "C" __global__ void spin_lock(int* lock, int* total) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
        *total = *total + 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}
extern "C" __global__ void lock_without_fence(int* lock, int* total) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        *total = *total + 1;                                       // BUG lock_without_fence
        atomicExch(lock, 0);
    }
}
extern "C" __global__ void grid_sync(float* a, float* b, int n, int steps) {
    auto grid = cooperative_groups::this_grid();
    for (int step = 0; step < steps; step++) {
        for (int i = grid.thread_rank(); i < n; i += grid.size())
            b[i] = a[i] + a[(i + 1) % n] + a[(i + n - 1) % n];
        grid.sync();
        float* t = a; a = b; b = t;
    }
}
extern "C" __global__ void no_grid_sync(float* a, float* b, int n, int steps) {
    for (int step = 0; step < steps; step++) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        b[i] = a[i] + a[(i + 1) % n] + a[(i + n - 1) % n];         // BUG no_grid_sync
        float* t = a; a = b; b = t;
    }
}
extern "C" __global__ void flag(int* flag, int* data, int* out) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) { data[0] = 7; __threadfence(); *(volatile int*)flag = 1; }
    } else if (threadIdx.x == 0) {
        while (*(volatile int*)flag == 0) {}
        __threadfence();
        out[0] = data[0];
    }
}
extern "C" __global__ void histogram(int* out, const int* in) {
    __shared__ int bins[32];
    if (threadIdx.x < 32) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[in[threadIdx.x] & 31], 1);
    __syncthreads();
    if (threadIdx.x < 32) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
extern "C" __global__ void warp_sync(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
extern "C" __global__ void maximum_by_swapping(unsigned long long* out, const unsigned long long* in) {
    unsigned long long value = in[blockIdx.x * blockDim.x + threadIdx.x], old = *out, seen;
    while (old < value) {
        seen = atomicCAS(out, old, value);
        if (seen == old) break;
        old = seen;
    }
}
extern "C" __global__ void same_value(int* found, const int* in) {
    if (in[blockIdx.x * blockDim.x + threadIdx.x] == 5) *found = 1;
}
extern "C" __global__ void bytes_side_by_side(unsigned char* out) { out[threadIdx.x] = threadIdx.x; }
extern "C" __global__ void named_barriers(int* out) {
    __shared__ int s[32];
    if (threadIdx.x < 32) {
        s[threadIdx.x] = threadIdx.x;
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x - 32] = s[63 - threadIdx.x];
    }
}
"""
LINES = {name: i for i, line in enumerate(SOURCE.splitlines(), 1) for name in re.findall(r"// BUG (\w+)", line)}


@pytest.fixture(scope="module")
def module():
    with cuda.Device(0):
        return cuda.compile(SOURCE)


def ints(count):
    return cuda.zeros(count, np.int32)


def floats(count):
    return cuda.zeros(count, np.float32)


def found(device, launch, *arguments):
    """Give the warnings of one launch."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        launch(*arguments)
        device.synchronize()
    return caught


BUGS = {
    "no_barrier": (1, 256, lambda: (floats(256), floats(256))),
    "loop_without_second_barrier": (1, 64, lambda: (floats(64), cuda.to_device(np.arange(256, dtype=np.float32)), 4)),
    "histogram_read_too_early": (1, 256, lambda: (ints(32), ints(256))),
    "warp_without_sync": (1, 32, lambda: (ints(32),)),
    "neighbour_block": (4, 64, lambda: (floats(256),)),
    "same_place": (2, 64, lambda: (ints(64),)),
    "same_instruction": (1, 64, lambda: (ints(32),)),
    "counter_without_atomic": (4, 1, lambda: (ints(1),)),
    "last_block_without_fence": (8, 64, lambda: (floats(1), floats(8), floats(512), cuda.zeros(1, np.uint32))),
    "lock_without_fence": (4, 32, lambda: (ints(1), ints(1))),
    "no_grid_sync": (4, 64, lambda: (floats(256), floats(256), 256, 3)),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_race_is_found_at_its_line(device, module, name):
    grid, block, arguments = BUGS[name]
    texts = [str(warning.message) for warning in found(device, module[name][grid, block], *arguments())]
    assert texts
    assert all("race" in text and text.startswith(f"kernel {name}") for text in texts)
    assert any(f":{LINES[name]}: race" in text for text in texts), texts


CORRECT = {
    "last_block_reduction": (300, 64, lambda: (floats(1), floats(300), floats(300 * 64), cuda.zeros(1, np.uint32))),
    "spin_lock": (16, 64, lambda: (ints(1), ints(1))),
    "flag": (2, 32, lambda: (ints(1), ints(1), ints(1))),
    "histogram": (8, 256, lambda: (ints(32), ints(256))),
    "warp_sync": (1, 32, lambda: (ints(32),)),
    "maximum_by_swapping": (
        8,
        64,
        lambda: (cuda.zeros(1, np.uint64), cuda.to_device(np.arange(512, dtype=np.uint64))),
    ),
    "same_value": (4, 64, lambda: (ints(1), cuda.full(256, 5, np.int32))),
    "bytes_side_by_side": (1, 64, lambda: (cuda.zeros(64, np.uint8),)),
    "named_barriers": (1, 64, lambda: (ints(32),)),
}


@pytest.mark.parametrize("name", CORRECT)
def test_what_is_in_order_is_no_race(device, module, name):
    grid, block, arguments = CORRECT[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module[name][grid, block](*arguments())
        device.synchronize()


def test_a_grid_wide_barrier_orders_blocks(device, module):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module["grid_sync"].launch(4, 64, cooperative=True)(floats(1000), floats(1000), 1000, 5)
        device.synchronize()


def test_launches_of_a_stream_are_in_order(device, module):
    x = floats(64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            module["neighbour_block"][1, 1](x)
        device.synchronize()


def test_the_report_names_both_threads_and_the_allocation(device, module):
    x = ints(64)
    caught = found(device, module["same_place"][2, 64], x)
    text = str(caught[0].message)
    assert re.search(r"block \(1, 0, 0\), thread \(\d+, 0, 0\)", text)
    assert re.search(r"block \(0, 0, 0\), thread \(\d+, 0, 0\)", text)
    assert f"the 256-byte allocation at {int(x.pointer):#x}" in text
    assert f"allocated at {__file__}" in text
    assert caught[0].filename == __file__


def test_results_are_those_without_checks(device, module):
    def result(mode):
        out = ints(32)
        with cuda.checks(mode), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module["same_instruction"][1, 64](out)
            return out.to_host()

    np.testing.assert_array_equal(result("warn"), result("off"))


def test_each_line_is_reported_once_a_launch(device, module):
    caught = found(device, module["no_barrier"][64, 256], floats(256 * 64), floats(256))
    assert len([w for w in caught if f":{LINES['no_barrier']}:" in str(w.message)]) == 1

"""Machine code follows the copies of `cp.async`: what waits for them runs there, with the findings of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.checks.reports import assert_native, of_both
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

COPIES = r"""
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
#define WAIT_ALL asm volatile("cp.async.wait_all;" ::: "memory")
static __device__ void copy(void* to, const void* from) {
    unsigned place = __cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(place), "l"(from) : "memory");
}
"""
SOURCE = (
    COPIES
    + r"""
__device__ void copy_some(void* to, const void* from, int bytes) {
    unsigned place = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(place), "l"(from), "r"(bytes) : "memory");
}
__device__ void copy_unless(void* to, const void* from, int ignored) {
    unsigned place = __cvta_generic_to_shared(to);
    asm volatile("{.reg .pred p; setp.ne.s32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 8, p;}"
                 :: "r"(place), "l"(from), "r"(ignored) : "memory");
}

extern "C" __global__ void stages(float* out, const float* in, int n) {
    __shared__ float s[4][256];
    int t = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 3; k++) { copy(&s[k][t], &in[k * 256 + t]); COMMIT; }
    for (int k = 0; k < n; k++) {
        WAIT(2);
        __syncthreads();
        sum += s[k % 4][255 - t];
        if (k + 3 < n) copy(&s[(k + 3) % 4][t], &in[(k + 3) * 256 + t]);
        COMMIT;
    }
    out[blockIdx.x * 256 + t] = sum;
}
extern "C" __global__ void own_and_warp(float* out, const float* in) {
    __shared__ float s[256];
    int t = threadIdx.x;
    copy(&s[t], &in[t]);
    WAIT_ALL;
    float sum = s[t];
    __syncwarp();
    sum += s[t ^ 31];
    __syncwarp();
    if (t & 32) copy(&s[t], &in[t]);
    WAIT_ALL;
    out[blockIdx.x * 256 + t] = sum + s[t];
}
extern "C" __global__ void some_copy(float* out, const float* in) {
    __shared__ float s[2][64];
    int t = threadIdx.x;
    if (t < 64) copy(&s[0][t], &in[t]);
    WAIT_ALL;
    __syncthreads();
    if (t >= 192) copy(&s[1][t - 192], &in[t]);
    float sum = s[0][t & 63];
    WAIT_ALL;
    int last = __syncthreads_count(t < 64) - 1;
    float* generic = t < 300 ? s[1] : out;
    out[blockIdx.x * 256 + t] = sum + generic[last - (t & 63)];
}
extern "C" __global__ void filled(unsigned* out, const unsigned* in) {
    __shared__ __align__(16) unsigned s[128 * 6];
    int t = threadIdx.x;
    copy_some(&s[4 * t], &in[4 * t], t < 96 ? t % 17 : 0);
    copy_unless(&s[512 + 2 * t], &in[2 * t], t % 3 == 0);
    WAIT_ALL;
    __syncthreads();
    for (int k = 0; k < 6; k++) out[128 * k + t] = s[128 * k + t];
}
// Blocks copy what the other one stores, by an address for each thread or one for all.
extern "C" __global__ void beside_stores(unsigned* out, int bytes, int apart) {
    __shared__ __align__(16) unsigned s[512 * 4];
    int t = threadIdx.x, other = 256 * (1 - blockIdx.x);
    copy_some(&s[4 * t], &out[other + (apart ? t & ~3 : 0)], t % 32 == 5 ? bytes : 0);
    copy_unless(&s[1024 + 4 * t], &out[other + (apart ? t & ~1 : 0)], t % 32 != 6 || !bytes);
    WAIT_ALL;
    __syncthreads();
    out[blockIdx.x * 256 + t] = s[1023 - t] + s[1024 + 4 * t] + t + 1;
}
extern "C" __global__ void wrong(float* out, const float* in, int how) {
    __shared__ float s[2][256];
    int t = threadIdx.x;
    copy(&s[0][t], &in[t]);
    COMMIT;
    copy(&s[1][t], &in[256 + t]);
    COMMIT;
    if (how == 0) WAIT(1);
    if (how == 1 && t >= 32) WAIT(0);
    if (how == 2) { WAIT(0); copy(&s[1][t], &in[t]); }
    if (how != 3) __syncthreads();
    if (how == 3) { WAIT(0); __syncwarp(); }
    float sum = 0;
    if (how == 0) sum = s[1][t];
    if (how == 1) sum = s[0][t ^ 32];
    if (how == 2) s[1][t] = 0;
    if (how == 3) sum = s[1][t ^ 32];
    if (how == 4) sum = s[0][t];
    if (how == 5 && t == 7) *(float*)(out == in ? out : &s[1][9]) = 1;
    out[t] = sum;
}
"""
)


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


@pytest.mark.parametrize("name", ["own_and_warp", "some_copy"])
def test_copies_that_are_waited_for_run_in_machine_code(kernels: Kernels, name: str) -> None:
    """Behind barriers of the block, and behind what brings a warp together."""
    assert of_both(kernels, name, 4, 256, None, kernels.put(np.arange(256, dtype=np.float32))) == []
    assert_native(kernels, name)


def test_a_pipeline_of_copies_runs_in_machine_code(kernels: Kernels) -> None:
    values, out = np.arange(2048, dtype=np.float32), kernels.zeros(1024)
    assert of_both(kernels, "stages", 4, 256, out, kernels.put(values), 8) == []
    assert_native(kernels, "stages")
    np.testing.assert_array_equal(kernels.get(out, 256, np.float32), values.reshape(8, 256).sum(axis=0)[::-1])


def test_a_copy_stores_zeros_behind_the_bytes_that_it_reads(kernels: Kernels) -> None:
    values = np.random.default_rng(0).integers(1, 1 << 32, 512).astype(np.uint32)
    out = kernels.zeros(768, np.uint32)
    assert of_both(kernels, "filled", 1, 128, out, kernels.put(values)) == []
    assert_native(kernels, "filled")
    found = kernels.get(out, 768, np.uint32)
    read = np.where(np.arange(128) < 96, np.arange(128) % 17, 0)
    expected = np.where(np.arange(16) < read[:, None], values.view(np.uint8).reshape(128, 16), 0)
    np.testing.assert_array_equal(found[:512].view(np.uint8).reshape(128, 16), expected)
    pairs = np.where(np.arange(128)[:, None] % 3 == 0, 0, values[:256].reshape(128, 2))
    np.testing.assert_array_equal(found[512:].reshape(128, 2), pairs)


@pytest.mark.parametrize("apart", [0, 1])
def test_a_copy_that_reads_nothing_races_with_no_store(kernels: Kernels, apart: int) -> None:
    assert of_both(kernels, "beside_stores", 2, 256, None, 0, apart) == []
    assert "race" in "".join(of_both(kernels, "beside_stores", 2, 256, None, 4, apart))


@pytest.mark.parametrize("how", range(6))
def test_a_copy_that_is_not_waited_for_is_found_in_the_same_words(kernels: Kernels, how: int) -> None:
    assert of_both(kernels, "wrong", 1, 256, None, kernels.put(np.arange(512, dtype=np.float32)), how)

"""Machine code follows the copies of `cp.async`: what waits for them runs there, with the findings of NumPy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.checks import findings
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from tests.simulator.checks.test_native import checked, found, random_kernel
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

# What threads of the random kernels do, as in `test_native`.
STEPS = {
    "copy(s + (X), h + (Y));": 14, "COMMIT;": 8, "WAIT(0);": 8, "WAIT(1);": 8, "WAIT_ALL;": 6, "__syncthreads();": 14,
    "__syncwarp();": 6, "v += s[X];": 12, "s[X] = v;": 4, "if (t & 32) WAIT_ALL;": 2, "g[i] = v;": 4,
    "if (t < 40) copy(s + t, h + t);": 3, "v += __syncthreads_count(v);": 4,
}  # fmt: skip  # rows of a table

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


def of_both(kernels: Kernels, name: str, count: int, *arguments: Any, grid: int = 1, block: int = 256) -> list[str]:
    """Return the findings of a launch, which are the same with both engines, as the results are."""
    texts, results = {}, []
    for engine in ("numpy", "native"):
        kernels.engine = engine
        out = kernels.zeros(count, np.uint32)
        findings.pending.clear()
        kernels.launch(name, grid, block, out, *arguments, observer=LaunchChecks())
        texts[engine] = [re.sub("0x[0-9a-f]+", "", text) for text in map(str, findings.pending)]
        findings.pending.clear()
        results.append(kernels.get(out, count))
    assert texts["native"] == texts["numpy"]
    np.testing.assert_array_equal(results[1], results[0])
    return texts["numpy"]


def test_copies_that_are_waited_for_run_in_machine_code(kernels: Kernels) -> None:
    """Behind barriers of the block, in a pipeline of four stages, and behind what brings a warp together."""
    x = kernels.put(np.arange(2048, dtype=np.float32))
    out = kernels.zeros(1024, np.float32)
    assert checked(kernels, "stages", out, x, 8)
    np.testing.assert_array_equal(kernels.get(out, 256, np.float32), np.arange(2048).reshape(8, 256).sum(axis=0)[::-1])
    assert checked(kernels, "own_and_warp", out, x)
    assert checked(kernels, "some_copy", out, x)


@pytest.mark.parametrize("name", ["stages", "own_and_warp", "some_copy"])
def test_copies_that_are_waited_for_give_the_same_results(kernels: Kernels, name: str) -> None:
    x = kernels.put(np.arange(2048, dtype=np.float32))
    assert of_both(kernels, name, 1024, x, *([8] if name == "stages" else []), grid=4) == []


def test_a_copy_stores_zeros_behind_the_bytes_that_it_reads(kernels: Kernels) -> None:
    values = np.random.default_rng(0).integers(1, 1 << 32, 512).astype(np.uint32)
    x = kernels.put(values)
    assert of_both(kernels, "filled", 768, x, block=128) == []
    out = kernels.zeros(768, np.uint32)
    assert checked(kernels, "filled", out, x, grid=1, block=128)
    found = kernels.get(out, 768, np.uint32)
    read = np.where(np.arange(128) < 96, np.arange(128) % 17, 0)
    expected = np.where(np.arange(16) < read[:, None], values.view(np.uint8).reshape(128, 16), 0)
    np.testing.assert_array_equal(found[:512].view(np.uint8).reshape(128, 16), expected)
    pairs = np.where(np.arange(128)[:, None] % 3 == 0, 0, values[:256].reshape(128, 2))
    np.testing.assert_array_equal(found[512:].reshape(128, 2), pairs)


@pytest.mark.parametrize("apart", [0, 1])
def test_a_copy_that_reads_nothing_races_with_no_store(kernels: Kernels, apart: int) -> None:
    assert of_both(kernels, "beside_stores", 512, 0, apart, grid=2) == []
    assert "race" in "".join(of_both(kernels, "beside_stores", 512, 4, apart, grid=2))


@pytest.mark.parametrize("how", range(6))
def test_a_copy_that_is_not_waited_for_is_found_in_the_same_words(kernels: Kernels, how: int) -> None:
    x = kernels.put(np.arange(512, dtype=np.float32))
    assert of_both(kernels, "wrong", 256, x, how)


def test_random_copies_have_the_same_findings() -> None:
    numbers = range(40)
    kernels = Kernels(COPIES + "".join(random_kernel(number, STEPS) for number in numbers))
    some = 0
    for number in numbers:
        expected, values = found(kernels, "numpy", f"k{number}", 2 * number)
        texts, results = found(kernels, "native", f"k{number}", 2 * number)
        assert texts == expected, random_kernel(number, STEPS)
        np.testing.assert_array_equal(results, values)
        some += bool(texts)
    assert 0 < some < len(numbers)

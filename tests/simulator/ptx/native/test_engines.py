"""Both engines give the same results and the same reports; what the native one lacks, NumPy's runs."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault, load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

SOURCE = r"""
extern "C" __global__ void paths(int n, const int* in, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, s = 0;
    for (int j = 0; j < (in[i] & 15); j++) {
        if (in[(i + j) % n] & 1) s += in[(i * 7 + j) % n] * 3;
        else { s ^= j; if (s % 5 == 2) continue; s -= i; }
        if (s > 1 << 20) break;
    }
    switch (s & 7) {
        case 0: s += 5; break;
        case 1: s *= 7; break;
        case 2: s = -s;
        case 3: s ^= 99; break;
        default: s++;
    }
    out[i] = s;
}
__device__ __noinline__ int2 turned(int2 p, int c) { return make_int2(p.x * c - p.y, p.y * c + p.x); }
extern "C" __global__ void calls(const int2* in, int2* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int2 p = in[i];
    for (int j = 0; j < i % 5; j++) p = turned(p, j);
    if (i % 3) p = turned(p, -1);
    out[i] = p;
}
extern "C" __global__ void scan(int n, int* data) {
    __shared__ int tile[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    tile[t] = data[i];
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        int v = t >= d ? tile[t - d] : 0;
        __syncthreads();
        tile[t] += v;
        __syncthreads();
    }
    data[i] = tile[t] + __shfl_xor_sync(-1u, t, 3) + __popc(__ballot_sync(-1u, t & 4));
}
extern "C" __global__ void histogram(const int* in, int* bins, float* sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&bins[in[i] & 31], 1);
    atomicMax(&bins[32 + (i & 3)], in[i]);
    atomicAdd(&sums[i % 3], 0.1f * i);
}
extern "C" __global__ void traps(int n) { if (threadIdx.x == n) __trap(); }
extern "C" __global__ void counting(int* p, int n) {
    int s = 0;
    for (unsigned i = 0; i < 4000000000u; i++) s = s * n + i;
    *p = s;
}
extern "C" __global__ void prints(int n) { printf("%d %d %d\n", n, blockIdx.x, threadIdx.x); }
extern "C" __global__ void prints_at_times(int* p, int n) {
    int s = 0;
    for (int i = 0; i < 2000; i++) {
        for (int j = 0; j < n; j++) s = s * 7 + (s >> 3) ^ j;
        printf("%d\n", s);
    }
    *p = s;
}
extern "C" __global__ void heap(int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int* p = (int*)malloc(4 * (1 + threadIdx.x));
    p[threadIdx.x] = 7 * i;
    out[i] = p[threadIdx.x];
    free(p);
}
extern "C" __global__ void barriers(int* out) {
    __shared__ int tile[96];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    int a = __syncthreads_count(t % 3 == 1), b = __syncthreads_or(t == 5), c = __syncthreads_and(t < 90);
    tile[t] = t * a;
    if (t < 64) {
        asm volatile("bar.sync 3, 64;" ::: "memory");
        a += tile[63 - t];
    }
    __syncthreads();
    out[i] = a + 1000 * b + 100000 * c + tile[95 - t];
}
extern "C" __global__ void forsaken(int* out) {
    int v = threadIdx.x;
    if (threadIdx.x % 2) v = __shfl_xor_sync(-1u, v, 2);
    out[threadIdx.x] = v;
}
extern "C" __global__ void wait_plainly(int* flag, int* out) {
    int seen = 0, late = blockIdx.x == gridDim.x - 1 && threadIdx.x >= 32;
    if (late) *flag = 7;
    while (!seen) asm volatile("ld.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    if (threadIdx.x == 0) out[blockIdx.x] = seen;
}
"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


def ran_natively(kernels: Kernels, name: str) -> bool:
    return any(program_of(kernels.module.entries[name]).native.values())


def on_both(kernels: Kernels, name: str, grid: Any, block: Any, arrays: list[Any], *numbers: Any) -> list[list[Any]]:
    """Launch on each engine; return the arrays that each leaves."""
    results = []
    for engine in ("numpy", "native"):
        kernels.engine = engine
        places = [kernels.put(array) for array in arrays]
        given = iter(places)
        kernels.launch(name, grid, block, *(next(given) if number is None else number for number in numbers))
        results.append([kernels.get(at, len(array), array.dtype) for at, array in zip(places, arrays, strict=True)])
    assert ran_natively(kernels, name), program_of(kernels.module.entries[name]).native_lack
    return results


RANDOM = np.random.default_rng(3)
INTEGERS = RANDOM.integers(0, 1 << 30, 4096).astype(np.int32)
CASES = {
    "paths": ((16, 250), [INTEGERS, np.zeros(4096, np.int32)], [4000, None, None]),
    "calls": ((8, 256), [INTEGERS, np.zeros(4096, np.int32)], [None, None]),
    "scan": ((16, 256), [INTEGERS % 1000], [4096, None]),
    "heap": ((2, 40), [np.zeros(80, np.int32)], [None]),
    # Reductions and named barriers.
    "barriers": ((3, 96), [np.zeros(3 * 96, np.int32)], [None]),
    # Lanes whose partners never come go on.
    "forsaken": ((1, 64), [np.zeros(64, np.int32)], [None]),
    "histogram": ((16, 256), [INTEGERS, np.zeros(36, np.int32), np.zeros(3, np.float32)], [None] * 3),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_the_same_bits(kernels: Kernels, name: str) -> None:
    (grid, block), arrays, numbers = CASES[name]
    expected, got = on_both(kernels, name, grid, block, arrays, *numbers)
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))


def test_blocks_and_warps_that_wait_in_a_plain_loop_get_on(kernels: Kernels) -> None:
    kernels.engine = "native"
    flag, out = kernels.zeros(1), kernels.zeros(3)
    kernels.launch("wait_plainly", 3, 64, flag, out, steps=None)
    assert kernels.get(out, 3).tolist() == [7] * 3
    assert ran_natively(kernels, "wait_plainly")


@pytest.fixture
def interrupted() -> Iterator[Callable[..., None]]:
    """Yield what launches a kernel and breaks it off by a signal."""
    # A shell starts its background jobs with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def launch(kernels: Kernels, *arguments: Any, after: float) -> None:
        timer = threading.Timer(after, functools.partial(signal.raise_signal, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            kernels.launch(*arguments, steps=None)
        timer.join()

    yield launch
    signal.signal(signal.SIGINT, before)


def test_a_signal_breaks_a_kernel_off(kernels: Kernels, interrupted: Callable[..., None]) -> None:
    """What the handler raises isn't lost where machine code calls Python before it returns, as to print."""
    kernels.engine = "native"
    out = kernels.zeros(1)
    # Machine code is there before the signal comes.
    with pytest.raises(Fault, match="the limit"):
        kernels.launch("counting", 1, 1, out, 3, steps=1000)
    interrupted(kernels, "counting", 64, 64, out, 3, after=0.2)
    kernels.launch("prints_at_times", 1, 1, out, 1, steps=None)
    for _ in range(2):
        interrupted(kernels, "prints_at_times", 1, 1, out, 50_000, after=0.1)
    assert ran_natively(kernels, "prints_at_times")


def test_what_blocks_print_comes_in_their_order(kernels: Kernels) -> None:
    kernels.engine = "native"
    kernels.printed.clear()
    kernels.launch("prints", 3, 33, 5)
    assert kernels.printed == [f"5 {block} {thread}\n" for block in range(3) for thread in range(33)]
    assert ran_natively(kernels, "prints")


def test_lanes_wait_for_their_partners_also_after_some_had_ended() -> None:
    """Lanes whose partners have ended go on, and later meet again those that have taken another way in a loop."""
    text = """.visible .entry k(.param .u64 p) {
    .reg .b64 out, at; .reg .b32 lane, round, value, sum; .reg .pred %p, %q;
    ld.param.u64 out, [p]; mov.u32 lane, %laneid; mul.wide.u32 at, lane, 4; add.u64 out, out, at;
    mov.u32 round, 0; mov.u32 sum, 0; setp.ge.u32 %p, lane, 16; @%p bra ends;
again:
    add.u32 round, round, 1; setp.lt.u32 %p, lane, 8; setp.eq.and.u32 %q, round, 2, %p; @%q bra aside;
together:
    shfl.sync.bfly.b32 value, lane, 8, 0x1f, 0xffffffff;
    mad.lo.u32 sum, sum, 3, value;
    setp.lt.u32 %p, round, 3; @%p bra again;
    st.global.u32 [out], sum; ret;
aside:
    add.u32 sum, sum, 100; bra together;
ends:
    ret;
}"""
    kernels = Kernels(load_module(HEAD + text))
    (expected,), (got,) = on_both(kernels, "k", 1, 32, [np.zeros(32, np.int32)], None)
    np.testing.assert_array_equal(expected, got)
    assert got[1] == (9 + 100) * 9 + 9 * 3 + 9


@pytest.mark.parametrize("back", ["@!%q bra again; bra done;", "ways: .branchtargets again, done; brx.idx way, ways;"])
def test_lanes_wait_in_a_loop_for_others_of_their_warp(back: str) -> None:
    """The lowest block, to which they go back, isn't all that runs."""
    text = f"""{HEAD}.visible .entry k(.param .u64 p) {{
    .reg .b64 out, at; .reg .b32 lane, seen, way; .reg .pred %p, %q;
    ld.param.u64 out, [p]; mov.u32 lane, %laneid; setp.eq.u32 %p, lane, 31; @%p bra sets;
again:
    ld.volatile.global.u32 seen, [out]; setp.ne.u32 %q, seen, 0; selp.u32 way, 1, 0, %q; {back}
sets:
    st.volatile.global.u32 [out], 5;
done:
    ld.volatile.global.u32 seen, [out]; mul.wide.u32 at, lane, 4; add.u64 at, at, out; st.global.u32 [at+4], seen;
}}"""
    kernels = Kernels(load_module(text))
    (expected,), (got,) = on_both(kernels, "k", 1, 32, [np.zeros(33, np.int32)], None)
    np.testing.assert_array_equal(expected, got)
    assert set(got) == {5}


def test_threads_give_the_same_bits_and_the_first_fault(kernels: Kernels) -> None:
    results = []
    for engine, kernels.threads in (("native", 3), ("numpy", 1)):
        kernels.engine = engine
        out = kernels.zeros(4096)
        kernels.launch("paths", 16, 250, 4000, kernels.put(INTEGERS), out)
        results.append(kernels.get(out, 4096))
    np.testing.assert_array_equal(*results)
    kernels.engine, kernels.threads = "native", 3
    with pytest.raises(Fault, match=r"block \(0, 0, 0\), thread \(37, 0, 0\)"):
        kernels.launch("traps", 200, 64, 37)
    kernels.threads = 1


def test_a_pause_between_two_warps_of_a_block_repeats_none() -> None:
    kernels = Kernels('extern "C" __global__ void count(int* out) { atomicAdd(out, 1); }')
    kernels.engine = "native"
    out = kernels.zeros(1)
    kernels.launch("count", 3000, 992, out)
    assert kernels.get(out, 1)[0] == 3000 * 992

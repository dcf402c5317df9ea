"""Barriers at which some threads arrive without waiting run in machine code, with the NumPy engine's results."""

import re

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

SOURCE = """
// Threads 0 to 63 hand numbers over to the others, round after round.
extern "C" __global__ void handed_over(unsigned* out, const unsigned* in, int rounds) {
    __shared__ unsigned s[64];
    unsigned x = in[threadIdx.x], i = threadIdx.x % 64;
    for (int r = 0; r < rounds; r++) {
        if (threadIdx.x < 64) {
            if (r) asm volatile("bar.sync 2, 160;" ::: "memory");
            s[i] = x * (r + 3);
            asm volatile("bar.arrive 1, 160;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 160;" ::: "memory");
            x ^= s[63 - i] >> 3;
            if (r + 1 < rounds) asm volatile("bar.arrive 2, 160;" ::: "memory");
        }
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = x + s[i];
}
// Warps 0 and 1 meet at a barrier while warp 2 polls, and a barrier with a reduction completes while warp 3 polls.
extern "C" __global__ void polled(int* out) {
    __shared__ volatile int flag, other;
    int warp = threadIdx.x / 32, sum = 0;
    if (threadIdx.x == 0) flag = other = 0;
    __syncthreads();
    if (warp < 2) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        if (threadIdx.x == 0) flag = 1;
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 5; bar.red.popc.u32 %0, 3, 64, p; }"
                     : "=r"(sum) : "r"(threadIdx.x));
        if (threadIdx.x == 0) other = 1;
    } else if (warp == 2) while (!flag) {}
    else while (!other) {}
    out[threadIdx.x] = sum + 1;
}
extern "C" __global__ void absent(int* out) {
    if (threadIdx.x < 32) asm volatile("bar.arrive 1, 96;");
    else if (threadIdx.x < 64) asm volatile("bar.sync 1, 96;");
}
"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


def test_threads_that_arrive_do_not_wait(kernels: Kernels) -> None:
    given = np.random.default_rng(3).integers(0, 1 << 32, 160, np.uint32)
    for rounds in (1, 2, 17):
        results = []
        for kernels.engine in ("numpy", "native"):
            out = kernels.zeros(5 * 160, np.uint32)
            kernels.launch("handed_over", 5, 160, out, kernels.put(given), rounds)
            results.append(kernels.get(out, 5 * 160, np.uint32))
        np.testing.assert_array_equal(*results)
    assert kernels.ran_natively("handed_over")


def test_barriers_of_some_warps_complete_while_others_poll(kernels: Kernels) -> None:
    for kernels.engine in ("numpy", "native"):
        out = kernels.zeros(128)
        kernels.launch("polled", 1, 128, out)
        assert kernels.get(out, 128).tolist() == [64] * 64 + [1] * 64
    assert kernels.ran_natively("polled")


def test_a_barrier_that_lacks_arrivals_is_the_same_deadlock(kernels: Kernels) -> None:
    reports = []
    for kernels.engine in ("numpy", "native"):
        with pytest.raises(Fault) as caught:
            kernels.launch("absent", 2, 96, kernels.zeros(96))
        reports.append(caught.value.report)
    # NumPy runs both blocks at once, and so counts the threads of both.
    assert "32 threads wait" in reports[1]
    assert re.sub(r"\d+ threads", "", reports[1]) == re.sub(r"\d+ threads", "", reports[0])

"""Named barriers, and barriers that combine predicates, run in machine code with the NumPy engine's results."""

import re

import numpy as np
import pytest

from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.ptx import Fault, load_module
from tests.simulator.ptx.machine import HEAD, Kernels

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
// Only the first `alive` threads of a block take part, in each of the rounds.
extern "C" __global__ void combined(int* out, const int* in, int alive, int rounds) {
    int i = threadIdx.x, sum = 0;
    if (i >= alive) return;
    for (int r = 0; r < rounds; r++) {
        int x = in[(i + r) % alive], all, any;
        sum += 100 * __syncthreads_count(x > 3);
        sum += 10 * __syncthreads_and(x > -r);
        asm volatile("{ .reg .pred p, q; setp.gt.s32 p, %1, 8; bar.red.or.pred q, 0, !p; selp.b32 %0, 1, 0, q; }"
                     : "=r"(any) : "r"(x));
        asm volatile("{ .reg .pred q; bar.red.and.pred q, 0, 1; selp.b32 %0, 1, 0, q; }" : "=r"(all));
        sum += any + 10000 * all;
    }
    out[blockIdx.x * blockDim.x + i] = sum;
}
"""


def test_threads_that_arrive_do_not_wait(kernels: Kernels) -> None:
    given = np.random.default_rng(3).integers(0, 1 << 32, 160, np.uint32)
    for rounds in (1, 2, 17):
        kernels.agree("handed_over", 5, 160, np.zeros(5 * 160, np.uint32), given, rounds)
    assert kernels.ran_natively("handed_over")


def test_barriers_of_some_warps_complete_while_others_poll(kernels: Kernels) -> None:
    (out,) = kernels.agree("polled", 1, 128, np.zeros(128, np.int32))
    assert out.tolist() == [64] * 64 + [1] * 64
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


@pytest.mark.parametrize("alive", [1, 45, 100])
def test_every_thread_receives_the_combination_of_the_predicates_of_all(kernels: Kernels, alive: int) -> None:
    kernels.engine, rounds = "native", 6
    given = np.random.default_rng(alive).integers(-3, 12, alive, np.int32)
    out = kernels.zeros(2 * 100)
    kernels.launch("combined", 2, 100, out, kernels.put(given), alive, rounds)
    assert kernels.ran_natively("combined")
    expected = sum(
        100 * int((given > 3).sum()) + 10 * bool((given > -r).all()) + bool((given <= 8).any()) + 10000
        for r in range(rounds)
    )
    found = kernels.get(out, 2 * 100).reshape(2, 100)
    np.testing.assert_array_equal(found[:, :alive], expected)
    np.testing.assert_array_equal(found[:, alive:], 0)


# Each warp reads its barrier and its number of threads, and lanes whose predicate is true take part in a reduction.
REGISTERS = """.visible .entry k(.param .u64 p0, .param .u64 p1) {{
    .reg .b32 i, number, count, mine, theirs, word, sum, room; .reg .b64 in, out, at; .reg .pred p, all, any;
    .shared .b32 cells[128];
    ld.param.u64 in, [p0]; ld.param.u64 out, [p1]; mov.u32 i, %tid.x; mad.wide.u32 at, i, 8, in;
    ld.global.v2.u32 {{number, count}}, [at]; mad.wide.u32 out, i, 16, out;
    and.b32 word, i, 5; setp.eq.u32 p, word, 1;
    mov.u32 room, cells; mad.lo.u32 mine, i, 4, room; st.shared.u32 [mine], i;
    {body}
    ret;
}}"""
BODIES = {
    "pairs of warps": "bar.sync number, count; xor.b32 theirs, i, 32; mad.lo.u32 theirs, theirs, 4, room; "
    "ld.shared.u32 word, [theirs]; st.global.u32 [out], word;",
    "reductions": "bar.red.popc.u32 sum, number, count, p; bar.red.and.pred all, number, count, p; "
    "bar.red.or.pred any, number, 64, p; selp.u32 word, 1, 0, any; selp.u32 theirs, 1, 0, all; "
    "st.global.v4.u32 [out], {sum, word, theirs, number};",
    "unlike barriers of one number": "setp.lt.u32 any, i, 64; @any bra some; bar.sync 4; bra.uni met; "
    "some: bar.sync 4, 128; met: sub.u32 theirs, 127, i; mad.lo.u32 theirs, theirs, 4, room; "
    "ld.shared.u32 word, [theirs]; @any bra last; bar.sync 4, 128; bra.uni end; "
    "last: bar.red.popc.u32 sum, 4, p; end: st.global.v2.u32 [out], {word, sum};",
    "all threads": "mov.u32 number, 3; bar.sync number; sub.u32 theirs, 127, i; mad.lo.u32 theirs, theirs, 4, room; "
    "ld.shared.u32 word, [theirs]; st.global.u32 [out], word; bar.sync 0;",
}


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_barriers_whose_numbers_are_in_registers_agree(name, checked):
    kernels = Kernels(load_module(HEAD + REGISTERS.format(body=BODIES[name])))
    given = np.stack([np.repeat([5, 5, 9, 9], 32), np.full(128, 64)], 1).astype(np.uint32)
    observe = LaunchChecks if checked else None
    _, out = kernels.agree("k", 2, 128, given, np.zeros(4 * 128, np.uint32), observe=observe)
    assert out.any()
    assert kernels.ran_natively("k") or (checked and name in ("pairs of warps", "reductions"))


def test_a_deadlock_is_reported_alike():
    kernels = Kernels(load_module(HEAD + REGISTERS.format(body=BODIES["pairs of warps"])))
    given = kernels.put(np.stack([np.repeat([5, 6, 9, 9], 32), np.full(128, 64)], 1).astype(np.uint32))
    assert "deadlock: 64 threads wait" in kernels.fault("k", 1, 128, given, kernels.zeros(4 * 128))

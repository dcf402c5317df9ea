"""Lanes that wait for one another, however they stand, all get on; a launch runs its own module's kernels only."""

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault, load_module
from tests.simulator.ptx.machine import HEAD, Kernels

SOURCE = r"""
extern "C" __global__ void lock(int* lock, int* count) {
    bool done = false;
    while (!done) if (atomicCAS(lock, 0, 1) == 0) {
        *(volatile int*)count = *(volatile int*)count + 1;
        __threadfence();
        atomicExch(lock, 0);
        done = true;
    }
}
extern "C" __global__ void chain(volatile int* flags, volatile int* out) {
    int b = gridDim.x - 1 - blockIdx.x;
    if (threadIdx.x == 0) {
        if (b > 0) while (flags[b - 1] == 0);
        out[b] = b ? out[b - 1] + b : 0;
        __threadfence();
        flags[b] = 1;
    }
}
extern "C" __global__ void numbered(int* out) {
    __shared__ int s[128];
    int t = threadIdx.x, warp = t / 32;
    for (int i = 0; i < warp; i++) out[128] = i;
    s[t] = t;
    asm volatile("bar.sync %0, 32;" :: "r"(warp + 1) : "memory");
    out[t] = s[t ^ 31];
}
// One lane of a warp comes late to the others, and another warp waits for what they do then.
extern "C" __global__ void meet(volatile int* flags, int* out, int first) {
    int t = threadIdx.x, warp = (t / 32 + first) % 3;
    if (warp == 0) {
        if (t % 32 == 0) flags[0] = 1;
    } else if (warp == 1) {
        if (t % 32 == 0)
            while (!flags[0]) {}
        __syncwarp();
        flags[1] = 1;
    } else {
        while (!flags[1]) {}
    }
    out[t] = 1;
}
"""


def test_a_lock_within_a_warp_is_passed_on(on_each):
    state = on_each.zeros(2)
    on_each.launch("lock", 4, 64, state, state + 4)
    assert on_each.get(state, 2).tolist() == [0, 256]


@pytest.mark.parametrize("threads", [32, 1024])
def test_blocks_may_wait_for_blocks_behind_them(on_each, threads):
    """With 1024 threads the blocks don't fit into one chunk."""
    out = on_each.zeros(80)
    on_each.launch("chain", 80, threads, on_each.zeros(80), out)
    assert on_each.get(out, 80)[-1] == 79 * 80 // 2


def test_warps_may_have_barriers_of_their_own(on_each):
    out = on_each.zeros(129)
    on_each.launch("numbered", 1, 128, out)
    assert on_each.get(out, 128).tolist() == [t ^ 31 for t in range(128)]


@pytest.mark.parametrize("first", [0, 1, 2])
def test_lanes_meet_though_other_warps_wait_for_them(on_each, first):
    out = on_each.zeros(96)
    on_each.launch("meet", 1, 96, on_each.zeros(2), out, first, steps=100_000)
    assert (on_each.get(out, 96) == 1).all()


def test_a_launch_of_another_module_s_entry_is_refused(kernels):
    other = Kernels('extern "C" __global__ void other() {}')
    other.module.entries["lock"] = kernels.module.entries["lock"]
    with pytest.raises(ValueError, match="another module"):
        other.launch("lock", 1, 1, 0, 0)


NAMED = (
    HEAD
    + """.global .align 8 .u64 in_global;
.const .align 8 .u64 in_const = 77;
.func inner (.reg .b64 out) {
    .reg .u64 value; .local .align 8 .b8 own[16];
    st.u64 [own+8], 55; ld.local.u64 value, [own+8]; st.global.u64 [out+32], value;
    ret;
}
.visible .entry named(.param .u64 p) {
    .reg .u32 lane; .reg .u64 out, wide, more, found, other; .reg .pred away;
    .shared .align 8 .b8 in_shared[16]; .local .align 16 .b8 in_local[16];
    ld.param.u64 out, [p]; mov.u32 lane, %tid.x; cvt.u64.u32 wide, lane; add.u64 more, wide, 100;
    st.u64 [in_local], more; st.u64 [in_local+8], wide; ld.local.u64 found, [in_local]; ld.u64 other, [in_local+8];
    setp.ne.u32 away, lane, 3; @away bra done;
    st.global.u64 [out], found; st.global.u64 [out+8], other;
    st.u64 [in_shared+8], more; ld.shared.u64 found, [in_shared+8]; st.global.u64 [out+16], found;
    st.u64 [in_global], wide; ld.global.u64 found, [in_global]; ld.u64 other, [in_const];
    add.u64 found, found, other; st.global.u64 [out+24], found;
    call.uni inner, (out);
done:
    ret;
}
.visible .entry beyond() { .local .align 8 .b8 in_local[16]; st.u64 [in_local+1048576], 5; ret; }
"""
)


def test_a_variable_that_is_named_without_a_space_is_stored_and_loaded_in_whatever_space_it_lies(engine):
    kernels = Kernels(load_module(NAMED))
    kernels.engine = engine
    out = kernels.zeros(8, np.uint64)
    kernels.launch("named", 1, 32, out)
    assert kernels.get(out, 5, np.uint64).tolist() == [103, 3, 103, 80, 55]
    with pytest.raises(Fault, match="a local write of 8 bytes at 0x100000 "):
        kernels.launch("beyond", 1, 32)

"""Lanes that wait for one another make progress wherever they are; a launch runs only its own module's kernels."""

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault, load_module
from tests.simulator.ptx.machine import HEAD, Kernels

SOURCE = r"""
extern "C" __global__ void lock(int* out) {
    bool done = false;
    volatile int* count = out + 1;
    while (!done) if (atomicCAS(out, 0, 1) == 0) {
        *count = *count + 1;
        __threadfence();
        atomicExch(out, 0);
        done = true;
    }
}
extern "C" __global__ void chain(volatile int* out) {
    volatile int* flags = out + gridDim.x;
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
    for (int i = 0; i < warp; i++) out[t] = i;
    s[t] = t;
    asm volatile("bar.sync %0, 32;" :: "r"(warp + 1) : "memory");
    out[t] = s[t ^ 31];
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
// Each warp takes a bit of a word as a lock twice.
extern "C" __global__ void bit_lock(unsigned* out) {
    for (int i = 0; i < 2; i++) {
        unsigned before = 0;
        do {
            if (threadIdx.x % 32 == 0) before = atomicOr(out, 1u << 31);
        } while (__shfl_sync(-1u, before, 0));
        __threadfence();
        if (threadIdx.x % 32 == 0) out[1] += 1;
        __threadfence();
        if (threadIdx.x % 32 == 0) atomicAnd(out, ~(1u << 31));
    }
}
// One lane of a warp comes late to the others, and another warp waits for what they do then.
extern "C" __global__ void meet(int* out) {
    int t = threadIdx.x, warp = (t / 32 + blockIdx.x) % 3;
    volatile int* flags = out + 2 * blockIdx.x;
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
    out[6 + blockIdx.x * blockDim.x + t] = 1;
}
"""


T, LANE, BLOCK = np.arange(96), np.arange(64), np.arange(80)
# Kernels with their grids, their blocks, and the values that their threads store.
STORED = [
    ("heap", 2, 40, 7 * np.arange(80)),
    # Reductions and named barriers.
    ("barriers", 200, 96, np.tile(32 * (1 + np.where(T < 64, 63 - T, 0) + 95 - T) + 1000, 200)),
    # Each warp has its own named barrier, whose number is in a register. Only the NumPy engine supports that.
    ("numbered", 1, 128, np.arange(128) ^ 31),
    # Lanes continue if their partners never arrive.
    ("forsaken", 1, 64, LANE ^ 2 * (LANE % 2)),
    # The lanes of a warp pass a lock on to one another.
    ("lock", 4, 64, np.array([0, 256])),
    # Blocks wait for later blocks. With 1024 threads each, they do not fit into one chunk.
    ("chain", 80, 32, np.concatenate([BLOCK.cumsum(), np.ones(80)])),
    ("chain", 80, 1024, np.concatenate([BLOCK.cumsum(), np.ones(80)])),
    # Lanes reconverge while other warps wait for them. In each block, a different warp does so.
    ("meet", 3, 96, np.ones(6 + 3 * 96)),
]


@pytest.mark.parametrize(("engine", "threads"), [("numpy", 1), ("native", 1), ("native", 3)], indirect=["engine"])
@pytest.mark.parametrize(("name", "grid", "block", "expected"), STORED)
def test_each_thread_stores_what_cuda_says(engine, on_each, monkeypatch, name, grid, block, expected, threads):
    monkeypatch.setattr(on_each, "threads", threads)
    out = on_each.zeros(expected.size)
    on_each.launch(name, grid, block, out)
    assert on_each.get(out, expected.size).tolist() == expected.tolist()
    assert engine == "numpy" or on_each.ran_natively(name) or name == "numbered"


def test_warps_that_wait_for_a_lock_soon_let_the_one_that_has_it_continue(on_each):
    out = on_each.zeros(2)
    on_each.launch("bit_lock", 1, 256, out, steps=100_000)
    assert on_each.get(out, 2).tolist() == [0, 16]


def test_a_launch_of_another_module_s_entry_is_refused(kernels):
    other = Kernels('extern "C" __global__ void other() {}')
    other.module.entries["lock"] = kernels.module.entries["lock"]
    with pytest.raises(ValueError, match="another module"):
        other.launch("lock", 1, 1, 0)


def stored(engine, text, count, dtype=np.int32):
    """Return the values that the lanes of a warp store."""
    kernels = Kernels(load_module(HEAD + text), engine=engine)
    out = kernels.zeros(count, dtype)
    kernels.launch("k", 1, 32, out)
    assert engine == "numpy" or kernels.ran_natively("k")
    return kernels.get(out, count, dtype).tolist()


ADDRESSED = """
.func turn (.param .align 8 .b8 s[24], .param .b64 p, .param .align 4 .b8 t[12]) {
    .reg .u32 turns, word, lane; .reg .u64 from, generic, place, out, more, third; .reg .pred again;
start:
    mov.u64 from, s; cvta.local.u64 generic, from; mov.u64 third, t+8;
    ld.param.u64 out, [p];
    mov.u32 lane, %tid.x; and.b32 word, lane, 1; mul.wide.u32 place, word, 8; add.u64 place, place, generic;
    ld.u64 more, [place]; add.u64 more, more, 1000; st.u64 [place], more;
    ld.local.u32 turns, [from+16]; sub.u32 turns, turns, 1; st.local.u32 [from+16], turns;
    setp.ne.u32 again, turns, 0; @again bra start;
    mul.wide.u32 place, lane, 8; add.u64 out, out, place;
    st.global.u64 [out], more;
    ld.local.u32 word, [third]; cvt.u64.u32 place, word; st.global.u64 [out+256], place;
    ret;
}
.visible .entry k(.param .u64 p) {
    .reg .u32 lane, low; .reg .u64 out;
    ld.param.u64 out, [p]; mov.u32 lane, %tid.x; add.u32 low, lane, 5;
    { .param .align 8 .b8 a[24]; .param .b64 b; .param .align 4 .b8 c[12];
      st.param.v2.b32 [a], {low, 1}; st.param.b64 [a+8], 7; st.param.b32 [a+16], 3; st.param.b64 [b], out;
      st.param.b32 [c], 1; st.param.b32 [c+4], 2; st.param.b32 [c+8], low;
      call.uni turn, (a, b, c); }
    ret;
}
"""


def test_the_address_of_a_function_s_parameter_is_that_of_a_copy_that_is_made_once_a_call(engine):
    low = range(5, 37)
    turned = [3000 + (7 if lane % 2 else (1 << 32) + word) for lane, word in enumerate(low)]
    assert stored(engine, ADDRESSED, 64, np.uint64) == [*turned, *low]


NAMED = """
.global .align 8 .u64 in_global;
.const .align 8 .u64 in_const = 77;
.func inner (.reg .b64 out) {
    .reg .u64 value; .local .align 8 .b8 own[16];
    st.u64 [own+8], 55; ld.local.u64 value, [own+8]; st.global.u64 [out+32], value;
    ret;
}
.visible .entry k(.param .u64 p) {
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
"""


def test_a_variable_that_is_named_without_a_space_is_stored_and_loaded_in_whatever_space_it_lies(engine):
    assert stored(engine, NAMED, 5, np.uint64) == [103, 3, 103, 80, 55]
    beyond = ".local .align 8 .b8 in_local[16]; st.u64 [in_local+1048576], 5; ret;"
    with pytest.raises(Fault, match="a local write of 8 bytes at 0x100000 "):
        stored(engine, f".visible .entry k(.param .u64 p) {{ {beyond} }}", 1)


def test_lanes_wait_for_their_partners_also_after_some_had_ended(engine):
    """Lanes whose partners have exited continue, and later meet lanes that took another path through a loop."""
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
    lane = np.arange(32)
    rounds, aside = (lane ^ 8) * (9 + 3 + 1), np.where(lane < 8, 9 * 100, 0)
    assert stored(engine, text, 32) == np.where(lane < 16, rounds + aside, 0).tolist()


@pytest.mark.parametrize("back", ["@!%q bra again; bra done;", "ways: .branchtargets again, done; brx.idx way, ways;"])
def test_lanes_wait_in_a_loop_for_others_of_their_warp(engine, back):
    """The waiting lanes branch back to the lowest basic block, and the scheduler must run other blocks too."""
    text = f""".visible .entry k(.param .u64 p) {{
    .reg .b64 out, at; .reg .b32 lane, seen, way; .reg .pred %p, %q;
    ld.param.u64 out, [p]; mov.u32 lane, %laneid; setp.eq.u32 %p, lane, 31; @%p bra sets;
again:
    ld.volatile.global.u32 seen, [out]; setp.ne.u32 %q, seen, 0; selp.u32 way, 1, 0, %q; {back}
sets:
    st.volatile.global.u32 [out], 5;
done:
    ld.volatile.global.u32 seen, [out]; mul.wide.u32 at, lane, 4; add.u64 at, at, out; st.global.u32 [at+4], seen;
}}"""
    assert stored(engine, text, 33) == [5] * 33

"""Wrong member masks are reported alike by both engines, without a second run of the launch."""

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from tests.simulator.checks.reports import of_both
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

from cudart_py.simulator.ptx.native import engine as native_engine

SOURCE = """
#define BEGIN int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, v = 0
extern "C" __global__ void some_are_outside(int* out) {
    BEGIN;
    unsigned mask = blockIdx.x >= 2 && t >= 64 ? 0xffffu : 0xffffffffu;
    out[i] = __shfl_sync(mask, i, 3);
}
extern "C" __global__ void others_wait_at_a_barrier(int* out) {
    BEGIN;
    if (t % 2)
        for (int k = 0; k < 3; k++) v += __shfl_xor_sync(0xffffffffu, i + k, 1);
    __syncthreads();
    out[i] = v;
}
extern "C" __global__ void three_wait_for_each_other(int* out) {
    BEGIN;
    if (t % 32 < 8) v = __ballot_sync(0xffffffffu, t & 1);
    else if (t % 32 < 16) v = __reduce_add_sync(0xffffffffu, t);
    else v = __any_sync(0xffffff00u, t > 40);
    out[i] = v + __shfl_sync(0x7fffffffu, i, 1);
}
extern "C" __global__ void leave_one_by_one(int* out) {
    BEGIN;
    if (t % 32 < 16) {
        out[i] = __shfl_xor_sync(0xffffffffu, i, 1);
        return;
    }
    v = __ballot_sync(0xffffffffu, t & 1);
    if (t % 32 < 24) v += __shfl_sync(0xffff0000u, i, 20);
    out[i] = v + __reduce_add_sync(0xffff0000u, t);
}
extern "C" __global__ void meet_elsewhere(int* out) {
    BEGIN;
    for (int k = 0; k < 4; k++)
        if (t % 4 == k) v += __shfl_sync(0xfu << (t & 28), i, 2);
    out[i] = v;
}
"""

# The halves of a warp wait for each other in vain at two instructions, and come together again at a third.
HALVES = """.visible .entry halves(.param .u64 out) {
    .reg .b32 i, lane, turn, v, w; .reg .b64 at; .reg .pred first, odd, ends;
    ld.param.u64 at, [out];
    mov.u32 i, %tid.x; and.b32 lane, i, 31; mad.wide.u32 at, i, 4, at;
    setp.lt.u32 first, lane, 16;
    mov.u32 v, i; mov.u32 turn, 0;
again:
    shfl.sync.bfly.b32 w, v, 4, 31, -1;
    add.u32 v, v, w; add.u32 turn, turn, 1; setp.eq.u32 ends, turn, 3; @ends bra end;
    and.b32 w, v, 1; setp.ne.u32 odd, w, 0;
    @!first bra others;
    vote.sync.ballot.b32 w, odd, -1; add.u32 v, v, w; bra again;
others:
    vote.sync.any.pred odd, odd, -1; selp.u32 w, 1, 0, odd; add.u32 v, v, w; bra again;
end:
    st.global.u32 [at], v;
    ret;
}
"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("grid", "block"), [(1, 32), (5, 128), (3, 40)])
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("some_are_outside", 1),
        ("others_wait_at_a_barrier", 1),
        ("three_wait_for_each_other", 4),
        ("leave_one_by_one", 3),
    ],
)
def test_a_wrong_mask_is_reported_by_machine_code(kernels, monkeypatch, name, found, grid, block, threads):
    monkeypatch.setattr(native_engine, "_WORTH_THREAD", 1)
    kernels.threads = threads
    texts = of_both(kernels, name, grid, block, np.zeros(grid * block, np.int32))
    assert len(texts) == (0 if name == "some_are_outside" and grid * block < 640 else found)
    assert all("member mask" in text for text in texts)
    assert not any(kernel.recorded.doubts for kernel in kernels.program(name).native.values())


def test_lanes_that_went_on_without_others_wait_for_them_again() -> None:
    texts = of_both(Kernels(load_module(HEAD + HALVES)), "halves", 1, 64, np.zeros(64, np.int32))
    assert ["vote.sync.ballot" in text for text in texts] == [True, False]
    assert "vote.sync.any" in texts[1]


def test_lanes_that_meet_at_several_instructions_have_the_right_mask(kernels: Kernels) -> None:
    assert of_both(kernels, "meet_elsewhere", 2, 64, np.zeros(128, np.int32)) == []

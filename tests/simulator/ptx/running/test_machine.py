"""Lanes that wait for one another, however they stand, all get on; a launch runs its own module's kernels only."""

from __future__ import annotations

import pytest

from tests.simulator.ptx.machine import Kernels

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


def test_a_lock_within_a_warp_is_passed_on(on_each: Kernels) -> None:
    state = on_each.zeros(2)
    on_each.launch("lock", 4, 64, state, state + 4)
    assert on_each.get(state, 2).tolist() == [0, 256]


@pytest.mark.parametrize("first", [0, 1, 2])
def test_lanes_meet_though_other_warps_wait_for_them(on_each: Kernels, first: int) -> None:
    out = on_each.zeros(96)
    on_each.launch("meet", 1, 96, on_each.zeros(2), out, first, steps=100_000)
    assert (on_each.get(out, 96) == 1).all()


def test_a_launch_of_another_module_s_entry_is_refused(kernels: Kernels) -> None:
    other = Kernels('extern "C" __global__ void other() {}')
    other.module.entries["lock"] = kernels.module.entries["lock"]
    with pytest.raises(ValueError, match="another module"):
        other.launch("lock", 1, 1, 0, 0)

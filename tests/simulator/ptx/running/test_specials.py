"""Special registers: their values on an H200, and clocks that advance while kernels wait for them."""

import numpy as np
import pytest

from cudart_py.simulator.ptx import Clock, Fault
from tests.simulator.ptx.machine import Kernels

# Values read on an H200, in a block of one thread with 64 bytes of static and 100 bytes of dynamic shared memory.
OF_THE_H200 = {
    "reserved_smem_offset_begin": 0, "reserved_smem_offset_end": 288, "reserved_smem_offset_cap": 1024,
    "reserved_smem_offset_0": 0, "reserved_smem_offset_1": 0,
    "total_smem_size": 256, "dynamic_smem_size": 100, "aggr_smem_size": 1188,
    "nwarpid": 64, "nsmid": 132, "laneid": 0, "warpid": 0, "cluster_nctarank": 1, "cluster_ctarank": 0, "pm0": 0,
    "tid.w": 0, "ntid.w": 0, "ctaid.w": 0, "nctaid.w": 0, "clusterid.w": 0,
}  # fmt: skip  # rows of a table

SOURCE = r"""
typedef unsigned long long u64;
__device__ u64 timer() { u64 t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); return t; }
extern "C" __global__ void clocks(long long *out) {
    out[0] = clock64();
    out[1] = clock64();
    out[2] = clock();
    __nanosleep(1000);
    out[3] = clock64();
    out[4] = timer();
    __nanosleep(100000);
    out[5] = timer();
}
extern "C" __global__ void wait(long long *out, long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) ;
    out[blockIdx.x * blockDim.x + threadIdx.x] = clock64() - start;
}
extern "C" __global__ void wait_each(long long *out, long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles * (1 + threadIdx.x)) ;
    out[threadIdx.x] = clock64() - start;
}
extern "C" __global__ void wait_short(long long *out, unsigned cycles) {
    unsigned start = clock();
    while ((unsigned)clock() - start < cycles) ;
    *out = (unsigned)clock() - start;
}
extern "C" __global__ void wait_timer(long long *out, u64 nanoseconds) {
    u64 start = timer();
    while (timer() - start < nanoseconds) ;
    *out = timer() - start;
}
extern "C" __global__ void timed(long long *out, int n) {
    float x = n;
    for (int i = 0; i < n; i++) {
        long long start = clock64();
        x = x * x + 1;
        out[i] = clock64() - start + (x == 0.5f);
    }
}
extern "C" __global__ void patience(volatile int *flag, int *out) {
    if (blockIdx.x) {
        *flag = 1;
        return;
    }
    long long start = clock64();
    while (!*flag && clock64() - start < 100000) ;
    *out = *flag;
}
extern "C" __global__ void astray(int *p) { __nanosleep(1000); *p = 1; }
"""


def test_special_registers_hold_what_the_hardware_says():
    looks = "".join(f'asm volatile("mov.u32 %0, %%{name};" : "=r"(out[{i}]));' for i, name in enumerate(OF_THE_H200))
    machine = Kernels(f"""
    extern "C" __global__ void look(unsigned *out) {{
        __shared__ int cells[16];
        extern __shared__ int more[];
        asm volatile("// %0 and %1" :: "l"(cells), "l"(more) : "memory");
        {looks}
    }}""")
    out = machine.zeros(len(OF_THE_H200), np.uint32)
    machine.launch("look", 1, 1, out, shared_bytes=100)
    found = machine.get(out, len(OF_THE_H200), np.uint32).tolist()
    assert dict(zip(OF_THE_H200, found, strict=True)) == OF_THE_H200


def test_clocks_go_on_alike_in_every_run_and_naps_let_time_pass(on_each):
    def times() -> list[list[int]]:
        clock, found = Clock(2_000_000), []
        for _ in range(2):
            out = on_each.zeros(6, np.int64)
            on_each.launch("clocks", 1, 1, out, clock=clock)
            found.append(on_each.get(out, 6, np.int64).tolist())
        return found

    first, second = runs = times()
    assert runs == times()
    # The clock runs at 2 GHz, and advances from launch to launch.
    assert second[0] > 2 * first[5]
    for start, start_again, short, after, before, later in runs:
        assert 0 < start < start_again < short
        assert 2000 <= after - short < 2100
        assert 100_000 <= later - before < 100_100
        assert later % 32 == 0


@pytest.mark.parametrize(
    ("name", "blocks", "threads", "amount"),
    [
        *(("wait", 4, 64, cycles) for cycles in (1_000, 1_000_000, 10**12)),
        ("wait_each", 1, 64, 1_000_000),
        ("wait_short", 1, 1, 3_000_000_000),
        ("wait_timer", 1, 1, 1_000_000_000),
    ],
)
def test_a_wait_for_a_clock_ends_soon_and_not_much_too_late(on_each, name, blocks, threads, amount):
    count = blocks * threads
    out = on_each.zeros(count, np.int64)
    on_each.launch(name, blocks, threads, out, amount, steps=20_000)
    waited = on_each.get(out, count, np.int64)
    amounts = amount * (np.arange(1, count + 1) if name == "wait_each" else np.ones(count))
    assert (waited >= amounts).all()
    # Threads of a warp that have finished wait for the others.
    assert waited.max() < 1.1 * amounts[-1] + 100


def test_each_turn_of_a_loop_that_times_itself_takes_the_same(on_each):
    out = on_each.zeros(1000, np.int64)
    on_each.launch("timed", 1, 1, out, 1000)
    taken = on_each.get(out, 1000, np.int64)
    assert len(set(taken.tolist())) <= 2
    assert 0 < taken.max() < 100


def test_a_wait_for_memory_or_the_clock_lets_other_blocks_write_first(on_each):
    flag, out = on_each.zeros(1), on_each.zeros(1)
    # There are so many threads that the blocks do not run at the same time.
    on_each.launch("patience", 64, 1024, flag, out)
    assert on_each.get(out, 1)[0] == 1


def test_the_clock_goes_on_after_a_kernel_that_failed(on_each):
    clock = Clock()
    with pytest.raises(Fault):
        on_each.launch("astray", 1, 1, 8, clock=clock)
    assert clock.cycles(0) > 1000

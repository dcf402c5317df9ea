"""Addresses of matrix rows are checked before an access, and all lanes of a warp or none must execute it."""

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault

SOURCE = r"""
__device__ unsigned in_shared(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

extern "C" __global__ void load(unsigned* out, const int* bytes) {
    extern __shared__ uint4 rows[];
    rows[threadIdx.x] = make_uint4(threadIdx.x, 1, 2, 3);
    __syncwarp();
    unsigned r[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(in_shared(rows) + bytes[threadIdx.x]) : "memory");
    out[threadIdx.x] = r[0];
}
extern "C" __global__ void store(const int* bytes) {
    extern __shared__ uint4 rows[];
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %1};"
                 : : "r"(in_shared(rows) + bytes[threadIdx.x]), "r"(0) : "memory");
}
extern "C" __global__ void load_generic(unsigned* out, const unsigned* in, int outside) {
    __shared__ uint4 rows[8];
    if (threadIdx.x < 8) rows[threadIdx.x] = make_uint4(threadIdx.x, 1, 2, 3);
    __syncwarp();
    const void* p = threadIdx.x % 8 == outside ? (const void*)in : rows + threadIdx.x % 8;
    unsigned r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.b16 {%0}, [%1];" : "=r"(r) : "l"(p) : "memory");
    out[threadIdx.x] = r;
}
extern "C" __global__ void named(unsigned* out) {
    unsigned r;
    asm volatile("{ .shared .align 16 .b8 here[256]; .reg .b32 a; mov.u32 a, here;"
                 "mad.lo.u32 a, %1, 4, a; st.shared.u32 [a], %1; bar.warp.sync -1;"
                 "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [here+16]; }" : "=r"(r) : "r"(threadIdx.x) : "memory");
    out[threadIdx.x] = r;
}
extern "C" __global__ void some(unsigned* out, int lanes) {
    unsigned r = threadIdx.x;
    if (threadIdx.x < lanes) asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(r));
    out[threadIdx.x] = r;
}
extern "C" __global__ void guarded(float* out, int first) {
    float s[4] = {1, 1, 1, 1};
    unsigned one = 0x3C003C00;
    asm volatile("{ .reg .pred p; setp.ge.s32 p, %5, %6; @p mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %4}, {%4}, {%0, %1, %2, %3}; }"
                 : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]) : "r"(one), "r"((int)threadIdx.x), "r"(first));
    out[threadIdx.x] = s[0];
}
"""


@pytest.mark.parametrize("name", ["load", "store"])
@pytest.mark.parametrize(
    ("lane", "place", "status", "text"),
    [(11, 24, "MISALIGNED_ADDRESS", "aligned to 16 bytes"), (5, 512, "ILLEGAL_ADDRESS", "out of bounds")],
)
def test_a_wrong_row_is_the_fault_of_its_lane(on_each, name, lane, place, status, text):
    rows = 16 * (np.arange(32, dtype=np.int32) % 16)
    rows[lane] = place
    arguments = ([on_each.zeros(32)] if name == "load" else []) + [on_each.put(rows)]
    with pytest.raises(Fault, match=rf"{text}.*thread \({lane}, 0, 0\)") as caught:
        on_each.launch(name, 1, 32, *arguments, shared_bytes=512)
    assert caught.value.status_name == f"CUDA_ERROR_{status}"


def test_an_address_may_be_generic_or_a_variables_name(on_each):
    out, data = on_each.zeros(32), on_each.zeros(64)
    on_each.launch("load_generic", 1, 32, out, data, -1)
    assert on_each.get(out, 32)[::4].tolist() == list(range(8))
    with pytest.raises(Fault, match=r"needs addresses in shared memory, not global memory.*thread \(3, 0, 0\)"):
        on_each.launch("load_generic", 1, 32, out, data, 3)
    # All lanes give the address of the same row, so all eight rows are equal.
    on_each.launch("named", 1, 32, out)
    assert on_each.get(out, 32).tolist() == [4 + lane % 4 for lane in range(32)]


@pytest.mark.parametrize(("threads", "lanes", "thread"), [(32, 20, 0), (48, 48, 32), (96, 40, 32)])
def test_lanes_that_are_missing_are_an_error(on_each, threads, lanes, thread):
    with pytest.raises(Fault, match=rf"not all 32 lanes of the warp execute it together.*thread \({thread}, 0, 0\)"):
        on_each.launch("some", 1, threads, on_each.zeros(96), lanes)


def test_whole_warps_may_be_missing_and_a_guard_chooses_some(on_each):
    out, sums = on_each.zeros(96), on_each.zeros(64, np.float32)
    on_each.launch("some", 1, 96, out, 64)
    changed = on_each.get(out, 96) != np.arange(96)
    assert [changed[:32].all(), changed[32:64].all(), changed[64:].any()] == [True, True, False]
    on_each.launch("guarded", 1, 64, sums, 32)
    assert on_each.get(sums, 64, np.float32).tolist() == [1.0] * 32 + [9.0] * 32

"""The window of shared memory: 32-bit addresses, a reserved KiB in front, and its end at a multiple of 128 bytes.

Beyond a block's variables loads get anything, and stores are found. Where the window ends on each driver is in
tests/launch/test_shared_memory_end.py.
"""

from __future__ import annotations

import re

import pytest

from cudart_py.simulator.checks import findings
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.ptx import Fault
from cudart_py.simulator.ptx.windows import RESERVED_SHARED
from tests.simulator.ptx.machine import Kernels

SOURCE = r"""
extern __shared__ int s[];
__device__ unsigned in_shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void wrapped(int *out, unsigned long long base) {
    __shared__ int cells[8];
    cells[threadIdx.x] = 100 + threadIdx.x;
    __syncthreads();
    asm volatile("ld.shared.u32 %0, [%1+1032];  // of %2" : "=r"(out[0]) : "r"((unsigned)base), "l"(cells) : "memory");
    asm volatile("ld.shared.u32 %0, [%1+1032];  // of %2" : "=r"(out[1]) : "l"(base), "l"(cells) : "memory");
}
extern "C" __global__ void reserved(unsigned *out, unsigned at) {
    __shared__ int cells[16];
    cells[threadIdx.x] = 1;
    unsigned found;
    asm volatile("st.shared.u32 [%1], %2; ld.shared.u32 %0, [%1];" : "=r"(found) : "r"(at), "r"(7u) : "memory");
    *out = found + cells[0] - 1;
}
extern "C" __global__ void address(unsigned *out) {
    __shared__ int cells[16];
    out[0] = in_shared(cells);
    out[1] = in_shared(s);
}
extern "C" __global__ void stored(int* out, int at) { ((volatile int*)s)[at] = 7; out[0] = ((volatile int*)s)[at]; }
extern "C" __global__ void loaded(int* out, int at) { int v = ((volatile int*)s)[at]; out[1] = at < 0 ? v : 3; }
extern "C" __global__ void used(int* out, int at) { out[0] = ((volatile int*)s)[at] + 1; }
extern "C" __global__ void added(int* out, int at) { atomicAdd(s + at, 1); out[0] = 1; }
extern "C" __global__ void vectors(int* out, int at) {
    int4* v = (int4*)(s + at);
    *v = make_int4(1, 2, 3, 4);
    out[0] = ((volatile int*)s)[at + 1];
}
extern "C" __global__ void part_of_a_vector(int* out, int at) {
    s[at] = s[at + 1] = s[at + 2] = 5;
    int4 v = *(int4*)(s + at);
    asm volatile("" :: "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
    out[0] = v.x + v.y + v.z;
}
extern "C" __global__ void generic(int* out, int at) {
    int* p = threadIdx.x ? out + 1 : s + at;
    *(volatile int*)p = 7;
    out[threadIdx.x] = *(volatile int*)p;
}
extern "C" __global__ void fixed(int* out, int at) {
    __shared__ int f[7];
    volatile int* p = f;
    p[at] = 7;
    out[0] = p[at];
}
extern "C" __global__ void fixed_and_dynamic(int* out, int at) {
    __shared__ int f[7];
    f[threadIdx.x] = 1;
    ((volatile int*)s)[at] = f[0];
    out[0] = ((volatile int*)s)[at];
}
extern "C" __global__ void copied(int* out, int at) {
    out[1] = 7;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;" ::"r"(in_shared(s + at)), "l"(out + 1)
                 : "memory");
    out[0] = ((volatile int*)s)[at];
}
extern "C" __global__ void neighbour(int* out, int at) {
    *((volatile int*)__cluster_map_shared_rank(s, __clusterRelativeBlockRank() ^ 1) + at) = 7;
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    out[0] = ((volatile int*)s)[at];
}
extern "C" __global__ void bulk(int* out, int at) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(in_shared(s)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];"
                 ::"r"(in_shared(s + at)), "l"(out), "r"(in_shared(s)) : "memory");
}
"""


def test_variables_begin_behind_the_reserved_kibibyte(kernels: Kernels) -> None:
    out = kernels.zeros(2)
    kernels.launch("address", 1, 1, out, shared_bytes=16)
    assert kernels.get(out, 2).tolist() == [RESERVED_SHARED, RESERVED_SHARED + 64]


@pytest.mark.parametrize("base", [0, 4, 2**32 - 8, 2**64 - 8])
def test_a_register_and_its_offset_wrap_at_32_bits_however_wide_it_is(kernels: Kernels, base: int) -> None:
    out = kernels.zeros(2)
    kernels.launch("wrapped", 1, 8, out, base)
    assert kernels.get(out, 2).tolist() == [100 + (base + 8) % 2**32 // 4] * 2


def test_a_part_of_the_reserved_memory_is_for_cuda_and_the_rest_is_nobodys(kernels: Kernels) -> None:
    out = kernels.zeros(1)
    kernels.launch("reserved", 2, 16, out, 284)
    assert kernels.get(out, 1)[0] == 7
    for at, where in (
        (288, "736 bytes before the start"),
        (1020, "4 bytes before the start"),
        (1152, "64 bytes past the end"),
        (2**32 - 8, "1032 bytes before the start"),
    ):
        with pytest.raises(Fault, match=where):
            kernels.launch("reserved", 1, 16, out, at)


def found(kernels: Kernels, name: str, at: int, shared_bytes: int, blocks: int = 1) -> list[str]:
    """Return the findings of a launch."""
    findings.pending.clear()
    cluster = (blocks, 1, 1)
    out = kernels.zeros(64)
    kernels.launch(name, blocks, 1, out, at, shared_bytes=shared_bytes, cluster=cluster, observer=LaunchChecks())
    texts = [str(finding) for finding in findings.pending]
    findings.pending.clear()
    return texts


# The kernels that write at a place, with the sizes of their accesses.
WRITERS = {"stored": 4, "added": 4, "vectors": 16, "generic": 4, "fixed": 4, "fixed_and_dynamic": 4, "copied": 4}


@pytest.mark.parametrize("name", WRITERS)
def test_a_write_beyond_the_variables_is_found_and_one_beyond_the_window_a_fault(on_each: Kernels, name: str) -> None:
    out, last, size = on_each.zeros(64), (128 - WRITERS[name]) // 4, 0 if name == "fixed" else 12
    # The static variables lie before the dynamic ones.
    last -= 8 if name == "fixed_and_dynamic" else 0
    on_each.launch(name, 1, 1, out, last, shared_bytes=size)
    with pytest.raises(Fault, match="out of bounds"):
        on_each.launch(name, 1, 1, out, last + WRITERS[name] // 4, shared_bytes=size)
    (text,) = found(on_each, name, 8, size and 28)
    assert re.search("out of bounds: it .*of shared memory at 0x4.*bytes that the block has", text)


@pytest.mark.parametrize(
    ("name", "blocks", "size", "nbytes", "place"),
    [("neighbour", 2, 28, 4, "100 bytes past the end"), ("bulk", 1, 40, 16, "88 bytes past the end")],
)
def test_so_are_writes_to_another_block_and_bulk_copies(
    on_each: Kernels, name: str, blocks: int, size: int, nbytes: int, place: str
) -> None:
    (text,) = found(on_each, name, 8, size, blocks=blocks)
    assert f"out of bounds: it writes {nbytes} bytes" in text
    with pytest.raises(Fault, match=f"out of bounds: .*{place}"):
        on_each.launch(name, blocks, 1, on_each.zeros(8), 32, shared_bytes=size, cluster=(blocks, 1, 1))


def test_a_load_beyond_the_variables_is_uninitialised(on_each: Kernels) -> None:
    (text,) = found(on_each, "used", 7, 28)
    assert "uninitialised value reaches a store: it was read at" in text
    assert "beyond the 28 bytes that the block has" in text


@pytest.mark.parametrize(("name", "at"), [("stored", 6), ("loaded", 7), ("part_of_a_vector", 4)])
def test_writes_inside_and_loads_whose_values_are_not_used_are_fine(on_each: Kernels, name: str, at: int) -> None:
    assert found(on_each, name, at, 28) == []

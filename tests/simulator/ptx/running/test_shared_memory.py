"""Shared memory: its window, clusters, bulk copies, and reports of accesses out of bounds.

tests/launch tests the contents of shared memory and the end of the window, with every driver.
"""

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
__device__ __noinline__ int far(int i) {
    __shared__ int cells[300];
    volatile int own[40];
    cells[i] = own[i] = i;
    __syncthreads();
    return cells[i ^ 1] + own[i];
}
__device__ int (*table[])(int) = {far};
__device__ __noinline__ int other(int i) { volatile int own[50]; own[i] = 3 * i; return own[i]; }
extern "C" __global__ void keep(void** out) { *out = (void*)&other; }
extern "C" __global__ void by_pointer(void** in, int* out) { out[threadIdx.x] = ((int (*)(int))*in)(threadIdx.x); }
extern "C" __global__ void by_table(int* out, int which) { out[threadIdx.x] = table[which](threadIdx.x); }
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
// Of clusters
__device__ int* of_the_other(int* p) { return (int*)__cluster_map_shared_rank(p, __clusterRelativeBlockRank() ^ 1); }
extern "C" __global__ void without_sync(int* out, int at) {
    s[threadIdx.x] = at;
    __syncthreads();
    out[threadIdx.x] = of_the_other(s)[threadIdx.x];
}
extern "C" __global__ void beyond(int* out, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    out[threadIdx.x] = of_the_other(s)[threadIdx.x + n];
}
extern "C" __global__ void absent(int rank) {
    __shared__ int s[64];
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(in_shared(s + threadIdx.x)), "r"(rank));
    asm volatile("st.shared::cluster.u32 [%0], %0;" ::"r"(there) : "memory");
}
extern "C" __global__ void fetch(const int* in, int bytes, int to, int from, int lane) {
    __shared__ alignas(16) int s[64];
    __shared__ long long barrier;
    if (threadIdx.x == lane)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     ::"r"(in_shared(s) + to), "l"((const char*)in + from), "r"(bytes), "r"(in_shared(&barrier)));
}
extern "C" __global__ void store(int* out, int bytes) {
    __shared__ alignas(16) int s[64];
    s[threadIdx.x] = 1;
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 ::"l"(out), "r"(in_shared(s)), "r"(bytes) : "memory");
}
extern "C" __global__ void spread(const int* in, int ranks) {
    __shared__ alignas(16) int s[64];
    __shared__ long long barrier;
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1], 256, [%2], %3;" ::"r"(in_shared(s)), "l"(in), "r"(in_shared(&barrier)),
                     "h"((short)ranks) : "memory");
}
"""


def test_variables_begin_behind_the_reserved_kibibyte(kernels):
    out = kernels.zeros(2)
    kernels.launch("address", 1, 1, out, shared_bytes=16)
    assert kernels.get(out, 2).tolist() == [RESERVED_SHARED, RESERVED_SHARED + 64]


def test_a_function_that_only_a_table_names_has_its_variables(kernels):
    out = kernels.zeros(32)
    kernels.launch("by_table", 1, 32, out, 0)
    assert kernels.get(out, 32).tolist() == [(i ^ 1) + i for i in range(32)]
    assert kernels.module.entries["by_table"].static_shared_bytes == 1200


def test_a_function_whose_address_another_kernel_takes_has_its_variables(kernels):
    out, pointer = kernels.zeros(32), kernels.zeros(2)
    kernels.launch("keep", 1, 1, pointer)
    kernels.launch("by_pointer", 1, 32, pointer, out)
    assert kernels.get(out, 32).tolist() == [3 * i for i in range(32)]
    assert {function.name for function in kernels.module.entries["by_pointer"].called} >= {"_Z5otheri"}


@pytest.mark.parametrize("base", [0, 4, 2**32 - 8, 2**64 - 8])
def test_a_register_and_its_offset_wrap_at_32_bits_however_wide_it_is(kernels, base):
    out = kernels.zeros(2)
    kernels.launch("wrapped", 1, 8, out, base)
    assert kernels.get(out, 2).tolist() == [100 + (base + 8) % 2**32 // 4] * 2


def test_a_part_of_the_reserved_memory_is_for_cuda_and_the_rest_is_nobodys(kernels):
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


def test_a_missing_size_of_dynamic_shared_memory_is_named_where_the_kernel_has_such_an_array():
    kernels = Kernels("""
extern __shared__ float sized_at_launch[];
extern "C" __global__ void with_array(int i) { sized_at_launch[i] = 1; }
extern "C" __global__ void without_array(int i) { __shared__ volatile float s[32]; s[i] = 1; }
""")
    kernels.launch("with_array", 1, 1, 31, shared_bytes=128)
    remedy = "as in kernel[grid, block, shared_bytes](...)"
    with pytest.raises(Fault, match="0 bytes past the end of the block's 0 bytes") as caught:
        kernels.launch("with_array", 1, 1, 0)
    assert remedy in caught.value.report
    with pytest.raises(Fault, match="0 bytes past the end of the block's 128 bytes") as caught:
        kernels.launch("without_array", 1, 1, 32)
    assert remedy not in caught.value.report


def found(kernels: Kernels, name: str, at: int, shared_bytes: int, blocks: int = 1, threads: int = 1) -> list[str]:
    findings.pending.clear()
    cluster = (blocks, 1, 1)
    out = kernels.zeros(64)
    kernels.launch(name, blocks, threads, out, at, shared_bytes=shared_bytes, cluster=cluster, observer=LaunchChecks())
    texts = [str(finding) for finding in findings.pending]
    findings.pending.clear()
    return texts


# Kernels that write to a given address, with the sizes of their accesses in bytes.
WRITERS = {"stored": 4, "added": 4, "vectors": 16, "generic": 4, "fixed": 4, "copied": 4}


@pytest.mark.parametrize("name", WRITERS)
def test_a_write_beyond_the_variables_is_found_and_one_beyond_the_window_a_fault(on_each, name):
    out, last, size = on_each.zeros(64), (128 - WRITERS[name]) // 4, 0 if name == "fixed" else 12
    on_each.launch(name, 1, 1, out, last, shared_bytes=size)
    with pytest.raises(Fault, match="out of bounds"):
        on_each.launch(name, 1, 1, out, last + WRITERS[name] // 4, shared_bytes=size)
    (text,) = found(on_each, name, 8, size and 28)
    assert re.search("out of bounds: it .*of shared memory at 0x4.*bytes that the block has", text)


@pytest.mark.parametrize(
    ("name", "blocks", "size", "nbytes", "place"),
    [("neighbour", 2, 28, 4, "100 bytes past the end"), ("bulk", 1, 40, 16, "88 bytes past the end")],
)
def test_so_are_writes_to_another_block_and_bulk_copies(on_each, name, blocks, size, nbytes, place):
    (text,) = found(on_each, name, 8, size, blocks=blocks)
    assert f"out of bounds: it writes {nbytes} bytes" in text
    with pytest.raises(Fault, match=f"out of bounds: .*{place}"):
        on_each.launch(name, blocks, 1, on_each.zeros(8), 32, shared_bytes=size, cluster=(blocks, 1, 1))


def test_a_load_beyond_the_variables_is_uninitialised_where_its_value_is_used(on_each):
    (text,) = found(on_each, "used", 7, 28)
    assert "uninitialised value reaches a store: it was read at" in text
    assert "beyond the 28 bytes that the block has" in text
    for name, at in (("stored", 6), ("loaded", 7), ("part_of_a_vector", 4)):
        assert found(on_each, name, at, 28) == []


def test_a_place_or_a_block_that_the_cluster_has_not_is_named(kernels):
    pair = {"cluster": (2, 1, 1)}
    with pytest.raises(Fault, match="0 bytes past the end of .*256 bytes") as caught:
        kernels.launch("beyond", 2, 64, kernels.zeros(64), 1, **pair)
    assert "thread (63, 0, 0)" in caught.value.report
    kernels.launch("absent", 4, 64, 1, **pair)
    with pytest.raises(Fault, match="rank 5, in a cluster of 2") as caught:
        kernels.launch("absent", 4, 64, 5, **pair)
    assert caught.value.status_name == "CUDA_ERROR_LAUNCH_FAILED"
    with pytest.raises(Fault, match="rank 3, in a cluster of 2"):
        kernels.launch("spread", 2, 32, kernels.zeros(64), 0b1001, **pair)
    with pytest.raises(Fault, match="global write of 16 bytes at .* out of bounds"):
        kernels.launch("store", 1, 1, kernels.zeros(32), 256)


def test_reading_another_blocks_shared_memory_too_early_is_a_race(kernels):
    texts = found(kernels, "without_sync", 0, 256, blocks=2, threads=64)
    assert any("race: it reads 4 bytes of shared memory" in text for text in texts)


@pytest.mark.parametrize(
    ("bytes_", "to", "source", "status", "text"),
    [
        (24, 0, 0, "ILLEGAL_INSTRUCTION", "24 bytes, which is not a multiple of 16"),
        (64, 8, 0, "MISALIGNED_ADDRESS", "aligned to 16 bytes"),
        (64, 0, 4, "MISALIGNED_ADDRESS", "aligned to 16 bytes"),
        (1 << 16, 0, 0, "ILLEGAL_ADDRESS", "shared write of 16 bytes at .* out of bounds"),
        (0x7FFFFFF0, 0, 0, "ILLEGAL_ADDRESS", "shared write of 16 bytes at .* out of bounds"),
        (-16, 0, 0, "ILLEGAL_ADDRESS", "shared write of 16 bytes at .* out of bounds"),
        (256, 0, 16, "ILLEGAL_ADDRESS", "global read of 16 bytes at .* out of bounds"),
    ],
)
def test_a_wrong_bulk_copy_is_a_fault_of_its_thread(kernels, bytes_, to, source, status, text):
    with pytest.raises(Fault, match=text) as caught:
        kernels.launch("fetch", 1, 64, kernels.zeros(64), bytes_ & 0xFFFFFFFF, to, source, 37)
    assert caught.value.status_name == f"CUDA_ERROR_{status}"
    assert "thread (37, 0, 0)" in caught.value.report

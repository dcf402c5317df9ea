"""Clusters, and asynchronous copies that complete on an mbarrier or bulk group: ``cp.async.bulk`` and ``st.async``."""

import numpy as np
import pytest

import cudart_py as cuda

# Kernels that use the barrier classes of libcu++. In one source with the others, all would compile more slowly.
OF_BARRIERS = """
#pragma nv_diag_suppress 20054
#include <cuda/barrier>
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

// One thread fetches 64 numbers, and the block reverses them.
extern "C" __global__ void fetch(int *out, const int *in) {
    __shared__ alignas(16) int s[64];
    __shared__ block_barrier bar;
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0)
        cuda::memcpy_async(s, in + blockIdx.x * 64, cuda::aligned_size_t<16>(sizeof(s)), bar);
    bar.arrive_and_wait();
    out[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
}

// Each of 32 threads fetches a piece of its own length to its own place.
extern "C" __global__ void pieces(int *out, const int *in, const int *lengths) {
    __shared__ alignas(16) int s[32 * 16];
    __shared__ block_barrier bar;
    for (int i = threadIdx.x; i < 32 * 16; i += 32) s[i] = -1;
    if (threadIdx.x == 0) init(&bar, 32);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    int bytes = 4 * lengths[threadIdx.x];
    cuda::device::memcpy_async_tx(s + 16 * threadIdx.x, in + 16 * threadIdx.x, cuda::aligned_size_t<16>(bytes), bar);
    bar.wait(cuda::device::barrier_arrive_tx(bar, 1, bytes));
    for (int i = threadIdx.x; i < 32 * 16; i += 32) out[i] = s[i];
}
"""
KERNELS = """
#pragma nv_diag_suppress 20054
#include <cuda/ptx>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace ptx = cuda::ptx;
__device__ unsigned in_shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void wait(uint64_t *bar) { while (!ptx::mbarrier_try_wait_parity(bar, 0)) {} }
__device__ void cluster_sync() { __cluster_barrier_arrive(); __cluster_barrier_wait(); }
template <class T> __device__ T *map(T *here, unsigned rank) { return (T *)__cluster_map_shared_rank(here, rank); }
// An address in the next block of the cluster.
template <class T> __device__ T *there(T *here) {
    return map(here, (__clusterRelativeBlockRank() + 1) % __clusterSizeInBlocks());
}
// Let the barrier of each block of the cluster count bytes that others send.
__device__ void expect(uint64_t *bar, int bytes) {
    if (threadIdx.x == 0) ptx::mbarrier_init(bar, 1);
    ptx::fence_proxy_async(ptx::space_shared);
    cluster_sync();
    if (threadIdx.x == 0)
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, bar, bytes);
}

// Each block reads the next one's numbers.
extern "C" __global__ void rotate(int *out, const int *in) {
    __shared__ int s[64];
    s[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    cluster_sync();
    out[blockIdx.x * 64 + threadIdx.x] = there(s)[63 - threadIdx.x];
    cluster_sync();
}
// Each block has a part of the bins, and all count in all of them.
extern "C" __global__ void histogram(int *out, const int *in) {
    __shared__ int bins[32];
    if (threadIdx.x < 32) bins[threadIdx.x] = 0;
    cluster_sync();
    int bin = in[blockIdx.x * 64 + threadIdx.x];
    atomicAdd(map(bins, bin / 32) + bin % 32, 1);
    cluster_sync();
    if (threadIdx.x < 32) out[blockIdx.x * 32 + threadIdx.x] = bins[threadIdx.x];
}
extern "C" __global__ void ranks(int *out) {
    __shared__ int s[64];
    unsigned rank = __cluster_query_shared_rank(map(s, threadIdx.x % __clusterSizeInBlocks()));
    out[blockIdx.x * 64 + threadIdx.x] = rank * 100 + __cluster_query_shared_rank(s);
}

// The block doubles numbers in shared memory, and one thread stores them.
extern "C" __global__ void store(int *out, const int *in) {
    __shared__ alignas(16) int s[64];
    for (int round = 0; round < 3; round++) {
        int first = (blockIdx.x * 3 + round) * 64;
        s[threadIdx.x] = 2 * in[first + threadIdx.x];
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (threadIdx.x == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + first, s, sizeof(s));
            ptx::cp_async_bulk_commit_group();
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
        }
        __syncthreads();
    }
}

// All blocks add their numbers to the same ones, or take minima and so on.
#define REDUCTION(NAME, T, OP)                                                                           \
    extern "C" __global__ void NAME(T *out, const T *in) {                                               \
        __shared__ alignas(16) T s[64];                                                                  \
        s[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];                                              \
        ptx::fence_proxy_async(ptx::space_shared);                                                       \
        __syncthreads();                                                                                 \
        if (threadIdx.x == 0) {                                                                          \
            ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, OP, out, s, 64 * sizeof(T)); \
            ptx::cp_async_bulk_commit_group();                                                           \
            ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());                                              \
        }                                                                                                \
    }
REDUCTION(add_unsigned, unsigned, ptx::op_add)
REDUCTION(add_float, float, ptx::op_add)
REDUCTION(add_double, double, ptx::op_add)
REDUCTION(add_half, __half, ptx::op_add)
REDUCTION(least, int, ptx::op_min)
REDUCTION(least_half, __half, ptx::op_min)
REDUCTION(greatest_brain, __nv_bfloat16, ptx::op_max)
REDUCTION(bits_in_common, unsigned, ptx::op_and_op)

// Each block sends its numbers to the next one: in bulk, four for each thread, and added up in sums, which are added
// and stored by generic addresses too. The receiver's barrier counts the bytes.
extern "C" __global__ void send(int *copied, int *stored, int *added, int *in_numbers, const int *in) {
    __shared__ alignas(16) int mine[64], received[64], quads[4 * 64];
    __shared__ int sums[2][4], numbers[64];
    __shared__ alignas(8) uint64_t bar;
    int i = blockIdx.x * 64 + threadIdx.x, x = in[i], values[] = {x, 2 * x, 3 * x, 4 * x};
    mine[threadIdx.x] = x;
    if (threadIdx.x < 8) sums[threadIdx.x / 4][threadIdx.x % 4] = 1;
    expect(&bar, 256 + 1024 + 256 + 256 + 256);
    if (threadIdx.x == 0)
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, there(received), mine, 256, there(&bar));
    ptx::st_async(there(quads + 4 * threadIdx.x), values, there(&bar));
    ptx::red_async(ptx::op_add, there(sums[0] + threadIdx.x % 4), x, there(&bar));
    asm volatile("red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.s32 [%0], %1, [%4]; "
                 "st.async.mbarrier::complete_tx::bytes.s32 [%2], %3, [%4];"
                 :
                 : "l"(there(sums[1] + threadIdx.x % 4)), "r"(x), "l"(there(numbers + threadIdx.x)), "r"(-x),
                   "l"(there(&bar))
                 : "memory");
    wait(&bar);
    copied[i] = received[threadIdx.x];
    in_numbers[i] = numbers[threadIdx.x];
    for (int k = 0; k < 4; k++) stored[4 * i + k] = quads[4 * threadIdx.x + k];
    if (threadIdx.x < 8) added[blockIdx.x * 8 + threadIdx.x] = sums[threadIdx.x / 4][threadIdx.x % 4];
    cluster_sync();
}

// Plain stores to the next block, which its barrier announces by the arrivals of other blocks' threads.
extern "C" __global__ void arrive_there(int *out, const int *in) {
    __shared__ int received[64];
    __shared__ alignas(8) uint64_t bar;
    if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 64);
    cluster_sync();
    there(received)[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, there(&bar));
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, 0)) {}
    out[blockIdx.x * 64 + threadIdx.x] = received[63 - threadIdx.x];
    cluster_sync();
}

// Some lanes of each warp arrive, and say how many arrivals were missing before: together, or one after the other.
extern "C" __global__ void count_down(unsigned *out, int needed, int lanes, bool together) {
    __shared__ alignas(8) uint64_t bar;
    if (threadIdx.x == 0) ptx::mbarrier_init(&bar, needed);
    __syncthreads();
    int lane = threadIdx.x % 32;
    uint64_t state = 0;
    if (together) {
        if (lane < lanes) state = ptx::mbarrier_arrive(&bar);
    } else {
        // By predicates, so that the lanes stay together and none comes to the next turn before.
        for (int turn = 0; turn < lanes; turn++)
            asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, %3; @p mbarrier.arrive.shared.b64 %0, [%1]; }"
                         : "+l"(state) : "r"(in_shared(&bar)), "r"(lane), "r"(turn) : "memory");
    }
    if (lane < lanes) asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[threadIdx.x]) : "l"(state));
    __syncthreads();
    out[blockDim.x + threadIdx.x] = ptx::mbarrier_test_wait_parity(&bar, 0);
}

// An arrival and a wait that put nothing in order.
extern "C" __global__ void relaxed(unsigned *out) {
    __shared__ alignas(8) uint64_t bar;
    if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 32);
    __syncthreads();
    uint64_t state;
    asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 %0, [%1];"
                 : "=l"(state) : "r"(in_shared(&bar)) : "memory");
    unsigned passed = 0;
    while (!passed)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.relaxed.cta.shared::cta.b64 p, [%1], %2; "
                     "selp.u32 %0, 1, 0, p; }" : "=r"(passed) : "r"(in_shared(&bar)), "l"(state) : "memory");
    out[threadIdx.x] = passed;
}

// The block of rank 1 fetches for the blocks whose bits are set.
extern "C" __global__ void multicast(int *out, const int *in, int ranks) {
    __shared__ alignas(16) int s[64];
    __shared__ alignas(8) uint64_t bar;
    s[threadIdx.x] = -1;
    expect(&bar, ranks >> __clusterRelativeBlockRank() & 1 ? 256 : 0);
    // The headers of CUDA 13.0 have this form for sm_90a alone.
    if (threadIdx.x == 0 && __clusterRelativeBlockRank() == 1)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1], 256, [%2], %3;"
                     : : "r"(in_shared(s)), "l"(in), "r"(in_shared(&bar)), "h"((short)ranks) : "memory");
    wait(&bar);
    out[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];
    cluster_sync();
}

// Loads and stores with policies of the caches, also one for a part of the array.
extern "C" __global__ void kept(int *out, const int *in) {
    int x;
    asm volatile("{ .reg .b64 kept, part; createpolicy.fractional.L2::evict_last.b64 kept, 1.0; "
                 "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 part, [%1], 256, 512; "
                 "ld.global.L2::cache_hint.s32 %0, [%2], kept; mul.lo.s32 %0, %0, 3; "
                 "st.global.L2::cache_hint.s32 [%3], %0, part; }"
                 : "=r"(x) : "l"(out), "l"(in + threadIdx.x), "l"(out + threadIdx.x) : "memory");
}
"""


@pytest.fixture(scope="module")
def kernels_of_barriers():
    with cuda.Device(0):
        return cuda.compile(OF_BARRIERS)


def untouched(*shape):
    return cuda.full(shape, -7, np.int32)


def test_memcpy_async_fills_shared_memory(device, kernels_of_barriers, rng):
    values = rng.integers(0, 1000, (5, 64), np.int32)
    out = untouched(5, 64)
    kernels_of_barriers["fetch"][5, 64](out, cuda.to_device(values))
    np.testing.assert_array_equal(out.to_host(), values[:, ::-1])


def test_each_thread_copies_a_piece_of_its_own_length(device, kernels_of_barriers, rng):
    lengths = rng.integers(0, 5, 32, np.int32) * 4
    values = rng.integers(0, 1000, (32, 16), np.int32)
    out = untouched(32, 16)
    kernels_of_barriers["pieces"][1, 32](out, cuda.to_device(values), cuda.to_device(lengths))
    expected = np.where(np.arange(16) < lengths[:, None], values, -1)
    np.testing.assert_array_equal(out.to_host(), expected)


def test_shared_memory_is_stored(device, kernels, rng):
    values = rng.integers(0, 1000, 4 * 3 * 64, np.int32)
    out = untouched(values.size)
    kernels["store"][4, 64](out, cuda.to_device(values))
    np.testing.assert_array_equal(out.to_host(), 2 * values)


@pytest.mark.parametrize(
    ("name", "dtype", "reference"),
    [
        ("add_unsigned", np.uint32, np.add),
        ("least", np.int32, np.minimum),
        ("bits_in_common", np.uint32, np.bitwise_and),
        ("add_float", np.float32, np.add),
        ("add_double", np.float64, np.add),
        ("add_half", np.float16, np.add),
        ("least_half", np.float16, np.minimum),
        ("greatest_brain", np.uint16, np.maximum),  # positive numbers have the order of their bit patterns
    ],
)
def test_a_reduction_changes_global_memory(device, kernels, rng, name, dtype, reference):
    # Sums of these numbers are exact in every type and order.
    end = 0x7F80 if dtype is np.uint16 else 100
    values, before = (rng.integers(1, end, shape).astype(dtype) for shape in ((5, 64), 64))
    out, source = cuda.to_device(before), cuda.to_device(values)
    kernels[name][5, 64](cuda.Pointer(out.pointer), cuda.Pointer(source.pointer))
    np.testing.assert_array_equal(out.to_host(), reference(reference.reduce(values, axis=0, dtype=dtype), before))


# Instructions on another block's shared memory also accept the block's own addresses: PTX ISA, Shared State Space.
CLUSTERS = [pytest.param(1, marks=pytest.mark.unsanitized("memcheck knows no cluster of one block")), 2, 4]


@pytest.mark.parametrize("size", CLUSTERS)
def test_threads_copy_store_and_add_in_another_block(device, kernels, rng, size):
    values = rng.integers(0, 1000, (8 // size, size, 64), np.int32)
    copied, stored, added, numbers = untouched(8, 64), untouched(8, 64, 4), untouched(8, 2, 4), untouched(8, 64)
    kernels["send"].configure(8, 64, cluster=size)(copied, stored, added, numbers, cuda.to_device(values))
    sent = np.roll(values, 1, axis=1).reshape(8, 64)
    np.testing.assert_array_equal(copied.to_host(), sent)
    np.testing.assert_array_equal(stored.to_host(), sent[:, :, None] * np.array([1, 2, 3, 4]))
    np.testing.assert_array_equal(numbers.to_host(), -sent)
    sums = 1 + sent.reshape(8, 16, 4).sum(axis=1)
    np.testing.assert_array_equal(added.to_host(), np.stack([sums, sums], axis=1))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_threads_arrive_at_another_blocks_barrier(device, kernels, rng, size):
    values = rng.integers(0, 1000, (8 // size, size, 64), np.int32)
    out = untouched(8, 64)
    kernels["arrive_there"].configure(8, 64, cluster=size)(out, cuda.to_device(values))
    np.testing.assert_array_equal(out.to_host(), np.roll(values, 1, axis=1).reshape(8, 64)[:, ::-1])


@pytest.mark.parametrize("ranks", [0b0010, 0b1011, 0b1111, 0])
def test_one_copy_reaches_several_blocks_of_a_cluster(device, kernels, rng, ranks):
    values = rng.integers(0, 1000, 64, np.int32)
    out = untouched(2, 4, 64)
    kernels["multicast"].configure(8, 64, cluster=4)(out, cuda.to_device(values), ranks)
    chosen = np.array([ranks >> rank & 1 for rank in range(4)], np.bool_)
    np.testing.assert_array_equal(out.to_host(), np.where(chosen[:, None], values, -1)[None].repeat(2, axis=0))


@pytest.mark.parametrize("together", [True, False])
def test_warps_complete_one_phase_after_the_other(device, kernels, together):
    out = cuda.zeros(192, np.uint32)
    kernels["count_down"][1, 96](out, 16, 16, together)
    missing, passed = np.split(out.to_host(), 2)
    # The arrivals of one warp instruction are added up. Otherwise the order of the threads is undefined.
    expected = [16] * 48 if together else [*range(1, 17)] * 3
    assert sorted(missing.reshape(3, 32)[:, :16].flat) == sorted(expected)
    assert passed.all()


def test_a_lane_after_the_other_completes_several_phases(device, kernels):
    out = cuda.zeros(64, np.uint32)
    kernels["count_down"][1, 32](out, 1, 32, False)
    assert (out.to_host()[:32] == 1).all()


ARRIVE_TOO_OFTEN = """
import numpy as np
import cudart_py as cuda
kernel = cuda.compile('''
extern "C" __global__ void too_often(unsigned *out) {
    __shared__ alignas(8) unsigned long long bar;
    unsigned place = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 16;" :: "r"(place) : "memory");
    __syncthreads();
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(place) : "memory");
    __syncthreads();
    // Hardware may notice it late: the block goes on to use what it got.
    asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[threadIdx.x]) : "l"(state));
    unsigned passed;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(passed) : "r"(place) : "memory");
    out[32] = passed;
}''')["too_often"]
out = cuda.zeros(33, np.uint32)
kernel[1, 32](out)
try:
    cuda.Device(0).synchronize()
except cuda.CudaError as error:
    print(error.status.name)
"""


@pytest.mark.unsanitized("its fault ends the context")
def test_a_warp_cannot_complete_two_phases_at_once(device, python):
    # In its own process, since the fault ends the context.
    assert python(ARRIVE_TOO_OFTEN).stdout.strip() == "CUDA_ERROR_LAUNCH_FAILED"


def test_a_relaxed_arrival_is_one(device, kernels):
    out = cuda.zeros(32, np.uint32)
    kernels["relaxed"][1, 32](out)
    assert out.to_host().all()


def test_cache_policies_change_no_results(device, kernels, rng):
    values = rng.integers(0, 1000, 128, np.int32)
    out = untouched(128)
    kernels["kept"][1, 128](out, cuda.to_device(values))
    np.testing.assert_array_equal(out.to_host(), 3 * values)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_a_block_reads_the_next_ones_shared_memory(device, kernels, rng, size):
    values = rng.integers(0, 1000, 64 * 64, np.int32)
    out = cuda.zeros(values.size, np.int32)
    kernels["rotate"].configure(64, 64, cluster=size)(out, cuda.to_device(values))
    expected = np.roll(values.reshape(-1, size, 64), -1, axis=1)[:, :, ::-1]
    np.testing.assert_array_equal(out.to_host(), expected.reshape(-1))


def test_atomics_reach_every_block_of_the_cluster(device, kernels, rng):
    bins = rng.integers(0, 128, (6, 256), np.int32)
    out = cuda.zeros((6, 128), np.int32)
    kernels["histogram"].configure(24, 64, cluster=4)(out, cuda.to_device(bins))
    np.testing.assert_array_equal(out.to_host(), [np.bincount(row, minlength=128) for row in bins])


def test_an_address_tells_the_rank_of_its_block(device, kernels):
    out = cuda.zeros((8, 64), np.int32)
    kernels["ranks"].configure(8, 64, cluster=4)(out)
    np.testing.assert_array_equal(out.to_host(), np.arange(64) % 4 * 100 + np.arange(8)[:, None] % 4)


@pytest.mark.parametrize("size", [1, 2, 4, 8, (2, 2), (4, 4)])
def test_the_most_active_clusters_fit_the_device(device, kernels, size):
    """The sizes of the GPCs differ from GPU to GPU, so only bounds are known."""
    kernel = kernels["rotate"]
    blocks = int(np.prod(size))
    most = kernel.max_active_clusters(256, size)
    assert 0 < most * blocks <= kernel.occupancy(256).blocks * device.sm_count
    assert kernel.max_active_clusters(256, size, 100 << 10) <= most


def test_a_launch_takes_the_largest_cluster(device, kernels):
    kernel = kernels["ranks"]
    most = kernel.max_cluster_size(64)
    assert most >= 8
    out = cuda.zeros((most, 64), np.int32)
    kernel.configure(most, 64, cluster=most)(out)
    np.testing.assert_array_equal(out.to_host() // 100, np.tile(np.arange(64) % most, (most, 1)))


def test_clusters_that_cannot_be_are_refused_before_the_driver_is_asked(device, kernels):
    kernel = kernels["rotate"]
    with pytest.raises(ValueError, match="argument 'cluster' must have at most .* blocks on this device, not 64"):
        kernel.max_active_clusters(64, 64)
    with pytest.raises(TypeError, match="'cluster.x' must be an int"):
        kernel.max_active_clusters(64, "2")
    with pytest.raises(ValueError, match="2048 threads"):
        kernel.max_cluster_size((64, 32))

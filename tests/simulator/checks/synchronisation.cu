// Barriers in memory and bulk copies: each kernel is right with `wrong` 0, and any other number is a mistake.
// Behind them are the libraries' copies by cp.async, which are right, and atomics of block scope.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

// Copy 64 numbers, and arrive at the barrier that counts their bytes.
__device__ void fetch(int *to, const int *from, block_barrier &bar) {
    cuda::device::memcpy_async_tx(to, from, cuda::aligned_size_t<16>(256), bar);
    (void)cuda::device::barrier_arrive_tx(bar, 1, 256);
}

// Copy bytes out, and wait for that.
__device__ void store(int *to, const int *from, int bytes) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, to, from, bytes);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

extern "C" __global__ void fetched(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    __shared__ block_barrier bar;
    if (threadIdx.x == 0) init(&bar, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        fetch(s, in, bar);
        if (wrong & 1) out[64] = s[5];
    }
    if (!(wrong & 2)) bar.wait_parity(0);
    out[threadIdx.x] = s[63 - threadIdx.x];
}

// Only one thread waits, and a barrier passes that on.
extern "C" __global__ void waited_by_one(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    __shared__ block_barrier bar;
    if (threadIdx.x == 0) init(&bar, 1);
    __syncthreads();
    if (threadIdx.x == 0) fetch(s, in, bar);
    if (threadIdx.x == 40 && !(wrong & 1)) bar.wait_parity(0);
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}

// A wait at a barrier where the copying thread has arrived since says nothing of the copy.
extern "C" __global__ void waited_elsewhere(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    __shared__ block_barrier bar, other;
    s[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        init(&other, 1);
    }
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        fetch(s, in, bar);
        (void)other.arrive();
    }
    if (wrong & 1) other.wait_parity(0);
    else bar.wait_parity(0);
    out[threadIdx.x] = s[63 - threadIdx.x];
}

// The warp that copies waits; the other one only knows that the copy has begun.
extern "C" __global__ void waited_by_one_warp(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    __shared__ block_barrier bar, begun;
    if (threadIdx.x == 0) {
        init(&bar, 32);
        init(&begun, 64);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) cuda::memcpy_async(s, in, cuda::aligned_size_t<16>(256), bar);
        __syncwarp();
        (void)begun.arrive();
        bar.arrive_and_wait();
    } else {
        begun.arrive_and_wait();
        if (!(wrong & 1)) bar.wait_parity(0);
        out[threadIdx.x] = s[63 - threadIdx.x];
    }
}

// The same buffer is filled twice.
extern "C" __global__ void refilled(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    __shared__ block_barrier bar;
    if (threadIdx.x == 0) init(&bar, 1);
    __syncthreads();
    int sum = 0;
    for (int round = 0; round < 2; round++) {
        if (threadIdx.x == 0) fetch(s, in + 64 * round, bar);
        bar.wait_parity(round);
        sum += s[63 - threadIdx.x];
        if (!(wrong & 1)) __syncthreads();
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void stored(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    for (int round = 0; round < 2; round++) {
        s[threadIdx.x] = in[64 * round + threadIdx.x];
        if (!(wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
        if (!(wrong & 2)) __syncthreads();
        if (threadIdx.x == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + 64 * round, s, 256);
            ptx::cp_async_bulk_commit_group();
            if (!(wrong & 4)) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
        }
        if (!(wrong & 8)) __syncthreads();
    }
}

// The thread that copies executes the proxy fence, behind the barrier.
extern "C" __global__ void fenced_by_the_copier(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        if (!(wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
        store(out, s, 256);
    }
}

// A thread that neither stores nor copies executes the proxy fence, between two barriers.
extern "C" __global__ void fenced_by_a_third(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    if (threadIdx.x < 32) s[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x == 40 && (wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 40 && !(wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
    if (!(wrong & 2)) __syncthreads();
    if (threadIdx.x == 50) {
        store(out, s, 128);
    }
}

// One thread of a warp executes it for the others, and a barrier in memory tells the one that copies.
extern "C" __global__ void fenced_by_one_of_a_warp(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[32];
    __shared__ alignas(8) uint64_t bar;
    if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 1);
    __syncthreads();
    if (threadIdx.x < 32) {
        s[threadIdx.x] = in[threadIdx.x];
        if (threadIdx.x == 3 && (wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
        __syncwarp();
        if (threadIdx.x == 3 && !(wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
        if (threadIdx.x == 3) ptx::mbarrier_arrive(&bar);
    } else if (threadIdx.x == 32) {
        while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
        store(out, s, 128);
    }
}

// All threads of a warp arrive at a barrier in memory, and one of the other warp fences behind its wait there.
extern "C" __global__ void fenced_behind_a_wait(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[32];
    __shared__ alignas(8) uint64_t stored, fenced;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&stored, 32);
        ptx::mbarrier_init(&fenced, 1);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        s[threadIdx.x] = in[threadIdx.x];
        ptx::mbarrier_arrive(&stored);
        if (threadIdx.x == 0) {
            while (!ptx::mbarrier_try_wait_parity(&fenced, 0)) {}
            store(out, s, 128);
        }
    } else if (threadIdx.x == 32) {
        if (wrong & 1) ptx::fence_proxy_async(ptx::space_shared);
        while (!ptx::mbarrier_try_wait_parity(&stored, 0)) {}
        if (!(wrong & 1)) ptx::fence_proxy_async(ptx::space_shared);
        ptx::mbarrier_arrive(&fenced);
    }
}

// The fence is one for a cluster's shared memory alone.
extern "C" __global__ void fenced_for_the_cluster(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    s[threadIdx.x] = in[threadIdx.x];
    if (!(wrong & 1))
        ptx::fence_proxy_async_generic_sync_restrict(ptx::sem_release, ptx::space_shared, ptx::scope_cluster);
    __syncthreads();
    if (threadIdx.x == 0) {
        store(out, s, 256);
    }
}

// A proxy fence is no memory fence.
extern "C" __global__ void announced(int *out, const int *in, int wrong) {
    __shared__ int value, flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        value = in[0];
        if (wrong & 1) ptx::fence_proxy_async();
        else __threadfence_block();
        atomicExch(&flag, 1);
    } else if (threadIdx.x == 32) {
        while (!atomicAdd(&flag, 0)) __nanosleep(100);
        __threadfence_block();
        out[0] = value;
    }
}

// Two buffers: of the groups of copies the last one may still read.
extern "C" __global__ void alternating(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[2][64];
    for (int round = 0; round < 6; round++) {
        if (threadIdx.x == 0) {
            if (wrong & 1) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<2>());
            else ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>());
        }
        __syncthreads();
        s[round % 2][threadIdx.x] = in[threadIdx.x] + round;
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (threadIdx.x == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + 64 * round, s[round % 2], 256);
            ptx::cp_async_bulk_commit_group();
        }
    }
    if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

// What a copy has brought, another takes away, without a store between them.
extern "C" __global__ void through(int *out, const int *in, int wrong) {
    __shared__ alignas(16) int s[64];
    __shared__ block_barrier bar;
    if (threadIdx.x != 0) return;
    init(&bar, 1);
    fetch(s, in, bar);
    if (!(wrong & 1)) bar.wait_parity(0);
    store(out, s, 256);
}

// Warp 0 fills a ring of three buffers from rows, which the other warps add up.
extern "C" __global__ void ring(int *out, const int *in, int wrong) {
    __shared__ int s[3][32];
    __shared__ block_barrier full[3], empty[3];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rows = 12;
    if (threadIdx.x == 0)
        for (int stage = 0; stage < 3; stage++) {
            init(full + stage, 32);
            init(empty + stage, blockDim.x - (wrong == 2 ? 64 : 32));
        }
    __syncthreads();
    if (warp == 0) {
        for (int row = 0; row < rows; row++) {
            // 1: no wait for one of the buffers
            if (row >= 3 && !(wrong == 1 && row % 3 == 1)) empty[row % 3].wait_parity((row / 3 - 1) & 1);
            s[row % 3][lane] = in[row * 32 + lane];
            (void)full[row % 3].arrive();
        }
        return;
    }
    int sum = 0;
    for (int row = 0; row < rows; row++) {
        full[row % 3].wait_parity((row / 3) & 1);
        if (wrong == 3) (void)empty[row % 3].arrive();   // 3: an arrival before the read
        sum += s[row % 3][lane];
        // 2: a warp that doesn't arrive, the last one, whose reads are remembered
        if (wrong != 3 && !(wrong == 2 && warp == 3)) (void)empty[row % 3].arrive();
    }
    out[threadIdx.x] = sum;
}

// Warp 0 arrives for the second phase, which isn't complete, before warp 1 has waited for the first.
extern "C" __global__ void next_phase(int *out, const int *in, int wrong) {
    __shared__ int s[32];
    __shared__ block_barrier bar, later;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        init(&bar, 64);
        init(&later, 32);
    }
    __syncthreads();
    (void)bar.arrive();
    if (warp == 0) {
        bar.wait_parity(0);
        s[lane] = in[lane];
        (void)bar.arrive();
        (void)later.arrive();
    } else {
        if (wrong != 1) later.wait_parity(0);
        for (int nap = 0; nap < 9; nap++) __nanosleep(1);
        bar.wait_parity(0);
        out[lane] = s[31 - lane];
    }
}

// From warp to warp, each by a barrier of its own.
extern "C" __global__ void chain(int *out, const int *in, int wrong) {
    __shared__ int s[32];
    __shared__ block_barrier bar[4];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x < 4) init(bar + threadIdx.x, 32);
    __syncthreads();
    if (warp == 0) s[lane] = in[lane];
    if (warp > 0 && !(wrong == 1 && warp == 1)) bar[warp - 1].wait_parity(0);   // 1: a link is missing
    (void)bar[warp].arrive();
    if (warp == 3) out[lane] = s[31 - lane];
}

// A barrier, then a named barrier of two warps, then a barrier.
extern "C" __global__ void named_between(int *out, const int *in, int wrong) {
    __shared__ int s[32];
    __shared__ block_barrier bar[2];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x < 2) init(bar + threadIdx.x, 32);
    __syncthreads();
    if (warp == 0) {
        s[lane] = in[lane];
        (void)bar[0].arrive();
    } else if (warp == 1) {
        bar[0].wait_parity(0);
        asm volatile("bar.sync 1, 64;" ::: "memory");
    } else if (warp == 2) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        (void)bar[1].arrive();
    } else {
        bar[1].wait_parity(0);
        out[lane] = s[31 - lane];
    }
}

// What warp 0 wrote goes by a barrier to warp 1, by a flag to warp 2, and by a barrier to warp 3.
extern "C" __global__ void flag_between(int *out, const int *in, int wrong) {
    __shared__ int s[32];
    __shared__ int flag;
    __shared__ block_barrier bar[2];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) flag = 0;
    if (threadIdx.x < 2) init(bar + threadIdx.x, 32);
    __syncthreads();
    cuda::atomic_ref<int, cuda::thread_scope_block> said(flag);
    if (warp == 0) {
        s[lane] = in[lane];
        (void)bar[0].arrive();
    } else if (warp == 1) {
        bar[0].wait_parity(0);
        __syncwarp();
        if (lane == 0) said.store(1, cuda::memory_order_release);
    } else if (warp == 2) {
        if (lane == 0)
            while (!said.load(cuda::memory_order_acquire)) {}
        __syncwarp();
        (void)bar[1].arrive();
    } else {
        bar[1].wait_parity(0);
        out[lane] = s[31 - lane];
    }
}

// What other blocks have released comes to warp 0 by an atomic, and to warp 1 by a barrier.
extern "C" __global__ void other_blocks(int *out, const int *in, int wrong) {
    __shared__ block_barrier bar;
    int *values = out + 64, *count = out + 512;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) init(&bar, 32);
    __syncthreads();
    if (warp == 0) {
        values[blockIdx.x * 32 + lane] = in[blockIdx.x * 32 + lane];
        __threadfence();
        atomicAdd(count, 1);
        while (atomicAdd(count, 0) < 32 * gridDim.x) {}
        __threadfence();
        (void)bar.arrive();
    } else {
        bar.wait_parity(0);
        int sum = 0;
        for (int block = 0; block < gridDim.x; block++) sum += values[block * 32 + 31 - lane];
        if (blockIdx.x == 0) out[lane] = sum;
    }
}

// --- copies of cp.async through the libraries, all waited for: by groups, pipelines of a block and of a thread, and a
// barrier

extern "C" __global__ void groups(float* out, const float* in) {
    __shared__ float s[256];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, s, in + blockIdx.x * 256, sizeof(float) * 256);
    cg::wait(block);
    out[blockIdx.x * 256 + threadIdx.x] = s[255 - threadIdx.x];
}
extern "C" __global__ void piped(float* out, const float* in, int n) {
    __shared__ float s[2][256];
    auto block = cg::this_thread_block();
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto pipe = cuda::make_pipeline(block, &state);
    float sum = 0;
    for (int compute = 0, fetch = 0; compute < n; compute++) {
        for (; fetch < n && fetch < compute + 2; fetch++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, s[fetch % 2], in + fetch * 256, sizeof(float) * 256, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += s[compute % 2][255 - threadIdx.x];
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void threads(float* out, const float* in, int n) {
    __shared__ float s[4][256];
    auto pipe = cuda::make_pipeline();
    float sum = 0;
    int f = 0;
    for (int c = 0; c < n; c++) {
        for (; f < n && f < c + 4; f++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&s[f % 4][threadIdx.x], in + f * 256 + threadIdx.x, cuda::aligned_size_t<4>(4), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        __syncthreads();
        sum += s[c % 4][255 - threadIdx.x];
        __syncthreads();
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void barred(float* out, const float* in) {
    __shared__ float s[256];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    auto block = cg::this_thread_block();
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    block.sync();
    cuda::memcpy_async(block, s, in, sizeof(float) * 256, bar);
    bar.arrive_and_wait();
    out[threadIdx.x] = s[255 - threadIdx.x];
}

#include "scopes.cuh"

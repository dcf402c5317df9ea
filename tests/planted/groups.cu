// Barriers that functions make for their callers, and what parts of warps do together.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__device__ __forceinline__ void meet() {
    __syncthreads();  // BUG inlined_barriers
}
__device__ __noinline__ void meet_elsewhere(int* out) {
    __syncthreads();  // BUG called_barriers
    out[threadIdx.x] += 1;
}
extern "C" __global__ void inlined_barriers(int* out, int n) {
    if (threadIdx.x < n) {
        out[threadIdx.x] = 1;
        meet();
        out[threadIdx.x] += 1;
    } else {
        out[threadIdx.x] = 2;
        meet();
        out[threadIdx.x] += 2;
    }
}
extern "C" __global__ void called_barriers(int* out, int n) {
    if (threadIdx.x < n) {
        out[threadIdx.x] = 1;
        meet_elsewhere(out);
    } else {
        out[threadIdx.x] = 2;
        meet_elsewhere(out);
    }
}
extern "C" __global__ void groups_sync_apart(int* out, int n) {
    auto block = cg::this_thread_block();
    if (threadIdx.x < n) {
        out[threadIdx.x] = 1;
        block.sync();  // BUG groups_sync_apart
    } else {
        out[threadIdx.x] = 2;
        block.sync();  // BUG groups_sync_apart
    }
    out[threadIdx.x] += 1;
}
// The barrier is in a function that is not inlined, and some threads leave the function without reaching it.
__device__ __noinline__ void meet_if(bool here) {
    if (here) __syncthreads();  // BUG called_by_some  // BUG called_deeply_by_some
}
__device__ __noinline__ void meet_often(int times) {
    for (int i = 0; i < times; i++) __syncthreads();  // BUG called_with_unequal_counts
}
__device__ __noinline__ void meet_if_twice(bool here) {
    for (int i = 0; i < 2; i++) meet_if(here);
}
extern "C" __global__ void called_by_some(int* out, int n) {
    meet_if(threadIdx.x < n);
    out[threadIdx.x] = 1;
}
extern "C" __global__ void called_with_unequal_counts(int* out, int n) {
    meet_often(threadIdx.x < n ? 1 : 2);
    out[threadIdx.x] = 1;
}
extern "C" __global__ void called_deeply_by_some(int* out, int n) {
    meet_if_twice(threadIdx.x < n);
    out[threadIdx.x] = 1;
}
// Threads that exit after the call need not wait.
__device__ __noinline__ bool meet_and_go_on(int n) {
    if (threadIdx.x >= n) return false;
    __syncthreads();
    return true;
}
extern "C" __global__ void exits_after_a_call(int* out, int n) {
    if (!meet_and_go_on(n)) return;
    out[threadIdx.x] = 1;
    for (int i = 0; i < n; i++) meet_and_go_on(n);
}
// The second barrier's threads wait while thread 0 is still between the two.
extern "C" __global__ void waits_between_barriers(int* flag, int* out) {
    auto block = cg::this_thread_block();
    block.sync();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        while (*(volatile int*)flag == 0) {}
        out[0] = 1;
    }
    if (blockIdx.x == 1 && threadIdx.x == 0) atomicExch(flag, 1);
    block.sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
extern "C" __global__ void calls_in_turn(int* out, int n) {
    if (threadIdx.x < n) out[threadIdx.x] = 1;
    meet_elsewhere(out);
    if (threadIdx.x < n) out[threadIdx.x] = 1;
    meet_elsewhere(out);
}

// A lane that doesn't exist, has returned or is elsewhere has no value to give; a mask may name it all the same.
extern "C" __global__ void sum_of_half_a_warp(int* out, const int* in) {
    int sum = in[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);  // READ sum_of_half_a_warp
    if (threadIdx.x == 0) *out = sum;  // BUG sum_of_half_a_warp
}
extern "C" __global__ void maxima_of_warps(int* out, const int* in) {
    int most = in[threadIdx.x];
    for (int d = 16; d > 0; d /= 2)
        most = max(most, __shfl_xor_sync(0xffffffffu, most, d));  // READ maxima_of_warps
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = most;  // BUG maxima_of_warps
}
extern "C" __global__ void neighbour_elsewhere(int* out, const int* in) {
    int own = in[threadIdx.x];
    if (own > 0) out[threadIdx.x] = __shfl_sync(__activemask(), own, 0);  // BUG neighbour_elsewhere
}
extern "C" __global__ void neighbours_after_return(int* out, int n) {
    if (threadIdx.x >= n) return;
    int next = __shfl_down_sync(0xffffffffu, (int)threadIdx.x, 1);
    out[threadIdx.x] = threadIdx.x + 1 < n ? next : 0;
}
extern "C" __global__ void sum_of_a_small_block(int* out, const int* in) {
    int sum = in[threadIdx.x];
    for (int d = blockDim.x / 2; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (threadIdx.x == 0) *out = sum;
}
extern "C" __global__ void sums_of_segments(int* out, const int* in) {
    int sum = in[threadIdx.x];
    for (int d = 8; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d, 16);
    out[threadIdx.x] = sum;
}
extern "C" __global__ void sum_with_a_guard(int* out, const int* in) {
    int sum = in[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) {
        int other = __shfl_down_sync(0xffffffffu, sum, d);
        if (threadIdx.x + d < blockDim.x) sum += other;
    }
    if (threadIdx.x == 0) *out = sum;
}
extern "C" __global__ void scan_upwards(int* out, const int* in) {
    int sum = in[threadIdx.x];
    for (int d = 1; d < 32; d *= 2) {
        int other = __shfl_up_sync(0xffffffffu, sum, d);
        if (threadIdx.x % 32 >= d) sum += other;
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void whole_masks(int* out, const int* in) {
    int own = in[threadIdx.x], all = __all_sync(0xffffffffu, own >= 0), some = __any_sync(0xffffffffu, own > 5);
    __syncwarp();
    unsigned votes = __ballot_sync(0xffffffffu, own > 0), alike = __match_any_sync(0xffffffffu, own);
    out[threadIdx.x] = __reduce_add_sync(0xffffffffu, own) + all + some + __popc(votes) + __popc(alike);
}
// Blocks read what others have stored before the barrier of the whole grid.
extern "C" __global__ void grid_sync(float* a, float* b, int n, int steps) {
    auto grid = cg::this_grid();
    for (int step = 0; step < steps; step++) {
        for (int i = grid.thread_rank(); i < n; i += grid.size())
            b[i] = a[i] + a[(i + 1) % n] + a[(i + n - 1) % n];
        grid.sync();
        float* t = a; a = b; b = t;
    }
}

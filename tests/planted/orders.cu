// How blocks and warps hand data to others: the last block reads what all have stored, locks, guesses of
// compare-and-swap loops; and the same without what puts it in order.

enum Publishing { FENCE_OF_ALL, FENCE_OF_ONE, ORDERED_ATOMIC, NO_FENCE, RELAXED_ATOMIC, FENCE_TOO_LATE };

// All threads store, one of each block counts it, and the block that counts last reads all.
template <Publishing HOW> __device__ void last_block(float* out, float* partial, unsigned* count, int n) {
    __shared__ bool last;
    partial[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
    if (HOW == FENCE_OF_ALL) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (HOW == FENCE_OF_ONE) __threadfence();
        unsigned before;
        if (HOW == ORDERED_ATOMIC)
            asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(count) : "memory");
        else if (HOW == RELAXED_ATOMIC)
            asm volatile("atom.relaxed.gpu.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(count) : "memory");
        else
            before = atomicAdd(count, 1);
        if (HOW == FENCE_TOO_LATE) __threadfence();
        last = before == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += partial[i];  // BUG all_store_without_fence // BUG all_store_relaxed_count // BUG all_store_late_fence
    out[threadIdx.x] = sum;
}
#define LAST_BLOCK(NAME, HOW)                                                                     \
    extern "C" __global__ void NAME(float* out, float* partial, unsigned* count, int n) {         \
        last_block<HOW>(out, partial, count, n);                                                  \
    }
LAST_BLOCK(all_fence_then_count, FENCE_OF_ALL)
LAST_BLOCK(one_fences_for_all, FENCE_OF_ONE)
LAST_BLOCK(ordered_count, ORDERED_ATOMIC)
LAST_BLOCK(all_store_without_fence, NO_FENCE)
LAST_BLOCK(all_store_relaxed_count, RELAXED_ATOMIC)
LAST_BLOCK(all_store_late_fence, FENCE_TOO_LATE)

// The same among warps, each counting for itself.
template <Publishing HOW> __device__ void last_warp(float* out, float* partial, unsigned* count, int n) {
    unsigned lane = threadIdx.x % 32, before = 0;
    partial[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
    if (HOW == FENCE_OF_ALL) __threadfence();
    __syncwarp();
    if (lane == 0) {
        if (HOW == FENCE_OF_ONE) __threadfence();
        before = atomicAdd(count, 1);
    }
    before = __shfl_sync(0xffffffffu, before, 0);
    if (before != n / 32 - 1) return;
    float sum = 0;
#pragma unroll 1
    for (int i = lane; i < n; i += 32) sum += partial[i];  // BUG warps_without_fence
    out[lane] = sum;
}
extern "C" __global__ void warps_fence_then_count(float* out, float* partial, unsigned* count, int n) {
    last_warp<FENCE_OF_ALL>(out, partial, count, n);
}
extern "C" __global__ void one_fences_for_its_warp(float* out, float* partial, unsigned* count, int n) {
    last_warp<FENCE_OF_ONE>(out, partial, count, n);
}
extern "C" __global__ void warps_without_fence(float* out, float* partial, unsigned* count, int n) {
    last_warp<NO_FENCE>(out, partial, count, n);
}

// The same with a barrier in memory in the place of __syncthreads().
__device__ void arrive_and_wait(unsigned long long* barrier) {
    unsigned place = __cvta_generic_to_shared(barrier);
    unsigned long long arrival;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(arrival) : "r"(place) : "memory");
    unsigned complete = 0;
    while (!complete)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(complete) : "r"(place), "l"(arrival) : "memory");
}
template <bool FENCE> __device__ void last_by_barrier(float* out, float* partial, unsigned* count, int n) {
    __shared__ unsigned long long barrier;
    __shared__ bool last;
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], %1;"
                     : : "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(blockDim.x) : "memory");
    __syncthreads();
    partial[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
    arrive_and_wait(&barrier);
    if (threadIdx.x == 0) {
        if (FENCE) __threadfence();
        last = atomicAdd(count, 1) == gridDim.x - 1;
    }
    arrive_and_wait(&barrier);
    if (!last) return;
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += partial[i];  // BUG barrier_without_fence
    out[threadIdx.x] = sum;
}
extern "C" __global__ void barrier_then_fence(float* out, float* partial, unsigned* count, int n) {
    last_by_barrier<true>(out, partial, count, n);
}
extern "C" __global__ void barrier_without_fence(float* out, float* partial, unsigned* count, int n) {
    last_by_barrier<false>(out, partial, count, n);
}

// One thread takes a lock for its block.
template <bool FENCE> __device__ void locked_block(int* lock, int* data) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        if (FENCE) __threadfence();
    }
    __syncthreads();
    data[threadIdx.x] += 1;  // BUG block_unlocks_without_fence
    if (FENCE) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(lock, 0);
}
extern "C" __global__ void block_locks(int* lock, int* data) { locked_block<true>(lock, data); }
extern "C" __global__ void block_unlocks_without_fence(int* lock, int* data) { locked_block<false>(lock, data); }

// A plain load may guess what a compare-and-swap will find: a wrong guess makes the swap fail.
extern "C" __global__ void cached_guess(unsigned long long* sum, double value) {
    unsigned long long old = __ldcg(sum), seen;
    do {
        seen = old;
        old = atomicCAS(sum, seen, __double_as_longlong(value + __longlong_as_double(seen)));
    } while (seen != old);
}
extern "C" __global__ void guess_in_every_turn(float* sum, float value) {
    int* bits = (int*)sum;
    int seen;
    do seen = __ldcg(bits);
    while (atomicCAS(bits, seen, __float_as_int(value + __int_as_float(seen))) != seen);
}
extern "C" __global__ void guess_at_an_index(float* maxima, const int* index, float value) {
    int old = *(int*)&maxima[index[threadIdx.x]], seen;
    do {
        seen = old;
        old = atomicCAS((int*)&maxima[index[threadIdx.x]], seen, __float_as_int(fmaxf(value, __int_as_float(seen))));
    } while (seen != old);
}
// What decides whether to swap at all is no guess.
extern "C" __global__ void lock_tested_plainly(int* lock, int* total) {
    if (threadIdx.x != 0) return;
    while (*lock != 0 || atomicCAS(lock, 0, 1) != 0) {}  // BUG lock_tested_plainly
    __threadfence();
    atomicAdd(total, 1);
    __threadfence();
    atomicExch(lock, 0);  // BUG lock_tested_plainly
}
extern "C" __global__ void count_read_plainly(int* count, int* out) {
    atomicAdd(count, 1);  // BUG count_read_plainly
    out[blockIdx.x * blockDim.x + threadIdx.x] = *count;  // BUG count_read_plainly
}

// Barriers: plain, counting and voting ones, named ones over part of a block, arrival without waiting,
// barriers of a warp, and lanes that have left. One lane's turn is made visible to the others by each.
#include "rows.cuh"

#define ROW(name, value) PUT(value);

extern "C" __global__ void reductions(const int* a, int* out, int n) {
    LANE
    const int x = a[i];
    ROW("bar.red.popc", __syncthreads_count(x & 1)) ROW("bar.red.and", __syncthreads_and(x > -2000000000))
    ROW("bar.red.or", __syncthreads_or(x == a[0]))
    ROW("bar.red.and, false", __syncthreads_and(threadIdx.x != 5)) ROW("bar.red.or, false", __syncthreads_or(n == 0))
}

// A tree sum through shared memory; a prefix sum in place with two barriers a step.
extern "C" __global__ void exchanges(const int* a, int* out, int n) {
    LANE
    __shared__ int values[128];
    const int t = threadIdx.x;
    values[t] = a[i];
    __syncthreads();
    for (int width = 64; width > 0; width /= 2) {
        if (t < width) values[t] += values[t + width];
        __syncthreads();
    }
    ROW("sum of a block", values[0])
    __syncthreads();
    values[t] = a[i] & 255;
    __syncthreads();
    for (int step = 1; step < 128; step *= 2) {
        const int before = t >= step ? values[t - step] : 0;
        __syncthreads();
        values[t] += before;
        __syncthreads();
    }
    ROW("prefix sum", values[t])
}

// Each half of the block has its own barrier and its own pace; then the first half hands over to the second.
extern "C" __global__ void named(const int* a, int* out, int n) {
    LANE
    __shared__ int values[128];
    const int t = threadIdx.x, half = t / 64;
    values[t] = a[i];
    for (int k = 0; k < 3 + half * 4; ++k) {
        asm volatile("bar.sync %0, 64;" ::"r"(half + 1) : "memory");
        const int next = values[half * 64 + (t + 1) % 64];
        asm volatile("barrier.sync %0, 64;" ::"r"(half + 1) : "memory");
        values[t] = next * 3 + k;
    }
    __syncthreads();
    ROW("bar.sync of half a block", values[t])
    __syncthreads();
    int r = 0;
    if (half == 0) {
        values[t] = a[i] ^ 0x5555;
        asm volatile("bar.arrive 3, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 3, 128;" ::: "memory");
        r = values[t - 64] + 1;
    }
    ROW("bar.arrive and bar.sync", r)
    int count;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; bar.red.popc.u32 %0, %1, 64, p; }"
                 : "=r"(count)
                 : "r"(half + 4), "r"(a[i] & 3)
                 : "memory");
    ROW("bar.red.popc of half a block", count)
}

// Lanes that have left count as arrived.
extern "C" __global__ void exited(const int* a, int* out, int n) {
    LANE
    __shared__ int values[128];
    const int t = threadIdx.x;
    values[t] = a[i];
    __syncthreads();
    if (t >= 70 || t % 9 == 4) return;
    const int mine = values[127 - t];
    __syncthreads();
    values[t] = mine + 1;
    __syncthreads();
    ROW("barrier after exits", values[t] - values[t ^ 1])
    ROW("count after exits", __syncthreads_count(1))
}

// Barriers of a warp order what its lanes write; part of a warp may wait for itself alone.
extern "C" __global__ void warps(const int* a, int* out, int n) {
    LANE
    __shared__ int values[128];
    const int t = threadIdx.x, lane = t % 32;
    values[t] = a[i];
    __syncwarp();
    const int neighbour = values[t ^ 1];
    __syncwarp();
    values[t] = neighbour * 2;
    __syncwarp();
    ROW("bar.warp.sync", values[t / 32 * 32 + (lane + 5) % 32])
    __syncwarp();
    int r = 0;
    if (lane < 12) {
        values[t] = lane * lane + i;
        __syncwarp(0xfff);
        r = values[t / 32 * 32 + (lane + 1) % 12];
    } else if (lane >= 20) {
        values[t] = lane + i;
        __syncwarp(0xfff00000u);
        r = values[t / 32 * 32 + 20 + (lane - 20 + 3) % 12];
    }
    ROW("bar.warp.sync of part of a warp", r)
}

// Threads that wait for each other within a warp, within a block, and within the whole grid.
//
//   reverse_block      through shared memory: __syncthreads() lets no thread of the block read until all have written
//   block_votes        __syncthreads_count(), _and() and _or() are barriers that also tell each thread of the block how
//                      many threads meet a condition, whether all of them do, or whether any of them does
//   reverse_in_branch  __syncthreads() in a branch is correct if all threads of the block take the same branch
//   reverse_warp       within a warp, __syncwarp() is enough, and it is cheaper
//   warp_votes         __all_sync(), __any_sync() and __ballot_sync() tell each lane how all lanes voted.
//                      They are not memory barriers: only after __syncwarp() may other lanes read what a lane stored
//
//   smooth_step        one step for the whole grid. No barrier within an ordinary launch waits for other blocks, since
//                      some may not have started; the next launch waits for all of them
//   smooth_steps<Grid> all steps in one kernel: the grid's barrier waits for all blocks of a cooperative launch, which
//                      has no more blocks than can be resident at the same time
//
//   reverse_hasty      wrong on purpose: the barrier is missing
//   reverse_warp_hasty wrong on purpose: __syncwarp() is missing, although a warp's lanes need not run in lockstep
//   smooth_steps<Block>   wrong on purpose: __syncthreads() waits for one block only. The grid's barrier is needed
//
//   wait<Scope>        measures a barrier: each thread executes several, one after another
//
// Blocks consist of whole warps, and have BLOCK threads unless stated otherwise.

#include <cooperative_groups.h>

constexpr int BLOCK = 256;

extern "C" __global__ void reverse_block(const int* in, int* out)
{
    __shared__ int elements[BLOCK];
    int first = blockIdx.x * BLOCK;
    elements[threadIdx.x] = in[first + threadIdx.x];
    __syncthreads();
    out[first + threadIdx.x] = elements[BLOCK - 1 - threadIdx.x];
}

extern "C" __global__ void reverse_hasty(const int* in, int* out)
{
    __shared__ int elements[BLOCK];
    int first = blockIdx.x * BLOCK;
    elements[threadIdx.x] = in[first + threadIdx.x];
    out[first + threadIdx.x] = elements[BLOCK - 1 - threadIdx.x];
}

// Every second block reverses its elements. The others copy them.
extern "C" __global__ void reverse_in_branch(const int* in, int* out)
{
    __shared__ int elements[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (blockIdx.x % 2 == 0) {
        elements[threadIdx.x] = in[i];
        __syncthreads();
        out[i] = elements[BLOCK - 1 - threadIdx.x];
    } else {
        out[i] = in[i];
    }
}

extern "C" __global__ void reverse_warp(const int* in, int* out)
{
    __shared__ int elements[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    elements[threadIdx.x] = in[i];
    __syncwarp();
    out[i] = elements[threadIdx.x ^ 31];
}

extern "C" __global__ void reverse_warp_hasty(const int* in, int* out)
{
    __shared__ int elements[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    elements[threadIdx.x] = in[i];
    out[i] = elements[threadIdx.x ^ 31];
}

// Count, and, or: three results per block.
extern "C" __global__ void block_votes(const int* in, int* out)
{
    bool positive = in[blockIdx.x * BLOCK + threadIdx.x] > 0;
    int count = __syncthreads_count(positive);
    int all = __syncthreads_and(positive);
    int any = __syncthreads_or(positive);
    if (threadIdx.x == 0) {
        out[3 * blockIdx.x] = count;
        out[3 * blockIdx.x + 1] = all != 0;
        out[3 * blockIdx.x + 2] = any != 0;
    }
}

// Ballot, all, any: three results per warp.
extern "C" __global__ void warp_votes(const int* in, int* out)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    bool positive = in[i] > 0;
    unsigned lanes = __ballot_sync(0xffffffff, positive);
    int all = __all_sync(0xffffffff, positive);
    int any = __any_sync(0xffffffff, positive);
    if (threadIdx.x % 32 == 0) {
        out[3 * (i / 32)] = lanes;
        out[3 * (i / 32) + 1] = all != 0;
        out[3 * (i / 32) + 2] = any != 0;
    }
}

// Each element becomes the mean of its neighbours. The elements form a ring.
__device__ void smooth(const float* in, float* out, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = 0.5f * (in[i == 0 ? n - 1 : i - 1] + in[i == n - 1 ? 0 : i + 1]);
}

extern "C" __global__ void smooth_step(const float* in, float* out, int n)
{
    smooth(in, out, n);
}

struct Grid {
    static __device__ void sync() { cooperative_groups::this_grid().sync(); }
};

struct Block {
    static __device__ void sync() { __syncthreads(); }
};

// Alternate steps read a and write b, or read b and write a.
template <class Scope>
__global__ void smooth_steps(float* a, float* b, int n, int steps)
{
    for (int step = 0; step < steps; step++) {
        smooth(step % 2 ? b : a, step % 2 ? a : b, n);
        Scope::sync();
    }
}

struct Warp {
    static __device__ void sync() { __syncwarp(); }
};

// Stores in cycles[0] the clock cycles of 32 barriers, as thread 0 of the grid sees them.
template <class Scope>
__global__ void wait(long long* cycles)
{
    Scope::sync();
    long long begin = clock64();
    for (int round = 0; round < 32; round++)
        Scope::sync();
    long long end = clock64();
    if (blockIdx.x == 0 && threadIdx.x == 0)
        cycles[0] = end - begin;
}

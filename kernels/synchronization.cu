// Threads wait for each other in a warp, in a block, and in the whole grid.
//
//   reverse_block      through shared memory: __syncthreads() lets no thread of the block read before all have written
//   block_votes        __syncthreads_count(), _and() and _or() are barriers that also tell each thread of the block for
//                      how many, for all, or for any of its threads a condition holds
//   reverse_in_branch  __syncthreads() in a branch is right where all threads of the block take the same one
//   reverse_warp       within a warp __syncwarp() is enough, which is cheaper
//   warp_votes         __all_sync(), __any_sync() and __ballot_sync() tell each thread of the warp the same of its lanes.
//                      They are no memory barriers: what a lane has stored before, others may read only after
//                      __syncwarp()
//
//   smooth_step        one step for the whole grid. No barrier within a kernel waits for other blocks of an ordinary
//                      launch, since some may not have begun; the next launch waits for all of them
//   smooth_steps<Grid> all steps in one kernel: the grid's barrier waits for all blocks of a cooperative launch, which
//                      has only as many as run at the same time
//
//   reverse_hasty      WRONG: without the barrier
//   reverse_warp_hasty WRONG: without __syncwarp(), since the lanes of a warp need not go together
//   smooth_steps<Block>   WRONG: __syncthreads() in place of the grid's barrier waits for the own block alone
//
//   wait<Way>          how long a synchronisation takes: each thread does some, one after the other
//
// Blocks are whole warps, of BLOCK threads where nothing else is said.

#include <cooperative_groups.h>

constexpr int BLOCK = 256;

extern "C" __global__ void reverse_block(const int* in, int* out)
{
    __shared__ int numbers[BLOCK];
    int first = blockIdx.x * BLOCK;
    numbers[threadIdx.x] = in[first + threadIdx.x];
    __syncthreads();
    out[first + threadIdx.x] = numbers[BLOCK - 1 - threadIdx.x];
}

extern "C" __global__ void reverse_hasty(const int* in, int* out)
{
    __shared__ int numbers[BLOCK];
    int first = blockIdx.x * BLOCK;
    numbers[threadIdx.x] = in[first + threadIdx.x];
    out[first + threadIdx.x] = numbers[BLOCK - 1 - threadIdx.x];
}

// Every second block reverses its numbers, the others copy them.
extern "C" __global__ void reverse_in_branch(const int* in, int* out)
{
    __shared__ int numbers[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (blockIdx.x % 2 == 0) {
        numbers[threadIdx.x] = in[i];
        __syncthreads();
        out[i] = numbers[BLOCK - 1 - threadIdx.x];
    } else {
        out[i] = in[i];
    }
}

extern "C" __global__ void reverse_warp(const int* in, int* out)
{
    __shared__ int numbers[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    numbers[threadIdx.x] = in[i];
    __syncwarp();
    out[i] = numbers[threadIdx.x ^ 31];
}

extern "C" __global__ void reverse_warp_hasty(const int* in, int* out)
{
    __shared__ int numbers[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    numbers[threadIdx.x] = in[i];
    out[i] = numbers[threadIdx.x ^ 31];
}

// Count, and, or: three numbers a block.
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

// Ballot, all, any: three numbers a warp.
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

// Each number becomes the mean of its neighbours; the numbers form a ring.
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

// From a to b and back, in turn.
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

// cycles[0] becomes the clock's cycles of 32 synchronisations, as thread 0 of the grid sees them.
template <class Way>
__global__ void wait(long long* cycles)
{
    Way::sync();
    long long begin = clock64();
    for (int round = 0; round < 32; round++)
        Way::sync();
    long long end = clock64();
    if (blockIdx.x == 0 && threadIdx.x == 0)
        cycles[0] = end - begin;
}

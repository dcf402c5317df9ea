// The dot product of two arrays: one product per element, then a sum. Both arrays are read once, so the read bandwidth
// is the limit.
//
//   dot_atomic          every thread adds its product to a single total with an atomic
//   dot_tree            the products of a block are in shared memory. In each step, half of the remaining threads add
//                       the sums of the other half, with a barrier after each step; one atomic per block
//   dot_warps           the products of a warp stay in registers and are added with shuffles, without a barrier; one
//                       atomic per warp
//   dot_block           the block also adds up the sums of its warps: one barrier and one atomic per block
//   dot_grid<1>         a fixed grid strides over the arrays, four elements of each at a time
//   dot_grid<loads>     dot_grid<1> with several loads per thread from each array in flight before the first is used
//
// Wrong on purpose: each has a barrier that not all threads of a block reach the same number of times.
//
//   dot_in_branch       if (i < n) { ...; __syncthreads(); }     the threads beyond the end never reach it
//   dot_in_tree         if (tid < half) { ...; __syncthreads(); }     inside the tree's own branch
//   dot_in_loop         for (i = tid; i < n; i += threads) { ...; __syncthreads(); }     some reach it once more
//
// Blocks consist of whole warps. For a tree, the number of threads per block is a power of two, at most BLOCK. The
// total starts at zero. The arrays are aligned to 16 bytes.

#include "block_sum.cuh"

constexpr int BLOCK = 256;

__device__ float product(const float* x, const float* y, unsigned i, unsigned n)
{
    return i < n ? x[i] * y[i] : 0.0f;
}

extern "C" __global__ void dot_atomic(const float* x, const float* y, float* total, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(total, x[i] * y[i]);
}

extern "C" __global__ void dot_tree(const float* x, const float* y, float* total, unsigned n)
{
    __shared__ float sums[BLOCK];
    unsigned tid = threadIdx.x;
    // A thread beyond the end contributes a zero: it takes part in the tree and reaches each barrier.
    sums[tid] = product(x, y, blockIdx.x * blockDim.x + tid, n);
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            sums[tid] += sums[tid + half];
        __syncthreads();  // outside the branch: all threads wait, even those that add nothing
    }
    if (tid == 0)
        atomicAdd(total, sums[0]);
}

extern "C" __global__ void dot_warps(const float* x, const float* y, float* total, unsigned n)
{
    float sum = warp_sum(product(x, y, blockIdx.x * blockDim.x + threadIdx.x, n));
    if (threadIdx.x % 32 == 0)
        atomicAdd(total, sum);
}

extern "C" __global__ void dot_block(const float* x, const float* y, float* total, unsigned n)
{
    float sum = block_sum(product(x, y, blockIdx.x * blockDim.x + threadIdx.x, n));
    if (threadIdx.x == 0)
        atomicAdd(total, sum);
}

__device__ float dot_of(float4 x, float4 y)
{
    return x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}

// A block reads tiles of `loads` groups of four elements per thread. In each round, its threads load adjacent groups.
template <int loads>
__global__ void dot_grid(const float* x, const float* y, float* total, unsigned n)
{
    const float4* xs = reinterpret_cast<const float4*>(x);
    const float4* ys = reinterpret_cast<const float4*>(y);
    unsigned count = n / 4;
    unsigned tile = loads * blockDim.x;
    unsigned first = blockIdx.x * blockDim.x + threadIdx.x;

    // At most one of the last n % 4 elements, which do not fill a group.
    float sum = first < n % 4 ? x[4 * count + first] * y[4 * count + first] : 0.0f;
    unsigned start = blockIdx.x * tile;
    for (; start + tile <= count; start += gridDim.x * tile) {
        float4 a[loads];
        float4 b[loads];
        // Elements that are read once need not stay in L2.
#pragma unroll
        for (int k = 0; k < loads; k++) {
            a[k] = __ldcs(xs + start + threadIdx.x + k * blockDim.x);
            b[k] = __ldcs(ys + start + threadIdx.x + k * blockDim.x);
        }
#pragma unroll
        for (int k = 0; k < loads; k++)
            sum += dot_of(a[k], b[k]);
    }
    for (unsigned i = start + threadIdx.x; i < min(start + tile, count); i += blockDim.x)
        sum += dot_of(xs[i], ys[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        atomicAdd(total, sum);
}

extern "C" __global__ void dot_in_branch(const float* x, const float* y, float* total, unsigned n)
{
    __shared__ float sums[BLOCK];
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x + tid;
    sums[tid] = 0.0f;
    if (i < n) {
        sums[tid] = x[i] * y[i];
        __syncthreads();
    }
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            sums[tid] += sums[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        atomicAdd(total, sums[0]);
}

extern "C" __global__ void dot_in_tree(const float* x, const float* y, float* total, unsigned n)
{
    __shared__ float sums[BLOCK];
    unsigned tid = threadIdx.x;
    sums[tid] = product(x, y, blockIdx.x * blockDim.x + tid, n);
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2)
        if (tid < half) {
            sums[tid] += sums[tid + half];
            __syncthreads();
        }
    if (tid == 0)
        atomicAdd(total, sums[0]);
}

// Launched with one block.
extern "C" __global__ void dot_in_loop(const float* x, const float* y, float* total, unsigned n)
{
    __shared__ float sums[BLOCK];
    unsigned tid = threadIdx.x;
    sums[tid] = 0.0f;
    for (unsigned i = tid; i < n; i += blockDim.x) {
        sums[tid] += x[i] * y[i];
        __syncthreads();
    }
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid < half)
            sums[tid] += sums[tid + half];
        __syncthreads();
    }
    if (tid == 0)
        atomicAdd(total, sums[0]);
}

// Sum an array. Additions to a single total are performed one after another. Each variant performs fewer of them.
//
//   sum_atomic            every thread adds its element to the total with an atomic: n additions, one after another
//   sum_block             a warp adds with shuffles, and a block adds up the sums of its warps: one atomic per block
//   sum_block_cub         sum_block with CUB's block reduction (where its headers are installed)
//   sum_grid<1>           a fixed grid strides over the array, four elements at a time: few blocks, few atomics
//   sum_grid<loads>       sum_grid<1> with several loads per thread in flight before the first value is used
//   fold_partials<Sum, loads>   a block stores its sum instead of adding it; a second launch with one block adds up
//                         these sums. No atomics: the order of additions is fixed, and so is every bit of the result
//   sum_once<loads>       the two passes in one launch: the block that finishes last adds up the sums of the blocks
//   fold_partials<Minimum, loads>, <Maximum, loads>, <Magnitude, loads>   the same tree with other operations. An
//                         operation must be associative, (a o b) o c = a o (b o c), and commutative, since a thread
//                         takes elements that are far apart. It needs an identity for threads without an element
//
// Blocks consist of whole warps. The kernels with atomics need a total that starts at zero.

#include "block_sum.cuh"

#if __has_include(<cub/block/block_reduce.cuh>)
#include <cub/block/block_reduce.cuh>
#endif

struct Sum {
    static __device__ float identity() { return 0.0f; }
    static __device__ float of(float a, float b) { return a + b; }
};

struct Minimum {
    static __device__ float identity() { return __int_as_float(0x7f800000); }  // infinity
    static __device__ float of(float a, float b) { return fminf(a, b); }
};

struct Maximum {
    static __device__ float identity() { return __int_as_float(0xff800000); }  // minus infinity
    static __device__ float of(float a, float b) { return fmaxf(a, b); }
};

struct Magnitude {
    static __device__ float identity() { return 0.0f; }
    static __device__ float of(float a, float b) { return fmaxf(fabsf(a), fabsf(b)); }
};

template <class Operation>
__device__ float fold_group(float4 group)
{
    return Operation::of(Operation::of(group.x, group.y), Operation::of(group.z, group.w));
}

// The result of one thread of a fixed grid. The thread first takes at most one of the last n % 4 elements, which do not
// fill a group of four. It then loads `loads` groups at a time, one grid width apart, and finally single groups.
template <class Operation, int loads>
__device__ float strided_fold(const float* x, int n)
{
    const float4* groups = reinterpret_cast<const float4*>(x);
    unsigned count = n / 4;
    unsigned stride = gridDim.x * blockDim.x;
    unsigned first = blockIdx.x * blockDim.x + threadIdx.x;

    float result = first < n % 4 ? x[n / 4 * 4 + first] : Operation::identity();
    unsigned i = first;
    for (; i + (loads - 1) * stride < count; i += loads * stride) {
        float4 group[loads];
#pragma unroll
        for (int k = 0; k < loads; k++)
            group[k] = groups[i + k * stride];
#pragma unroll
        for (int k = 0; k < loads; k++)
            result = Operation::of(result, fold_group<Operation>(group[k]));
    }
    for (; i < count; i += stride)
        result = Operation::of(result, fold_group<Operation>(groups[i]));
    return result;
}

// The combined values of a block, computed as in `block_sum`. Only thread 0 has the result.
template <class Operation>
__device__ float block_fold(float value)
{
    __shared__ float warp_results[32];
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;

    for (int step = 16; step > 0; step /= 2)
        value = Operation::of(value, __shfl_down_sync(0xffffffff, value, step));
    if (lane == 0)
        warp_results[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = lane < blockDim.x / 32 ? warp_results[lane] : Operation::identity();
        for (int step = 16; step > 0; step /= 2)
            value = Operation::of(value, __shfl_down_sync(0xffffffff, value, step));
    }
    return value;
}

extern "C" __global__ void sum_atomic(const float* x, float* total, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(total, x[i]);
}

extern "C" __global__ void sum_block(const float* x, float* total, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = block_sum(i < n ? x[i] : 0.0f);
    if (threadIdx.x == 0)
        atomicAdd(total, sum);
}

#if __has_include(<cub/block/block_reduce.cuh>)
// A block has 256 threads.
extern "C" __global__ void sum_block_cub(const float* x, float* total, int n)
{
    using BlockReduce = cub::BlockReduce<float, 256>;
    __shared__ BlockReduce::TempStorage storage;

    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = BlockReduce(storage).Sum(i < n ? x[i] : 0.0f);
    if (threadIdx.x == 0)
        atomicAdd(total, sum);
}
#endif

template <int loads>
__global__ void sum_grid(const float* x, float* total, int n)
{
    float sum = block_sum(strided_fold<Sum, loads>(x, n));
    if (threadIdx.x == 0)
        atomicAdd(total, sum);
}

template <class Operation, int loads>
__global__ void fold_partials(const float* x, float* results, int n)
{
    float result = block_fold<Operation>(strided_fold<Operation, loads>(x, n));
    if (threadIdx.x == 0)
        results[blockIdx.x] = result;
}

// The number of blocks that have finished; zero between launches. Launches that overlap need one counter each.
__device__ unsigned finished;

template <int loads>
__global__ void sum_once(const float* x, float* sums, float* total, int n)
{
    __shared__ bool last;

    float sum = block_sum(strided_fold<Sum, loads>(x, n));
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
        // The fence makes the sum visible before the block counts as finished. atomicInc resets the counter to zero.
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    sum = 0.0f;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x)
        sum += __ldcg(sums + i);  // read from L2, since L1 may hold older values
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        *total = sum;
}

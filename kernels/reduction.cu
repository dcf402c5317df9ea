// Sum many numbers to one. Additions that wait for one another are slow; each variant has fewer of them.
//
//   sum_atomic     every thread adds its element to the one total: n additions, one after the other
//   sum_block      a warp adds by shuffles, a block by its warps' sums, and one atomic a block remains
//   sum_grid       a fixed grid strides over the array by four numbers at a time: few blocks, few atomics
//   sum_partials   as sum_grid, but a block stores its sum instead of adding it; called again on those sums with one
//                  block, it ends with the total. No atomics: the order is fixed, and so is every bit of the result
//
// Blocks are whole warps. The atomics need a total that starts at zero.

// The sum of a warp's values, in its lane 0.
__device__ float warp_sum(float value)
{
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_down_sync(0xffffffff, value, step);
    return value;
}

// The sum of a block's values, in its thread 0.
__device__ float block_sum(float value)
{
    __shared__ float warp_sums[32];
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;

    value = warp_sum(value);
    if (lane == 0)
        warp_sums[warp] = value;
    __syncthreads();
    if (warp == 0)
        value = warp_sum(lane < blockDim.x / 32 ? warp_sums[lane] : 0.0f);
    return value;
}

// What one thread of a fixed grid adds up: every so many groups of four, then one of the last three numbers.
__device__ float strided_sum(const float* x, int n)
{
    const float4* groups = reinterpret_cast<const float4*>(x);
    size_t first = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    size_t stride = size_t(gridDim.x) * blockDim.x;

    float sum = 0.0f;
    for (size_t i = first; i < n / 4; i += stride) {
        float4 group = groups[i];
        sum += (group.x + group.y) + (group.z + group.w);
    }
    if (first < n % 4)
        sum += x[n / 4 * 4 + first];
    return sum;
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

extern "C" __global__ void sum_grid(const float* x, float* total, int n)
{
    float sum = block_sum(strided_sum(x, n));
    if (threadIdx.x == 0)
        atomicAdd(total, sum);
}

extern "C" __global__ void sum_partials(const float* x, float* sums, int n)
{
    float sum = block_sum(strided_sum(x, n));
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

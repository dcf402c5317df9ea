// The sum of a block's values. Each warp adds with shuffles, and then the first warp adds up the sums of the warps.
// Only thread 0 has the result. A block consists of whole warps. A second call with the same type reuses the shared
// memory, so a barrier is needed between the two calls.

#pragma once

// The sum of a warp's values. Only lane 0 has the result.
template <class Number>
__device__ Number warp_sum(Number value)
{
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_down_sync(0xffffffff, value, step);
    return value;
}

template <class Number>
__device__ Number block_sum(Number value)
{
    __shared__ Number warp_sums[32];
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;

    value = warp_sum(value);
    if (lane == 0)
        warp_sums[warp] = value;
    __syncthreads();
    if (warp == 0)
        value = warp_sum(lane < blockDim.x / 32 ? warp_sums[lane] : Number(0));
    return value;
}

// The sum of a block's values, in its thread 0: each warp adds by shuffles, then the first warp adds the warps' sums. A
// block is whole warps. A second call with the same type reuses the shared memory, with a barrier in between.

#pragma once

// The sum of a warp's values, in its lane 0.
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

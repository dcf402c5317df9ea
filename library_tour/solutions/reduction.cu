// Sum the squares of n elements. A block has 256 threads, and the total starts at zero.

constexpr int WARPS = 256 / 32;

extern "C" __global__ void sum_of_squares(const float* x, float* total, int n)
{
    __shared__ float warp_sums[WARPS];

    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;

    float sum = i < n ? x[i] * x[i] : 0.0f;
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, step);
    if (lane == 0)
        warp_sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = lane < WARPS ? warp_sums[lane] : 0.0f;
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_down_sync(0xffffffff, sum, step);
        if (lane == 0)
            atomicAdd(total, sum);
    }
}

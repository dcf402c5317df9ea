// Count how often each side of a die came up. The counts are initially zero.

constexpr int SIDES = 6;

extern "C" __global__ void count_throws(const int* throws, unsigned* counts, int n)
{
    __shared__ unsigned mine[SIDES];

    if (threadIdx.x < SIDES)
        mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[throws[i]], 1);
    __syncthreads();
    if (threadIdx.x < SIDES)
        atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

// Count values from 0 to 7. A block has 128 threads, and the counts are initially zero.
//
// The result is right, but lanes with the same value add to the same word of shared memory.

constexpr int BINS = 8;

extern "C" __global__ void count(const int* values, unsigned* counts, int n)
{
    __shared__ unsigned of_block[BINS];

    if (threadIdx.x < BINS)
        of_block[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&of_block[values[i]], 1);
    __syncthreads();
    if (threadIdx.x < BINS)
        atomicAdd(&counts[threadIdx.x], of_block[threadIdx.x]);
}

// Count values from 0 to 7. A block has 128 threads, and the counts are initially zero.

constexpr int BINS = 8;
constexpr int WARP = 32;
constexpr int WARPS = 4;

extern "C" __global__ void count(const int* values, unsigned* counts, int n)
{
    // Each lane's copy is in its own bank.
    __shared__ unsigned copies[BINS][WARP];

    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int bin = warp; bin < BINS; bin += WARPS)
        copies[bin][lane] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&copies[values[i]][lane], 1);
    __syncthreads();
    for (int bin = warp; bin < BINS; bin += WARPS) {
        unsigned sum = __reduce_add_sync(0xffffffff, copies[bin][lane]);
        if (lane == 0)
            atomicAdd(&counts[bin], sum);
    }
}

// Find the largest of n elements and the index of its first occurrence, as a 64-bit key: the value in the upper half,
// and 0xffffffff - index in the lower half. A block has 256 threads, and the key starts at zero.

constexpr int WARP = 32;
constexpr int WARPS = 8;

__device__ unsigned long long key_of(unsigned value, unsigned index)
{
    return (unsigned long long)(value) << 32 | (0xffffffff - index);
}

// The largest key of a warp, in lane 0.
__device__ unsigned long long largest_of_warp(unsigned long long key)
{
    for (int step = WARP / 2; step > 0; step /= 2)
        key = max(key, __shfl_down_sync(0xffffffff, key, step));
    return key;
}

extern "C" __global__ void first_largest(const unsigned* x, unsigned long long* key, int n)
{
    __shared__ unsigned long long of_warp[WARPS];

    unsigned long long seen = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        seen = max(seen, key_of(x[i], i));
    seen = largest_of_warp(seen);
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if (lane == 0)
        of_warp[warp] = seen;
    __syncthreads();
    if (warp == 0) {
        seen = largest_of_warp(lane < WARPS ? of_warp[lane] : 0);
        if (lane == 0)
            atomicMax(key, seen);
    }
}

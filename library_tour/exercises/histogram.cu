// Count how often each side of a die came up. The counts are initially zero.
//
// The result is right, but the kernel performs one atomic addition to global memory per throw.

extern "C" __global__ void count_throws(const int* throws, unsigned* counts, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&counts[throws[i]], 1);
}

// Find the largest of n integers. `largest` is initially the smallest integer.

extern "C" __global__ void largest(const int* x, int* largest, int n)
{
    int seen = -2147483647 - 1;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        seen = max(seen, x[i]);
    atomicMax(largest, seen);
}

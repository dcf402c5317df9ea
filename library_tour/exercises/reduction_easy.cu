// Find the largest of n integers. `largest` is initially the smallest integer.
//
// The result is right, but every element costs an atomic operation.

extern "C" __global__ void largest(const int* x, int* largest, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicMax(largest, x[i]);
}

// Find the largest of n elements and the index of its first occurrence, as a 64-bit key: the value in the upper half,
// and 0xffffffff - index in the lower half. A block has 256 threads, and the key starts at zero.
//
// The result is right, but every element costs an atomic operation.

__device__ unsigned long long key_of(unsigned value, unsigned index)
{
    return (unsigned long long)(value) << 32 | (0xffffffff - index);
}

extern "C" __global__ void first_largest(const unsigned* x, unsigned long long* key, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicMax(key, key_of(x[i], i));
}

// Find the largest of n elements and the first index at which it is, as a key: the value in the upper half of 64 bits,
// and 0xffffffff - index in the lower half. A block has 256 threads, and the key is zero at the beginning.
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

// The sum of two vectors.
//
//   vector_add   one thread per element; the grid is rounded up to whole blocks, so the kernel tests its index

extern "C" __global__ void vector_add(const float* a, const float* b, float* sum, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sum[i] = a[i] + b[i];
}

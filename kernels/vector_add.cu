// The whole life of a computation, with the simplest kernel there is.
//
//   vector_add   one thread adds one pair; the grid is rounded up to whole blocks, so the last block checks its bounds

extern "C" __global__ void vector_add(const float* a, const float* b, float* sum, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sum[i] = a[i] + b[i];
}

// Set *found to 1 if any of n elements is above a limit. It is initially zero.

extern "C" __global__ void any_above(const float* x, float limit, int* found, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool any = __syncthreads_or(i < n && x[i] > limit);
    if (any && threadIdx.x == 0)
        atomicOr(found, 1);
}

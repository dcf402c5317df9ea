// Set *found to 1 if any of n elements is above a limit. It is zero at the beginning.
//
// The result is right, but every thread that finds one makes an atomic operation.

extern "C" __global__ void any_above(const float* x, float limit, int* found, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > limit)
        atomicOr(found, 1);
}

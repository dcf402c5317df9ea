// Set *found to 1 if any of n elements is above a limit. It is initially zero.
//
// The result is right, but every thread that finds one executes an atomic operation.

extern "C" __global__ void any_above(const float* x, float limit, int* found, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > limit)
        atomicOr(found, 1);
}

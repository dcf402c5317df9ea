// Write random numbers greater than 0 and at most 1.
//
// For now, each thread continues its own sequence, so the numbers depend on the number of threads.

#include <curand_kernel.h>

extern "C" __global__ void fill(float* out, unsigned long long seed, int n)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, thread, 0, &state);
    for (int i = thread; i < n; i += gridDim.x * blockDim.x)
        out[i] = curand_uniform(&state);
}

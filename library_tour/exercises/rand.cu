// Write random numbers above 0 and up to 1.
//
// So far each thread continues a sequence of its own, so that the numbers depend on how many threads there are.

#include <curand_kernel.h>

extern "C" __global__ void fill(float* out, unsigned long long seed, int n)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, thread, 0, &state);
    for (int i = thread; i < n; i += gridDim.x * blockDim.x)
        out[i] = curand_uniform(&state);
}

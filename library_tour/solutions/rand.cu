// Write random numbers greater than 0 and at most 1. out[i] follows from the seed and i, whatever the launch's shape.

#include <curand_kernel.h>

extern "C" __global__ void fill(float* out, unsigned long long seed, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        curandStatePhilox4_32_10_t state;
        curand_init(seed, i, 0, &state);
        out[i] = curand_uniform(&state);
    }
}

// Write random numbers greater than 0 and at most 1. out[i] depends only on the seed and i, not on the launch shape.

#include <curand_kernel.h>

extern "C" __global__ void fill(float* out, unsigned long long seed, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        curandStatePhilox4_32_10_t state;
        curand_init(seed, i, 0, &state);
        out[i] = curand_uniform(&state);
    }
}

// cuRAND's generators on the device: Philox and XORWOW, bits and uniform numbers, skipped ahead by sequence
// and by offset, and normal numbers, whose logarithm and sine are approximate.
#include <curand_kernel.h>

template <class State>
__device__ void draw(unsigned long long seed, unsigned* bits, float* uniform, double* doubles, float* normal, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    State state;
    curand_init(seed, i, i % 3 * 5, &state);
    for (int k = 0; k < 4; ++k) bits[k * n + i] = curand(&state);
    for (int k = 0; k < 2; ++k) uniform[k * n + i] = curand_uniform(&state);
    doubles[i] = curand_uniform_double(&state);
    skipahead(1000 + i, &state);
    bits[4 * n + i] = curand(&state);
    for (int k = 0; k < 2; ++k) normal[k * n + i] = curand_normal(&state);
}

extern "C" __global__ void philox(unsigned long long seed, unsigned* bits, float* uniform, double* doubles,
                                  float* normal, uint4* four, int n) {
    draw<curandStatePhilox4_32_10_t>(seed, bits, uniform, doubles, normal, n);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(seed + 1, 7, i, &state);
    four[i] = curand4(&state);
}

extern "C" __global__ void xorwow(unsigned long long seed, unsigned* bits, float* uniform, double* doubles,
                                  float* normal, int n) {
    draw<curandState>(seed, bits, uniform, doubles, normal, n);
}

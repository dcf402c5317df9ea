// cuRAND's device functions, which need cuRAND's headers, and an integral that random points estimate.
//
//   bits<State, streams>       the numbers at given positions in the host's sequence: position i is number i / streams
//                              of stream i % streams
//   bits_philox                the same for Philox, whose streams yield four numbers at a time
//   uniform<State>             each thread advances its own state; only the results are in memory
//   integrand                  the product of (|4 x - 2| + a) / (1 + a) for a = 0, 1, 2...: its integral over the unit
//                              cube is 1

#if __has_include(<curand_kernel.h>)
#include <curand_kernel.h>

template <class State, int streams>
__global__ void bits(unsigned* out, const int* places, unsigned long long seed, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    State state;
    curand_init(seed, places[i] % streams, places[i] / streams, &state);
    out[i] = curand(&state);
}

extern "C" __global__ void bits_philox(uint4* out, const int* places, unsigned long long seed, int groups, int streams)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= groups)
        return;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, places[i] % streams, places[i] / streams * 4ull, &state);
    out[i] = curand4(&state);
}

template <class State>
__global__ void uniform(float* out, unsigned long long seed, int n)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    State state;
    curand_init(seed, thread, 0, &state);
    for (int i = thread; i < n; i += gridDim.x * blockDim.x)
        out[i] = curand_uniform(&state);
}

// Philox produces four numbers at a time.
extern "C" __global__ void uniform_philox(float4* out, unsigned long long seed, int groups)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, thread, 0, &state);
    for (int i = thread; i < groups; i += gridDim.x * blockDim.x)
        out[i] = curand_uniform4(&state);
}

#endif

// Coordinate k of point i is at k n + i: the order in which a quasi-random generator writes n points.
extern "C" __global__ void integrand(const float* points, float* values, int n, int dimensions)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float product = 1.0f;
    for (int k = 0; k < dimensions; k++)
        product *= (fabsf(4.0f * points[size_t(k) * n + i] - 2.0f) + k) / (1.0f + k);
    values[i] = product;
}

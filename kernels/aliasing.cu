// Two pointers alias if they point to the same memory. Where they might, the compiler has to load a value again after
// each store through another pointer, and may not move a load before a store. __restrict__ promises that they do not.
//
//   four_results            four results of the same two numbers, through plain pointers: a and b are loaded for each
//   four_results_restrict   the same expressions with __restrict__: a and b are loaded once
//
//   weigh                   out[i] += weight * in[...] for PLANES planes: out[i] is stored in each pass, and no load of a
//                           later pass may begin before that store
//   weigh_restrict          the same with __restrict__: the sum stays in a register, and all loads may begin at once
//   weigh_variable          the sum in a variable of the thread's own, which no pointer reaches; plain pointers
//
//   reread_float            stores an int and then a float at the same address, and loads the int again. C++ says that
//                           pointers to different types do not alias (strict aliasing), so that the compiler may take
//                           the int that it has stored; nvcc's and NVRTC's device code loads it
//   reread_char             the same with a char, which may be a part of any object: it has to be loaded
//
// The functions at the end are for a host's C++ compiler (c++ -x c++ kernels/aliasing.cu).

#ifdef __CUDACC__

constexpr int PLANES = 16;

// results has four planes of n numbers.
extern "C" __global__ void four_results(const float* a, const float* b, float* results, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        results[i] = a[i] + b[i];
        results[n + i] = a[i] - b[i];
        results[2 * n + i] = a[i] * b[i];
        results[3 * n + i] = fmaxf(a[i], b[i]);
    }
}

extern "C" __global__ void four_results_restrict(const float* __restrict__ a, const float* __restrict__ b,
                                                 float* __restrict__ results, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        results[i] = a[i] + b[i];
        results[n + i] = a[i] - b[i];
        results[2 * n + i] = a[i] * b[i];
        results[3 * n + i] = fmaxf(a[i], b[i]);
    }
}

// in has PLANES planes of n numbers, and weights one number a plane.
extern "C" __global__ void weigh(const float* in, const float* weights, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[i] = 0.0f;
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++)
        out[i] += weights[plane] * in[size_t(plane) * n + i];
}

extern "C" __global__ void weigh_restrict(const float* __restrict__ in, const float* __restrict__ weights,
                                          float* __restrict__ out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    out[i] = 0.0f;
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++)
        out[i] += weights[plane] * in[size_t(plane) * n + i];
}

extern "C" __global__ void weigh_variable(const float* in, const float* weights, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++)
        sum += weights[plane] * in[size_t(plane) * n + i];
    out[i] = sum;
}

extern "C" __global__ void reread_float(int* whole, float* real, int* found)
{
    *whole = 1;
    *real = 0.0f;
    *found = *whole;
}

extern "C" __global__ void reread_char(int* whole, signed char* byte, int* found)
{
    *whole = 1;
    *byte = 0;
    *found = *whole;
}

#else

extern "C" int host_reread_float(int* whole, float* real)
{
    *whole = 1;
    *real = 0.0f;
    return *whole;
}

extern "C" int host_reread_char(int* whole, signed char* byte)
{
    *whole = 1;
    *byte = 0;
    return *whole;
}

#endif

// Two pointers alias if they point to the same memory. Where they might, the compiler must load a value again after each
// store through another pointer, and may not move a load ahead of a store. __restrict__ promises that they do not.
//
//   four_results            four results of the same two elements, through plain pointers: a and b are loaded for each
//   four_results_restrict   the same expressions with __restrict__: a and b are loaded once
//
//   weigh                   out[i] += weight * in[...] for PLANES planes: out[i] is stored in each iteration, and no
//                           load of a later iteration may be issued before that store
//   weigh_restrict          the same expressions with __restrict__: the sum stays in a register, and all loads may be in
//                           flight together
//   weigh_variable          plain pointers, with the sum in a local variable that no pointer can reach
//
//   reread_float            stores an int and then a float at the same address, and loads the int again. In C++,
//                           pointers to different types do not alias (strict aliasing), so the compiler may use the int
//                           that it has stored. Device code from nvcc and NVRTC loads it
//   reread_char             the same with a char*, which may access any object: the int must be loaded
//
// The functions at the end are for the host's C++ compiler (c++ -x c++ kernels/aliasing.cu).

#ifdef __CUDACC__

constexpr int PLANES = 16;

// results has four planes of n elements.
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

// `in` has PLANES planes of n elements, and `weights` has one element per plane.
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

extern "C" __global__ void reread_float(int* whole, float* real, int* reread)
{
    *whole = 1;
    *real = 0.0f;
    *reread = *whole;
}

extern "C" __global__ void reread_char(int* whole, char* byte, int* reread)
{
    *whole = 1;
    *byte = 0;
    *reread = *whole;
}

#else

extern "C" int host_reread_float(int* whole, float* real)
{
    *whole = 1;
    *real = 0.0f;
    return *whole;
}

extern "C" int host_reread_char(int* whole, char* byte)
{
    *whole = 1;
    *byte = 0;
    return *whole;
}

#endif

// a = f(a, b) for every element, 256 times over. The time depends on how often the arrays pass through memory, and then
// on the number of instructions in f.
//
//   map_once     one application: 256 launches read and write the array 256 times
//   map_memory   the loop is inside the kernel, in the obvious way: a[i] = f(a[i], b[i]). Both pointers might point to
//                the same array, so the compiler must store a[i] and reload b[i] in every pass
//   map_loop     both values are read into variables before the loop. They stay in registers, and memory is read and
//                written once. With __restrict__ on both pointers, map_memory would become this
//
// Each kernel has f in two forms: Pow, and Product with c * c instead of pow(c, 2), a replacement that the compiler
// does not make. Under --use_fast_math, sin, cos and sqrt each become one instruction of the special-function unit. pow
// becomes a logarithm and a power of two, so a negative base gives NaN; c * c is still right.

struct Pow {
    static __device__ float square(float c) { return powf(c, 2.0f); }
};

struct Product {
    static __device__ float square(float c) { return c * c; }
};

template <class Way>
__device__ float f(float x, float y)
{
    return sinf(cosf(sinf(sqrtf(Way::square(cosf(x * x + y * y))))));
}

template <class Way>
__global__ void map_once(float* a, const float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = f<Way>(a[i], b[i]);
}

template <class Way>
__global__ void map_memory(float* a, const float* b, int n, int passes)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    for (int pass = 0; pass < passes; pass++)
        a[i] = f<Way>(a[i], b[i]);
}

template <class Way>
__global__ void map_loop(float* a, const float* b, int n, int passes)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = a[i];
    float y = b[i];
    for (int pass = 0; pass < passes; pass++)
        x = f<Way>(x, y);
    a[i] = x;
}

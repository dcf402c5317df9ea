// a = f(a, b) for every element, 256 times over. What decides is how often the array passes through memory, and then
// how many instructions f takes.
//
//   map_once            one application: as many launches as passes, and as many journeys to memory and back
//   map_loop<Pow>       the passes in a loop inside the kernel: a stays in a register, memory sees it once
//   map_loop<Product>   the same with c * c in place of pow(c, 2), which the compiler does not replace by itself
//
// Compiled a second time with --use_fast_math, sin, cos and sqrt become one instruction each of the special-function
// unit. pow becomes two of them, a logarithm and a power of two, and so NaN for a negative number: there c * c is right.

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

extern "C" __global__ void map_once(float* a, const float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = f<Pow>(a[i], b[i]);
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

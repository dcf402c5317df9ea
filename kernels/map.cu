// a = f(a, b) for every element, applied 256 times. The time depends on how often the array passes through memory, and
// then on how many instructions f takes.
//
//   map_once            one application: 256 launches read and write the array 256 times
//   map_loop<Pow>       the loop is inside the kernel: a stays in a register, and memory is read and written once
//   map_loop<Product>   the same with c * c in place of pow(c, 2), which the compiler does not replace by itself
//
// Compiled a second time with --use_fast_math, sin, cos and sqrt become one instruction each of the special-function
// unit. pow becomes two, a logarithm and a power of two, and so gives NaN for a negative number; c * c remains right.

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

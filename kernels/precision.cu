// Rounding with fused multiply-adds and with the compiler's flags, in float and in double.
//
//   apply<MultiplyAdd>       a b + c: one instruction that rounds once, unless --fmad=false
//   apply<SeparateRounding>  a b + c with functions that are never fused: rounds the product, then the sum
//   apply<Multiply>          a b: with --ftz=true results below the smallest normal number become 0
//   apply<Divide>            a / b: rounded correctly, unless --prec-div=false
//   apply<SquareRoot>        sqrt(b): rounded correctly, unless --prec-sqrt=false
//   apply<Sine>              sin(b): with --use_fast_math, one instruction of the special-function unit
//   drift                    steps of x = x x + c, each of which inherits the rounding errors of those before it
//
// Each thread of `apply` processes four elements. It applies the function `rounds` times, each time to the previous
// result: once for the test, and many times for the timing.

template <class Float>
struct MultiplyAdd {
    using Number = Float;
    static __device__ Float of(Float a, Float b, Float c) { return a * b + c; }
};

struct SeparateRounding {
    using Number = float;
    static __device__ float of(float a, float b, float c) { return __fadd_rn(__fmul_rn(a, b), c); }
};

struct Multiply {
    using Number = float;
    static __device__ float of(float a, float b, float) { return a * b; }
};

template <class Float>
struct Divide {
    using Number = Float;
    static __device__ Float of(Float a, Float b, Float) { return a / b; }
};

template <class Float>
struct SquareRoot {
    using Number = Float;
    static __device__ Float of(Float, Float b, Float) { return sqrt(b); }
};

struct Sine {
    using Number = float;
    static __device__ float of(float, float b, float) { return sinf(b); }
};

template <class Function, class Number = typename Function::Number>
__global__ void apply(const Number* a, const Number* b, const Number* c, Number* out, int n, int rounds)
{
    // Four independent chains, so that the next instruction need not wait for the result of the previous one.
    constexpr int own = 4;
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    int threads = gridDim.x * blockDim.x;
    Number factor[own], result[own], term[own];
#pragma unroll
    for (int k = 0; k < own; k++) {
        int i = min(first + k * threads, n - 1);
        factor[k] = a[i];
        result[k] = b[i];
        term[k] = c[i];
    }
    for (int round = 0; round < rounds; round++)
#pragma unroll
        for (int k = 0; k < own; k++)
            result[k] = Function::of(factor[k], result[k], term[k]);
#pragma unroll
    for (int k = 0; k < own; k++)
        if (first + k * threads < n)
            out[first + k * threads] = result[k];
}

// Row s of `out` has the values after s + 1 steps.
template <class Number>
__global__ void drift(const Number* start, Number* out, Number term, int n, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Number x = start[i];
    for (int step = 0; step < steps; step++) {
        x = x * x + term;
        out[step * n + i] = x;
    }
}

// Generic algorithms and the iterators of CCCL (CUDA Core Compute Libraries). An algorithm is written once, for
// anything that can be indexed. Iterators compute its inputs when it reads them, or change its results when it writes.
//
// Newton's law of cooling: a step computes temp + k (ambient - temp) for each element.
//
//   step_by_hand     a kernel for this one step
//   step_transform   the generic algorithm `transform`, which takes the step as a function object
//   step_span        a kernel with cuda::std::span, an array that knows its length; cuda::ceil_div divides up the work
//   step_mdspan      a kernel with cuda::std::mdspan, which gives the array rows and columns
//
// The largest |a - b| of two arrays, found by the generic algorithm `fold_maximum`:
//
//   difference_temporary, then maximum   the differences go to a temporary array, which is then read back
//   maximum_counted      counting_iterator and transform_iterator: i becomes |a[i] - b[i]|, no temporary array
//   maximum_zipped       zip_iterator and transform_iterator: the pair (a[i], b[i]) becomes |a[i] - b[i]|
//   maximum_by_four      one hand-written pass with 16-byte loads, which iterators over single elements do not issue
//
// Small kernels show what each iterator does: doubled (transform_iterator), halved (transform_output_iterator), counted
// (counting_iterator), paired (zip_iterator).
//
// NVRTC compiles these headers as nvcc does. The iterators are Thrust's; since CCCL 3.1 the same ones are in
// <cuda/iterator>, under cuda::. Where the headers are not installed, only the kernels written by hand are compiled.

// As in Thrust and CUB: any input, any output, any function.
template <class Input, class Output, class Function>
__device__ void transform(Input in, Output out, int n, Function function)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = function(in[i]);
}

struct Cooling {
    float ambient;
    float part;

    __device__ float operator()(float temperature) const { return temperature + part * (ambient - temperature); }
};

extern "C" __global__ void step_by_hand(float* temperatures, float ambient, float part, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        temperatures[i] += part * (ambient - temperatures[i]);
}

extern "C" __global__ void step_transform(float* temperatures, float ambient, float part, int n)
{
    transform(temperatures, temperatures, n, Cooling{ambient, part});
}

// Replace the total with the largest value of the warp, if that is larger. No value is negative, and the bits of such
// floats sort in the same order as the floats, so an atomic on unsigned integers will do. The total starts at zero.
__device__ void keep_largest(float largest, unsigned* total)
{
    unsigned most = __reduce_max_sync(0xffffffff, __float_as_uint(largest));
    if (threadIdx.x % 32 == 0 && most > 0)
        atomicMax(total, most);
}

// Find the largest of n non-negative elements of anything that can be indexed, in a grid-stride loop with four loads in
// flight.
template <class Input>
__device__ void fold_maximum(Input in, unsigned* total, int n)
{
    int threads = gridDim.x * blockDim.x;
    float largest = 0.0f;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < n - 3 * threads; i += 4 * threads)
        largest = fmaxf(fmaxf(fmaxf(largest, in[i]), fmaxf(in[i + threads], in[i + 2 * threads])), in[i + 3 * threads]);
    for (; i < n; i += threads)
        largest = fmaxf(largest, in[i]);
    keep_largest(largest, total);
}

extern "C" __global__ void difference_temporary(const float* a, const float* b, float* difference, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        difference[i] = fabsf(a[i] - b[i]);
}

extern "C" __global__ void maximum(const float* x, unsigned* total, int n)
{
    fold_maximum(x, total, n);
}

__device__ float largest_of(float4 a, float4 b)
{
    return fmaxf(fmaxf(fabsf(a.x - b.x), fabsf(a.y - b.y)), fmaxf(fabsf(a.z - b.z), fabsf(a.w - b.w)));
}

extern "C" __global__ void maximum_by_four(const float* a, const float* b, unsigned* total, int n)
{
    constexpr int loads = 4;  // per array, all in flight before the first element is used
    const float4* fours_a = reinterpret_cast<const float4*>(a);
    const float4* fours_b = reinterpret_cast<const float4*>(b);
    int threads = gridDim.x * blockDim.x;
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    int rest = n / 4 * 4 + first;
    float largest = rest < n ? fabsf(a[rest] - b[rest]) : 0.0f;
    int i = first;
    for (; i < n / 4 - (loads - 1) * threads; i += loads * threads) {
        float4 from_a[loads];
        float4 from_b[loads];
#pragma unroll
        for (int k = 0; k < loads; k++) {
            from_a[k] = fours_a[i + k * threads];
            from_b[k] = fours_b[i + k * threads];
        }
#pragma unroll
        for (int k = 0; k < loads; k++)
            largest = fmaxf(largest, largest_of(from_a[k], from_b[k]));
    }
    for (; i < n / 4; i += threads)
        largest = fmaxf(largest, largest_of(fours_a[i], fours_b[i]));
    keep_largest(largest, total);
}

#if __has_include(<thrust/iterator/zip_iterator.h>)
#include <cuda/cmath>
#include <cuda/std/cstddef>
#include <cuda/std/mdspan>
#include <cuda/std/span>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>

// A grid-stride loop over the span. `ceil_div` computes the maximum number of elements per thread.
extern "C" __global__ void step_span(float* temperatures, float ambient, float part, int n)
{
    cuda::std::span<float> all{temperatures, cuda::std::size_t(n)};
    Cooling cooling{ambient, part};
    int threads = gridDim.x * blockDim.x;
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < cuda::ceil_div(n, threads); k++) {
        size_t i = first + size_t(k) * threads;
        if (i < all.size())
            all[i] = cooling(all[i]);
    }
}

// Blocks loop over the rows and threads over the columns. No index into the whole array is computed by hand.
extern "C" __global__ void step_mdspan(float* temperatures, float ambient, float part, int rows, int columns)
{
    cuda::std::mdspan<float, cuda::std::dextents<int, 2>> plate(temperatures, rows, columns);
    Cooling cooling{ambient, part};
    for (int row = blockIdx.x; row < plate.extent(0); row += gridDim.x)
        for (int column = threadIdx.x; column < plate.extent(1); column += blockDim.x)
            plate(row, column) = cooling(plate(row, column));
}

struct Difference {
    template <class Pair>
    __device__ float operator()(Pair pair) const
    {
        return fabsf(thrust::get<0>(pair) - thrust::get<1>(pair));
    }
};

struct DifferenceAt {
    const float* a;
    const float* b;

    __device__ float operator()(int i) const { return fabsf(a[i] - b[i]); }
};

extern "C" __global__ void maximum_counted(const float* a, const float* b, unsigned* total, int n)
{
    fold_maximum(thrust::make_transform_iterator(thrust::counting_iterator<int>(0), DifferenceAt{a, b}), total, n);
}

extern "C" __global__ void maximum_zipped(const float* a, const float* b, unsigned* total, int n)
{
    fold_maximum(thrust::make_transform_iterator(thrust::make_zip_iterator(a, b), Difference{}), total, n);
}

struct Twice {
    __device__ float operator()(float x) const { return 2 * x; }
};

struct Half {
    __device__ float operator()(float x) const { return x / 2; }
};

struct Same {
    __device__ float operator()(float x) const { return x; }
};

struct Sum {
    template <class Pair>
    __device__ float operator()(Pair pair) const
    {
        return thrust::get<0>(pair) + thrust::get<1>(pair);
    }
};

extern "C" __global__ void doubled(const float* in, float* out, int n)
{
    transform(thrust::make_transform_iterator(in, Twice{}), out, n, Same{});
}

extern "C" __global__ void halved(const float* in, float* out, int n)
{
    transform(in, thrust::make_transform_output_iterator(out, Half{}), n, Same{});
}

extern "C" __global__ void counted(float* out, int n)
{
    transform(thrust::counting_iterator<int>(0), out, n, Same{});
}

extern "C" __global__ void paired(const float* a, const float* b, float* out, int n)
{
    transform(thrust::make_zip_iterator(a, b), out, n, Sum{});
}

#endif

// Find the first NaN in a large array. A NaN has all exponent bits set and a nonzero mantissa. Without the sign, its
// bits form an integer greater than that of infinity. A thread that finds a NaN lowers *first to its index; *first
// starts at n. An array without NaNs is read once and nothing is written, so the read bandwidth is the limit.
//
//   first_nan<Isnan<Number>>         one thread per element, with CUDA's isnan(); with and without --use_fast_math
//   first_nan<Above<Number>>         the same with an integer comparison, which no floating-point option affects
//   first_nan<Mantissa<digits>>      doubles, with a mask of `digits` hexadecimal digits for the mantissa. It needs 13:
//                                    12 omit the highest four bits, and most NaNs have only the highest bit set
//   first_nan_grid<Number, loads>    a fixed grid strides over the array; each thread keeps several 16-byte loads in
//                                    flight and tests their elements together
//
// The grids cover elements or groups of 16 bytes. The arrays are aligned to 16 bytes.
//
// A host C++ compiler compiles the end of this file (c++ -x c++ kernels/nan_check.cu).

#ifdef __CUDACC__

template <class Number>
struct Layout;

template <>
struct Layout<float> {
    using Bits = unsigned;
    static constexpr Bits magnitude = 0x7fffffff, infinity = 0x7f800000;
};

template <>
struct Layout<double> {
    using Bits = unsigned long long;
    static constexpr Bits magnitude = 0x7fffffffffffffff, infinity = 0x7ff0000000000000;
};

__device__ unsigned bits_of(float number)
{
    return __float_as_uint(number);
}

__device__ unsigned long long bits_of(double number)
{
    return __double_as_longlong(number);
}

template <class Number_>
struct Isnan {
    using Number = Number_;
    static __device__ bool test(Number number) { return isnan(number); }
};

template <class Number_>
struct Above {
    using Number = Number_;
    static __device__ bool test(Number number)
    {
        return (bits_of(number) & Layout<Number>::magnitude) > Layout<Number>::infinity;
    }
};

template <int digits>
struct Mantissa {
    using Number = double;
    static __device__ bool test(double number)
    {
        constexpr unsigned long long infinity = Layout<double>::infinity, mask = (1ULL << 4 * digits) - 1;
        return (bits_of(number) & infinity) == infinity && (bits_of(number) & mask) != 0;
    }
};

template <class Test>
__global__ void first_nan(const typename Test::Number* x, unsigned* first, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && Test::test(x[i]))
        atomicMin(first, i);
}

// The elements of one load.
template <class Number>
struct alignas(16) Group {
    static constexpr int size = 16 / sizeof(Number);
    typename Layout<Number>::Bits bits[size];
};

template <class Number>
__device__ void look(Group<Number> group, unsigned start, unsigned* first)
{
#pragma unroll
    for (int k = Group<Number>::size - 1; k >= 0; k--)
        if ((group.bits[k] & Layout<Number>::magnitude) > Layout<Number>::infinity)
            atomicMin(first, start + k);
}

template <class Number, int loads>
__global__ void first_nan_grid(const Number* x, unsigned* first, unsigned n)
{
    using Bits = typename Layout<Number>::Bits;
    constexpr int size = Group<Number>::size;
    const Group<Number>* groups = reinterpret_cast<const Group<Number>*>(x);
    unsigned count = n / size;
    unsigned stride = gridDim.x * blockDim.x;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    // The last elements, which do not fill a group.
    if (i < n % size && Above<Number>::test(x[count * size + i]))
        atomicMin(first, count * size + i);

    for (; i + (loads - 1) * stride < count; i += loads * stride) {
        Group<Number> group[loads];
#pragma unroll
        for (int j = 0; j < loads; j++)
            group[j] = groups[i + j * stride];
        // One branch for all elements: if any magnitude is above infinity, the largest one is.
        Bits largest = 0;
#pragma unroll
        for (int j = 0; j < loads; j++)
#pragma unroll
            for (int k = 0; k < size; k++)
                largest = max(largest, group[j].bits[k] & Layout<Number>::magnitude);
        if (largest > Layout<Number>::infinity)
#pragma unroll
            for (int j = 0; j < loads; j++)
                look(group[j], (i + j * stride) * size, first);
    }
    for (; i < count; i += stride)
        look(groups[i], i * size, first);
}

#else

// g++ -ffast-math promises the compiler that no value is NaN, so it replaces isnan() with false. nvcc does not pass
// --use_fast_math on to the host compiler, and -Xcompiler -ffast-math does not change device code.
#include <cmath>
#include <cstring>

extern "C" bool host_isnan(double number)
{
    return std::isnan(number);
}

extern "C" bool host_bit_test(double number)
{
    unsigned long long bits;
    std::memcpy(&bits, &number, sizeof bits);
    return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
}

#endif

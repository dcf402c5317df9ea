// Passes over the elements of an array that cuFFT does not do: copies between layouts, which may multiply by a factor, and
// conversion from real to complex elements. Each thread handles one element. Real is float, double or Half.

#include "layout.cuh"

// Half precision without cuda_fp16.h, which not every environment has.
struct Half {
    unsigned short bits;

    __device__ operator float() const
    {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
    }
};

__device__ void store(float* target, float value) { *target = value; }
__device__ void store(double* target, double value) { *target = value; }
__device__ void store(Half* target, float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(target->bits) : "f"(value)); }

template <class Real> struct Wide { using type = Real; };
template <> struct Wide<Half> { using type = float; };

// Both arrays may be the same.
template <class Real>
__global__ void move(const void* source, const Layout from, void* target, const Layout to, long long count,
                     double factor)
{
    using Number = typename Wide<Real>::type;
    long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i < count) {
        Number value = static_cast<const Real*>(source)[place_of(i, from)];
        store(static_cast<Real*>(target) + place_of(i, to), value * Number(factor));
    }
}

template <class Real>
__global__ void make_complex(const void* source, const Layout from, void* target, const Layout to, long long count)
{
    long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i < count) {
        Real* pair = static_cast<Real*>(target) + 2 * place_of(i, to);
        pair[0] = static_cast<const Real*>(source)[place_of(i, from)];
        pair[1] = Real{};
    }
}

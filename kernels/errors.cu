// Kernels for mistakes. A launch is refused at once, or it is queued and returns; what goes wrong while a kernel runs is
// reported later, by whichever call waits for it, and from then on by every call of this process.
//
//   nothing            for a launch that is refused
//   fill               right: writes a value to n numbers
//   store              writes one number to any address: null, one that was never set, one of the host's memory
//   require_positive   asserts that every number is positive; NDEBUG switches assert() off, as in C
//   copy               right, if what it reads was ever written: memory comes with whatever it held before
//   sum_bytes<bytes>   takes a structure of so many bytes by value: parameters have 4096 bytes at most before compute
//                      capability 7.0, and 32,764 since then with CUDA 12.1

#ifndef __CUDACC_RTC__  // NVRTC has assert() built in
#include <cassert>
#endif

extern "C" __global__ void nothing() {}

extern "C" __global__ void fill(float* x, int n, float value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = value;
}

extern "C" __global__ void store(float* where, float value)
{
    *where = value;
}

extern "C" __global__ void require_positive(const float* x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        assert(x[i] > 0.0f);
}

extern "C" __global__ void copy(const float* from, float* to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = from[i];
}

template <int bytes>
struct Bytes {
    unsigned char values[bytes];
};

// With the pointer, which begins at a multiple of 8, the parameters take `bytes`.
template <int bytes>
__global__ void sum_bytes(Bytes<bytes - 8> given, unsigned* sum)
{
    unsigned total = 0;
    for (int i = 0; i < bytes - 8; i++)
        total += given.values[i];
    *sum = total;
}

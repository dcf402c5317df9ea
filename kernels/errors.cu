// Kernels for common mistakes. A launch is refused immediately, or it is queued and returns. An error in a running
// kernel is reported later: by the next call that waits for it, and from then on by every call in this process.
//
//   empty_kernel       for a launch that is refused
//   fill               correct: writes a value to all n elements
//   store              writes a value to any address: null, an uninitialised pointer or a host address
//   require_positive   asserts that every element is positive; NDEBUG disables assert(), as in C
//   copy               correct only if its input has been written: new memory holds whatever was there before
//   sum_bytes<bytes>   takes a structure by value: parameters may occupy 4,096 bytes before compute capability 7.0, and
//                      32,764 bytes from 7.0 on, with CUDA 12.1 or later

#ifndef __CUDACC_RTC__  // NVRTC has assert() built in
#include <cassert>
#endif

extern "C" __global__ void empty_kernel() {}

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

// Together with the pointer, which is aligned to 8 bytes, the parameters occupy `bytes` bytes.
template <int bytes>
__global__ void sum_bytes(Bytes<bytes - 8> given, unsigned* sum)
{
    unsigned total = 0;
    for (int i = 0; i < bytes - 8; i++)
        total += given.values[i];
    *sum = total;
}

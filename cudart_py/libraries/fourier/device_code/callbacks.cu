// Passes that call a callback for each element, for transforms in which cuFFT cannot call it. This text follows the
// source that defines the callback. The macros are its name and the type of its elements, and say which of the two it
// is.

#include "layout.cuh"
#include "signature.cuh"

#ifdef FFT_LOADS
extern "C" __global__ void cudart_py_load(void* source, const Layout from, FFT_ELEMENT* target, const Layout to,
                                          long long count, void* info)
{
    long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i < count)
        target[place_of(i, to)] = FFT_CALLBACK(source, place_of(i, from), info, nullptr);
}
#else
extern "C" __global__ void cudart_py_store(const FFT_ELEMENT* source, const Layout from, void* target,
                                           const Layout to, long long count, void* info)
{
    long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i < count)
        FFT_CALLBACK(target, place_of(i, to), source[place_of(i, from)], info, nullptr);
}
#endif

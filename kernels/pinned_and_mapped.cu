// Kernels that read and write host memory. Its pages are pinned, so that they stay in place, and mapped into the
// device's address space. Every load and store then crosses the link to the host.
//
//   add_up        adds up all elements with 4-byte loads: a warp's load is one request of 128 bytes
//   add_up_wide   add_up with 16-byte loads: a warp's load is four such requests, so more bytes are in flight
//   scale         multiplies each element, and writes the product to another array
//
// The kernels are the same for every kind of memory. Sums are modulo 2^32. Blocks consist of whole warps.

#include "block_sum.cuh"

__device__ int first()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// The number of threads in the grid, which is the step of a grid-stride loop.
__device__ int stride()
{
    return gridDim.x * blockDim.x;
}

// Add the sums of a warp's lanes to the total with one atomic.
__device__ void add_to(unsigned* total, unsigned sum)
{
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0)
        atomicAdd(total, sum);
}

extern "C" __global__ void add_up(const unsigned* x, unsigned* total, int n)
{
    unsigned sum = 0;
    for (int i = first(); i < n; i += stride())
        sum += x[i];
    add_to(total, sum);
}

extern "C" __global__ void add_up_wide(const unsigned* x, unsigned* total, int n)
{
    unsigned sum = 0;
    const uint4* groups = reinterpret_cast<const uint4*>(x);
    for (int i = first(); i < n / 4; i += stride()) {
        uint4 group = groups[i];
        sum += group.x + group.y + group.z + group.w;
    }
    if (first() < n % 4)
        sum += x[n / 4 * 4 + first()];
    add_to(total, sum);
}

extern "C" __global__ void scale(const unsigned* in, unsigned* out, unsigned factor, int n)
{
    for (int i = first(); i < n; i += stride())
        out[i] = factor * in[i];
}

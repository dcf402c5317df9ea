// Two devices with peer access: a kernel uses a pointer into the other device's memory like any other pointer.
//
//   copy_words     one load and one store of 4 bytes per thread
//   copy_vectors   four 16-byte loads per thread are in flight before the first store, since the link's latency is long
//
// The pointers alone determine which array is on the other device.

extern "C" __global__ void copy_words(const unsigned* in, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}

// n is at most 2^31 - 2^16; both arrays are aligned to 16 bytes.
extern "C" __global__ void copy_vectors(const unsigned* in, unsigned* out, int n)
{
    constexpr int loads = 4;
    const uint4* from = reinterpret_cast<const uint4*>(in);
    uint4* to = reinterpret_cast<uint4*>(out);
    int first = loads * blockIdx.x * blockDim.x + threadIdx.x;

    uint4 group[loads];
#pragma unroll
    for (int k = 0; k < loads; k++)
        if (first + k * blockDim.x < n / 4)
            group[k] = from[first + k * blockDim.x];
#pragma unroll
    for (int k = 0; k < loads; k++)
        if (first + k * blockDim.x < n / 4)
            to[first + k * blockDim.x] = group[k];

    // The last elements, at most three.
    if (blockIdx.x == 0 && threadIdx.x < n % 4)
        out[n / 4 * 4 + threadIdx.x] = in[n / 4 * 4 + threadIdx.x];
}

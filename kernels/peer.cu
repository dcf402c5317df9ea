// Two devices with peer access: a pointer into the other device's memory is loaded from and stored to like any other.
//
//   copy_words     a load and a store of 4 bytes for each thread
//   copy_vectors   four loads of 16 bytes are in flight before the first is stored: the link's latency is the longest
//                  there is, so it takes the most bytes in flight
//
// Which side lies on the other device is decided by the pointers alone.

extern "C" __global__ void copy_words(const unsigned* in, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}

// n is at most 2^31 - 2^16; both arrays begin at a multiple of 16 bytes.
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

    // At most three last numbers.
    if (blockIdx.x == 0 && threadIdx.x < n % 4)
        out[n / 4 * 4 + threadIdx.x] = in[n / 4 * 4 + threadIdx.x];
}

// The peak rates of a device, from kernels that do a single thing each.
//
//   copy_words      copies words of 16 bytes, with several loads per thread in flight
//   read_words      reads words of 16 bytes and adds them up; it writes only one sum per block
//   write_words     writes words of 16 bytes
//   multiply_add    fused multiply-adds in registers, in several independent chains per thread
//
// The first three process tiles of `blockDim.x * Loads` words with a grid of any size: one block per tile, or fewer
// blocks in a grid-stride loop. `count` is in words of 16 bytes and a multiple of the tile, so the inner loops need no
// bounds checks.

template <int Loads> __global__ void copy_words(uint4* out, const uint4* in, size_t count)
{
    size_t tile = size_t(blockDim.x) * Loads;
    for (size_t first = blockIdx.x * tile + threadIdx.x; first < count; first += gridDim.x * tile)
    {
        uint4 words[Loads];
#pragma unroll
        for (int i = 0; i < Loads; ++i)
            words[i] = __ldcs(in + first + i * size_t(blockDim.x));
#pragma unroll
        for (int i = 0; i < Loads; ++i)
            __stcs(out + first + i * size_t(blockDim.x), words[i]);
    }
}

// sums[block] is the sum of the block's 32-bit elements, modulo 2^32. The block size is a multiple of 32.
template <int Loads> __global__ void read_words(const uint4* in, size_t count, unsigned* sums)
{
    __shared__ unsigned warps[32];
    unsigned sum = 0;
    size_t tile = size_t(blockDim.x) * Loads;
    for (size_t first = blockIdx.x * tile + threadIdx.x; first < count; first += gridDim.x * tile)
    {
        uint4 words[Loads];
#pragma unroll
        for (int i = 0; i < Loads; ++i)
            words[i] = __ldcs(in + first + i * size_t(blockDim.x));
#pragma unroll
        for (int i = 0; i < Loads; ++i)
            sum += words[i].x + words[i].y + words[i].z + words[i].w;
    }
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
    {
        for (unsigned warp = 1; warp < blockDim.x / 32; ++warp)
            sum += warps[warp];
        sums[blockIdx.x] = sum;
    }
}

template <int Stores> __global__ void write_words(uint4* out, size_t count, unsigned value)
{
    uint4 word = {value, value, value, value};
    size_t tile = size_t(blockDim.x) * Stores;
    for (size_t first = blockIdx.x * tile + threadIdx.x; first < count; first += gridDim.x * tile)
    {
#pragma unroll
        for (int i = 0; i < Stores; ++i)
            __stcs(out + first + i * size_t(blockDim.x), word);
    }
}

// Every thread performs Chains * Steps * rounds multiply-adds. Writing to `out` keeps the compiler from removing them.
template <class Number, int Chains, int Steps>
__global__ void multiply_add(Number* out, Number factor, Number addend, int rounds)
{
    Number chains[Chains];
#pragma unroll
    for (int i = 0; i < Chains; ++i)
        chains[i] = Number(threadIdx.x + i);
    for (int round = 0; round < rounds; ++round)
    {
#pragma unroll
        for (int step = 0; step < Steps; ++step)
        {
#pragma unroll
            for (int i = 0; i < Chains; ++i)
                chains[i] = fma(chains[i], factor, addend);
        }
    }
    Number sum = 0;
#pragma unroll
    for (int i = 0; i < Chains; ++i)
        sum += chains[i];
    out[size_t(blockIdx.x) * blockDim.x + threadIdx.x] = sum;
}

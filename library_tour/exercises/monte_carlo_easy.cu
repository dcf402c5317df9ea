// Throw a die n times; add the sum of the points to totals[0], and the sum of their squares to totals[1]. Both are
// initially zero.
//
// For now, the squares are missing.

// Turn a number into one that looks random: each bit of the result depends on all bits of the number.
__device__ unsigned mix(unsigned x)
{
    x = (x ^ x >> 16) * 0x85ebca6b;
    x = (x ^ x >> 13) * 0xc2b2ae35;
    return x ^ x >> 16;
}

extern "C" __global__ void throw_dice(unsigned* totals, unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned points = 1 + mix(i) % 6;
        sum += points;
    }
    sum = __reduce_add_sync(0xffffffff, sum);
    if (threadIdx.x % 32 == 0)
        atomicAdd(&totals[0], sum);
}

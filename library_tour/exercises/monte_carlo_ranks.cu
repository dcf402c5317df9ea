// Count random points in a circle on several devices, so that their counts add up to what one device counts.
//
// For now, every device tests the same points, and the remainder of the division is not tested at all.

// A random number that depends only on the seed and on the index of the draw: a mix of all bits.
__device__ unsigned random_bits(unsigned seed, unsigned draw)
{
    unsigned x = draw * 0x9e3779b9u ^ seed;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

// Tell whether a point in the unit square lies in the quarter circle, whose area is pi / 4.
__device__ bool in_circle(unsigned seed, unsigned point)
{
    float x = (random_bits(seed, 2 * point) >> 8) * 0x1p-24f;
    float y = (random_bits(seed, 2 * point + 1) >> 8) * 0x1p-24f;
    return __fadd_rn(__fmul_rn(x, x), __fmul_rn(y, y)) < 1.0f;
}

// The share of device `worker` of `workers` devices; `points` is the total number of points.
extern "C" __global__ void count_hits(unsigned seed, unsigned worker, unsigned workers, unsigned points, unsigned* hits)
{
    unsigned own = points / workers;
    unsigned found = 0;
    for (unsigned point = blockIdx.x * blockDim.x + threadIdx.x; point < own; point += gridDim.x * blockDim.x)
        found += in_circle(seed, point);
    atomicAdd(hits, found);
}

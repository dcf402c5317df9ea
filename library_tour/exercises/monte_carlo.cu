// Count how many random points in a square lie inside the quarter circle inscribed in it: those for which x x + y y is
// less than the side squared. Point i has the coordinates `coordinate(2 * i)` and `coordinate(2 * i + 1)`. A launch
// tests `points` points, beginning with point `first`, and adds its count to the total.
//
// For now, each thread has its own sequence of random numbers. The points therefore depend on the number of threads,
// and a second launch tests the same ones again.

// Return a number that looks random: each bit of the result depends on all bits of x.
__device__ unsigned mix(unsigned x)
{
    x = (x ^ x >> 16) * 0x85ebca6b;
    x = (x ^ x >> 13) * 0xc2b2ae35;
    return x ^ x >> 16;
}

// A random integer in [0, 2^24).
__device__ unsigned long long coordinate(unsigned index)
{
    return mix(index) >> 8;
}

extern "C" __global__ void count_inside(unsigned first, unsigned points, unsigned* total)
{
    unsigned inside = 0;
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned state = mix(thread + 1);
    for (unsigned i = thread; i < points; i += gridDim.x * blockDim.x) {
        state = mix(state + 1);
        unsigned long long x = coordinate(state);
        state = mix(state + 1);
        unsigned long long y = coordinate(state);
        if (x * x + y * y < 1ull << 48)
            inside++;
    }
    inside = __reduce_add_sync(0xffffffff, inside);
    if (threadIdx.x % 32 == 0)
        atomicAdd(total, inside);
}

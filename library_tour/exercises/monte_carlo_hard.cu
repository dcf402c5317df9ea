// Count the numbers below 2^31 in the first part of the sequence `state = A * state + C`, which starts from a seed.
// Each thread handles 16 of the numbers, and the total is initially zero.
//
// The result is right, but each thread also generates all numbers before its own.

constexpr unsigned A = 1664525;
constexpr unsigned C = 1013904223;
constexpr unsigned EACH = 16;

// The state after the given number of steps.
__device__ unsigned after(unsigned state, unsigned steps)
{
    for (unsigned k = 0; k < steps; k++)
        state = A * state + C;
    return state;
}

extern "C" __global__ void count_small(unsigned seed, unsigned* total)
{
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned state = after(seed, EACH * thread);
    unsigned small = 0;
    for (unsigned k = 0; k < EACH; k++) {
        small += state < 1u << 31;
        state = A * state + C;
    }
    small = __reduce_add_sync(0xffffffff, small);
    if (threadIdx.x % 32 == 0)
        atomicAdd(total, small);
}

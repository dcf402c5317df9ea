// Count the numbers below 2^31 in the first part of the sequence `state = A * state + C`, which starts from a seed.
// Each thread handles 16 of the numbers, and the total is initially zero.

constexpr unsigned A = 1664525;
constexpr unsigned C = 1013904223;
constexpr unsigned EACH = 16;

// The state after the given number of steps.
__device__ unsigned after(unsigned state, unsigned steps)
{
    // The map x -> a x + c for 1, 2, 4, ... steps.
    unsigned a = A, c = C;
    for (; steps > 0; steps /= 2) {
        if (steps % 2 == 1)
            state = a * state + c;
        c = a * c + c;
        a = a * a;
    }
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

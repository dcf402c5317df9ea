// Sum the payoffs of random walks from several start values: `inner` walks from each of `outer` start values. The start
// values are 0, 1, 2, ... Walk i from start value j has the index j * inner + i. The sums are initially zero.
//
// The result is right, but each thread handles a whole start value. If there are few of these, most lanes are idle.

// Return a number that looks random: each bit of the result depends on all bits of x.
__device__ unsigned mix(unsigned x)
{
    x = (x ^ x >> 16) * 0x85ebca6b;
    x = (x ^ x >> 13) * 0xc2b2ae35;
    return x ^ x >> 16;
}

// The end of a walk, or zero if that is negative. Each bit of eight random numbers is a step up or down.
__device__ int payoff(int start, unsigned walk)
{
    int end = start;
    for (unsigned word = 0; word < 8; word++)
        end += 2 * __popc(mix(8 * walk + word)) - 32;
    return max(end, 0);
}

extern "C" __global__ void sum_payoffs(int* sums, int outer, int inner)
{
    for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < outer; j += gridDim.x * blockDim.x)
        for (int i = 0; i < inner; i++)
            sums[j] += payoff(j, j * inner + i);
}

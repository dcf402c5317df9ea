// Jacobi's iteration for Laplace's equation on a square whose edge is given.
//
//   jacobi_step   each inner point becomes the mean of its four neighbours; a block adds up the squares of the changes

extern "C" __global__ void jacobi_step(const float* old, float* fresh, float* change, int n)
{
    __shared__ float sums[256];
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int t = threadIdx.y * blockDim.x + threadIdx.x, i = y * n + x;
    float difference = 0;
    if (x > 0 && y > 0 && x < n - 1 && y < n - 1) {
        float mean = 0.25f * (old[i - 1] + old[i + 1] + old[i - n] + old[i + n]);
        difference = mean - old[i];
        fresh[i] = mean;
    }
    sums[t] = difference * difference;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half)
            sums[t] += sums[t + half];
        __syncthreads();
    }
    if (t == 0)
        change[blockIdx.y * gridDim.x + blockIdx.x] = sums[0];
}

// Compute y = a x + y for all n elements with any number of blocks and threads.

extern "C" __global__ void daxpy(double a, const double* x, double* y, int n)
{
    int threads = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads)
        y[i] = a * x[i] + y[i];
}

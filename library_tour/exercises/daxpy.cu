// Compute y = a x + y for all n elements with any number of blocks and threads.
//
// For now, each thread computes one element, and elements without a thread are left unchanged.

extern "C" __global__ void daxpy(double a, const double* x, double* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

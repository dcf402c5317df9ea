// y = a x + y in double precision: two operations per three memory accesses, so memory bandwidth limits the kernel.
//
//   daxpy   one thread per element; the compiler contracts the statement into one fused multiply-add, which rounds once

extern "C" __global__ void daxpy(double a, const double* x, double* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

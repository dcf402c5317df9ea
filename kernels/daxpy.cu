// y = a x + y in double precision: three memory accesses for two operations, so memory bandwidth limits it.
//
//   daxpy   one thread an element; the compiler contracts the line into one fused multiply-add, which rounds once

extern "C" __global__ void daxpy(double a, const double* x, double* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

